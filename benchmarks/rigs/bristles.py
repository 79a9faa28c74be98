"""A driven pendulum whose friction is that of bristles, which bend before they slip (LuGre); fitted with Coulomb's."""

from __future__ import annotations

import numpy as np

from benchmarks.rigs.integration import GRAVITY, integrated
from shadowfit.recordings import Recording

MASS, LENGTH, INERTIA, VISCOUS = 0.5, 0.25, 0.012, 0.02
# Stiffness and damping of the bristles [N m/rad, N m s/rad], friction when sliding and at rest [N m].
BRISTLES, BENDING, SLIDING, STATIC, STRIBECK = 60.0, 0.5, 0.08, 0.12, 0.05
COUNTS = 2.0 * np.pi / 4096
FREE = ("arm.inertia.yy", "hinge.viscous", "hinge.coulomb", "theta.offset")


def driven(seed: int = 0, duration: float = 20.0, interval: float = 0.01) -> Recording:
    """Driven by a held torque of four sines."""
    rng, count = np.random.default_rng(seed), int(duration / interval)
    at = interval * np.arange(count)
    phases = rng.uniform(0.0, 6.0, 4)
    sines = ((0.15, 0.5), (0.5, 0.4), (1.1, 0.3), (1.9, 0.25))
    torque = sum(size * np.sin(2.0 * np.pi * rate * at + p) for (rate, size), p in zip(sines, phases, strict=True))
    whole = INERTIA + MASS * LENGTH**2

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        q, v, bent = state
        k = min(int(t / interval + 1e-9), count - 1)
        level = SLIDING + (STATIC - SLIDING) * np.exp(-((v / STRIBECK) ** 2))
        bending = v - BRISTLES * abs(v) / level * bent
        rubbing = BRISTLES * bent + BENDING * bending + VISCOUS * v
        return np.array([v, (torque[k] - rubbing - MASS * GRAVITY * LENGTH * np.sin(q)) / whole, bending])

    angle = integrated(slope, np.zeros(3), interval, count, 40)[:, 0]
    channels = {"theta": np.round(angle / COUNTS) * COUNTS, "u": torque}
    return Recording(at, channels, units={"theta": "rad", "u": "N m"})
