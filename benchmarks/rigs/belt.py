"""A pendulum that its motor drives by a soft belt: rotor and load swing against each other, fitted as one body."""

from __future__ import annotations

import numpy as np

from benchmarks.rigs.integration import GRAVITY, integrated
from shadowfit.recordings import Recording

ROTOR, LOAD = 2e-3, 8e-3
MASS = 1.0
LENGTH = 0.5 / GRAVITY / MASS
# Stiffness and damping of the belt [N m/rad, N m s/rad].
BELT, BELT_DAMPING = 8.0, 0.02
COUNTS = 2.0 * np.pi / 8192
FREE = ("arm.inertia.yy", "arm.mass", "hinge.viscous", "hinge.coulomb")


def driven(seed: int = 0, duration: float = 15.0, interval: float = 0.004) -> Recording:
    """A held torque of four sines drives the rotor; the load's angle is read. Both rub."""
    rng, count = np.random.default_rng(seed), int(duration / interval)
    at = interval * np.arange(count)
    sines = ((0.3, 0.25), (0.8, 0.2), (1.9, 0.2), (4.3, 0.15))
    phases = rng.uniform(0.0, 6.0, len(sines))
    torque = sum(size * np.sin(2.0 * np.pi * rate * at + p) for (rate, size), p in zip(sines, phases, strict=True))

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        k = min(int(t / interval + 1e-9), count - 1)
        motor, angle, m, w = state
        passed = BELT * (motor - angle) + BELT_DAMPING * (m - w)
        rotor = (torque[k] - passed - 0.03 * np.tanh(m / 1e-2) - 0.004 * m) / ROTOR
        load = (passed - 0.02 * np.tanh(w / 1e-2) - 0.006 * w - MASS * GRAVITY * LENGTH * np.sin(angle)) / LOAD
        return np.array([m, w, rotor, load])

    angle = integrated(slope, np.zeros(4), interval, count, 20)[:, 1]
    return Recording(at, {"theta": np.round(angle / COUNTS) * COUNTS, "u": torque}, units={"theta": "rad", "u": "N m"})
