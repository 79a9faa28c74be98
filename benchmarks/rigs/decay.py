"""Free pendulums with air drag, and friction that varies over a turn; fitted with viscous and Coulomb friction.

The encoder of *b* is eccentric.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks.rigs.integration import FADING, GRAVITY, integrated
from shadowfit.mechanism import Body, Coulomb, JointPosition, Mechanism, hinge
from shadowfit.recordings import Recording


@dataclasses.dataclass(frozen=True)
class Decay:
    """A free pendulum, its numbers divided by its inertia."""

    stiffness: float
    """m g l/J [1/s²]."""
    viscous: float
    """[1/s]."""
    coulomb: float
    """[rad/s²]."""
    drag: float
    """[1/rad]; not in the model."""
    uneven: float
    """Part of the Coulomb friction that comes and goes with the angle; not in the model."""
    eccentric: float
    """Error of the encoder over a turn [rad]; not in the model."""
    release: float
    duration: float
    interval: float


DECAYS = {
    "decay-a": Decay(60.0, 0.03, 0.12, 0.004, 0.3, 0.0, 1.3, 28.0, 1 / 150),
    "decay-b": Decay(40.28, 0.05, 0.10, 0.002, 0.1, 6e-4, 1.0, 40.0, 0.01),
    "decay-c": Decay(90.0, 0.02, 0.25, 0.010, 0.3, 0.0, 2.0, 24.0, 1 / 200),
}
ENCODER = 3e-4
MASS, LENGTH = 0.2, 0.1


def swung(decay: Decay, seed: int = 0) -> Recording:
    """A recording of it."""
    rng, fade = np.random.default_rng(seed), FADING * decay.release * np.sqrt(decay.stiffness)

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        del t
        q, v = state
        friction = decay.coulomb * (1.0 + decay.uneven * np.cos(2.0 * q + 0.7)) * np.tanh(v / fade)
        return np.array([v, -decay.stiffness * np.sin(q) - decay.viscous * v - decay.drag * v * abs(v) - friction])

    count = int(decay.duration / decay.interval) + 1
    angle = integrated(slope, np.array([decay.release, 0.0]), decay.interval, count, 10)[:, 0]
    read = angle + decay.eccentric * np.sin(angle + 0.3) + 0.02 + ENCODER * rng.standard_normal(count)
    return Recording(decay.interval * np.arange(count), {"theta": read}, units={"theta": "rad"})


def pendulum() -> Mechanism:
    """The model of all three: mass and length are taken as known, all the rest is relative to them."""
    swing = hinge(
        "world",
        "rod",
        axis=(0.0, 1.0, 0.0),
        child_point=(0.0, 0.0, LENGTH),
        viscous=1e-4,
        friction=Coulomb(coulomb=1e-4),
    )
    sensors = {"theta": JointPosition(joint="swing", std=ENCODER)}
    return Mechanism({"rod": Body(MASS, (1e-3, 1e-3, 1e-3))}, {"swing": swing}, sensors=sensors)


def inertia(decay: Decay) -> float:
    """What the rod's has to be for the true period [kg m²]."""
    return MASS * LENGTH * (GRAVITY / decay.stiffness - LENGTH)


PENDULUM_FREE = ("rod.inertia.yy", "swing.viscous", "swing.coulomb", "theta.offset")
