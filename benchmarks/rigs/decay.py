"""Free pendulums with air drag, and friction that varies over a turn; fitted with viscous and Coulomb friction.

The encoder of *b* is eccentric.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import least_squares

from benchmarks.real_machines import rollouts
from benchmarks.rigs.comparison import Differences, halves, timed, told
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
    "decay a": Decay(60.0, 0.03, 0.12, 0.004, 0.3, 0.0, 1.3, 28.0, 1 / 150),
    "decay b": Decay(40.28, 0.05, 0.10, 0.002, 0.1, 6e-4, 1.0, 40.0, 0.01),
    "decay c": Decay(90.0, 0.02, 0.25, 0.010, 0.3, 0.0, 2.0, 24.0, 1 / 200),
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


PENDULUM_FREE = ("rod.inertia.yy", "swing.viscous", "swing.coulomb", "theta.offset")


def output_error_of_decay(recording: Recording) -> tuple[np.ndarray, float]:
    """Stiffness, viscous and Coulomb friction [1/s², 1/s, rad/s²] by output error, and its rmse [rad]."""
    measured, interval = recording.channels["theta"], recording.sample_interval
    count, finer = len(measured), 4

    def simulated(numbers: Array) -> Array:
        k, b, c, offset, q, v = numbers
        h = interval / finer

        def slope(state: Array) -> Array:
            return jnp.stack([state[1], -k * jnp.sin(state[0]) - b * state[1] - c * jnp.tanh(state[1] / 0.01)])

        def step(state: Array, _: None) -> tuple[Array, Array]:
            d1 = slope(state)
            d2 = slope(state + 0.5 * h * d1)
            d3 = slope(state + 0.5 * h * d2)
            d4 = slope(state + h * d3)
            return state + h / 6.0 * (d1 + 2.0 * d2 + 2.0 * d3 + d4), state[0]

        _, angles = jax.lax.scan(step, jnp.stack([q, v]), None, length=(count - 1) * finer + 1)
        return angles[::finer] + offset

    crossings = np.flatnonzero(np.diff(np.sign(measured - measured.mean())))
    late = crossings[len(crossings) // 2 :]
    start = np.array([(np.pi / (interval * np.mean(np.diff(late)))) ** 2, 0.03, 0.05, 0.0, measured[0], 0.0])
    lower = np.array([0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf])
    run, slopes = jax.jit(simulated), jax.jit(jax.jacfwd(simulated))
    for part in (0.05, 0.1, 0.2, 0.5, 1.0):
        n = int(part * count)
        found = least_squares(
            lambda x, n=n: np.asarray(run(x) - measured)[:n],
            np.maximum(start, lower + 1e-6),
            lambda x, n=n: np.asarray(slopes(x))[:n],
            (lower, np.inf),
            x_scale=np.array([1.0, 0.01, 0.01, 1e-3, 1e-3, 1e-2]),
            max_nfev=30,
        )
        start = found.x
    return start[:3], float(np.sqrt(np.mean(found.fun**2)))


def study(name: str) -> Differences:
    """A free decay: rollouts beside output error, halves."""
    recording = swung(DECAYS[name])
    estimate, seconds = timed(pendulum(), recording, PENDULUM_FREE)
    told(name, estimate, seconds)
    reference, rmse = output_error_of_decay(recording)
    inertia = estimate.values["rod.inertia.yy"] + MASS * LENGTH**2
    weight = MASS * GRAVITY * LENGTH
    found = weight / inertia, estimate.values["swing.viscous"] / inertia, estimate.values["swing.coulomb"] / inertia
    print(f"    per inertia: {np.round(found, 4)}, output error {np.round(reference, 4)}")
    print(f"    rollout {1e3 * rollouts(estimate, 0)['theta']:.2f} mrad, output error {1e3 * rmse:.2f}")
    return [("halves", *row) for row in halves(pendulum(), recording, PENDULUM_FREE)]
