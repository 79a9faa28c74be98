"""Is a channel a motion? Neighbouring samples of one are alike; those of noise, or of rows out of order, are not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# Three samples on a line have the ratio of noise.
FEWEST = 5


def roughness(values: ArrayLike, wraps: bool = False) -> float:
    """``Σ (x_{k+1} − x_k)² / (2 Σ (x_k − x̄)²)`` (von Neumann): 1 for independent samples, near 0 for a smooth motion.

    Missing samples are left out; angles that wrap are points on a circle.
    Zero for a constant channel, and for fewer than five samples.
    """
    samples = np.asarray(values, dtype=np.float64)
    samples = samples[np.isfinite(samples)]
    if samples.size < FEWEST or np.ptp(samples) == 0.0:
        return 0.0
    points = np.exp(1j * samples) if wraps else samples
    steps, spread = np.sum(np.abs(np.diff(points)) ** 2), np.sum(np.abs(points - points.mean()) ** 2)
    return float(steps / (2.0 * spread) * samples.size / (samples.size - 1))
