"""The rotary pendulum with play: its motor has a rotor of its own and drives the arm through a gap.

In every swing motor and arm are apart for a while, and the model has them as one: an error that much of the data share.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rigs.furuta import ARM, AXIAL, GAIN, REACH, ROD, ROD_INERTIA, ROD_MASS
from benchmarks.rigs.integration import GRAVITY, integrated
from shadowfit.recordings import Recording

# Stiffness and damping of the teeth [N m/rad, N m s/rad].
TEETH, TEETH_DAMPING = 400.0, 0.05
# Part of the arm's inertia that is the rotor's, and the gap on either side [rad].
GEARS = {"play": (0.4, 0.008), "play-heavy-rotor": (0.7, 0.015)}


def driven(gear: str, seed: int = 0, duration: float = 10.0, interval: float = 0.005) -> Recording:
    """Currents drive the rotor, which rubs; the arm hangs on it by its teeth."""
    share, gap = GEARS[gear]
    rng, count = np.random.default_rng(seed), int(duration / interval)
    at = interval * np.arange(count)
    current = 3.0 * np.sin(2.0 * np.pi * (0.3 + 0.12 * at) * at + rng.uniform(0.0, 6.0))
    coupling, weight = ROD_MASS * REACH * ROD, ROD_MASS * GRAVITY * ROD

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        k = min(int(t / interval + 1e-9), count - 1)
        motor, base, a, m, u, w = state
        apart = motor - base
        pressed = np.sign(apart) * max(abs(apart) - gap, 0.0)
        passed = TEETH * pressed + (TEETH_DAMPING * (m - u) if pressed else 0.0)
        rubbing = 0.012 * np.tanh(m / 1e-2) + 4e-3 * m
        sine, cosine = np.sin(a), np.cos(a)
        tilted = (ROD_INERTIA - AXIAL) * sine * cosine
        own = (1.0 - share) * ARM + ROD_MASS * REACH**2 + AXIAL + (ROD_INERTIA - AXIAL) * sine**2
        matrix = np.array([[own, coupling * cosine], [coupling * cosine, ROD_INERTIA]])
        forces = np.array(
            [
                passed - 2.0 * tilted * u * w + coupling * sine * w**2,
                tilted * u**2 - weight * sine - 1e-4 * w - 2e-4 * np.tanh(w / 1e-2),
            ]
        )
        rotor = (GAIN * current[k] - rubbing - passed) / (share * ARM)
        return np.concatenate([[m, u, w, rotor], np.linalg.solve(matrix, forces)])

    states = integrated(slope, np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0]), interval, count, 20)
    step = 2.0 * np.pi / 4096
    read = np.round(states[:, 1:3] / step) * step
    channels = {"theta": read[:, 0], "alpha": read[:, 1], "i": current}
    return Recording(at, channels, units={"theta": "rad", "alpha": "rad", "i": "A"})
