"""A geared rotary pendulum whose base rubs more at rest and has play, fitted with viscous and Coulomb friction."""

from __future__ import annotations

import numpy as np

from benchmarks.rigs.integration import GRAVITY, integrated
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge
from shadowfit.recordings import Recording

ARM, ROD_MASS, ROD, REACH = 6e-3, 0.08, 0.14, 0.16
# About the hinge and about the rod's own axis.
ROD_INERTIA, AXIAL = 1.15 * ROD_MASS * ROD**2, 0.09 * ROD_MASS * ROD**2
GAIN = 0.02


def spun(seed: int = 0, duration: float = 10.0, interval: float = 0.005) -> Recording:
    """Currents drive the base, which rubs more at rest and is pushed about by its gear."""
    rng = np.random.default_rng(seed)
    count = int(duration / interval)
    at = interval * np.arange(count)
    current = 3.0 * np.sin(2.0 * np.pi * (0.3 + 0.12 * at) * at + rng.uniform(0.0, 6.0))
    pushes = 0.006 * rng.standard_normal(count)
    coupling, weight = ROD_MASS * REACH * ROD, ROD_MASS * GRAVITY * ROD

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        k = min(int(t / interval + 1e-9), count - 1)
        _, a, u, w = state
        rubbing = (0.012 + 0.008 * np.exp(-((u / 0.3) ** 2))) * np.tanh(u / 1e-2) + 4e-3 * u
        sine, cosine = np.sin(a), np.cos(a)
        tilted = (ROD_INERTIA - AXIAL) * sine * cosine
        matrix = np.array(
            [
                [ARM + ROD_MASS * REACH**2 + AXIAL + (ROD_INERTIA - AXIAL) * sine**2, coupling * cosine],
                [coupling * cosine, ROD_INERTIA],
            ]
        )
        forces = np.array(
            [
                GAIN * current[k] + pushes[k] - rubbing - 2.0 * tilted * u * w + coupling * sine * w**2,
                tilted * u**2 - weight * sine - 1e-4 * w - 2e-4 * np.tanh(w / 1e-2),
            ]
        )
        return np.concatenate([[u, w], np.linalg.solve(matrix, forces)])

    states = integrated(slope, np.array([0.0, 0.3, 0.0, 0.0]), interval, count, 4)
    step = 2.0 * np.pi / 4096
    read = np.round(states[:, :2] / step) * step
    return Recording(
        at, {"theta": read[:, 0], "alpha": read[:, 1], "i": current}, units={"theta": "rad", "alpha": "rad", "i": "A"}
    )


def furuta() -> Mechanism:
    """Viscous and Coulomb friction at both hinges; the rod is thin, its mass and length are known."""
    about = ROD_INERTIA - ROD_MASS * ROD**2
    rod = Body(ROD_MASS, (1.5 * about, about, 0.6 * about))
    base = hinge(
        "world",
        "arm",
        axis=(0.0, 0.0, 1.0),
        viscous=1e-3,
        friction=Coulomb(coulomb=5e-3),
        laws={"motor": TorqueMotor(0.01, input="i")},
    )
    swing = hinge(
        "arm",
        "rod",
        axis=(1.0, 0.0, 0.0),
        parent_point=(REACH, 0.0, 0.0),
        child_point=(0.0, 0.0, ROD),
        viscous=5e-5,
        friction=Coulomb(coulomb=1e-4),
    )
    counts = 2.0 * np.pi / 4096 / np.sqrt(12.0)
    sensors = {
        "theta": JointPosition(joint="base", std=counts),
        "alpha": JointPosition(joint="swing", std=counts),
    }
    bodies = {"arm": Body(0.1, (1e-2, 1e-2, 1e-2)), "rod": rod}
    return Mechanism(bodies, {"base": base, "swing": swing}, sensors=sensors, inputs={"i": Input(unit="A")})


FURUTA_FREE = (
    *("arm.inertia.zz", "rod.inertia.xx", "base.motor.gain"),
    *("base.viscous", "base.coulomb", "swing.viscous", "swing.coulomb"),
)
