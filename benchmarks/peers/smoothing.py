"""Positions and rates from noisy samples: what peers need for a first guess of the states, or for regression."""

from __future__ import annotations

import numpy as np
from scipy.signal import savgol_filter

WINDOW, ORDER = 61, 4  # samples, degree of the polynomial: 122 ms, some 10 Hz


def smooth(positions: np.ndarray, interval: float, derivative: int = 0) -> np.ndarray:
    """A derivative of the positions ``(samples, n)`` by Savitzky and Golay's local polynomials."""
    return savgol_filter(positions, WINDOW, ORDER, deriv=derivative, delta=interval, axis=0)
