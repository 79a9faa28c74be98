"""Recordings of masses on springs with known truth, for tests of fits over many recordings, and what kills workers."""

import numpy as np

from shadowfit.recordings import Recording

MASS, NOISE, TIMESTEP = 0.7, 1e-2, 0.02


def oscillation(number: int, stiffness: float = 9.0, damping: float = 0.4, steps: int = 120) -> Recording:
    """A free swing of its own amplitude and phase; readings have white noise."""
    random = np.random.default_rng(number)
    t = TIMESTEP * np.arange(steps)
    rate = damping / (2.0 * MASS)
    frequency = np.sqrt(stiffness / MASS - rate**2)
    amplitude, phase = random.uniform(0.2, 0.5), random.uniform(0.0, 2.0 * np.pi)
    clean = amplitude * np.exp(-rate * t) * np.cos(frequency * t + phase)
    return Recording(t, {"x": clean + NOISE * random.standard_normal(steps)}, name=f"swing-{number}")
