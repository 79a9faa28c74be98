"""Simulation of the stand-ins: Runge and Kutta's method, nothing of the estimator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# The default of a mechanism [m/s²].
GRAVITY = 9.82
# Speed below which simulated dry friction fades [rad/s, m/s], relative to the fastest of the motion.
FADING = 1e-3


def integrated(
    slope: Callable[[float, np.ndarray], np.ndarray], state: np.ndarray, interval: float, count: int, finer: int
) -> np.ndarray:
    """States at the samples, by Runge and Kutta's method with so many steps between two of them."""
    h, found = interval / finer, [state]
    for k in range((count - 1) * finer):
        t = k * h
        a = slope(t, state)
        b = slope(t + 0.5 * h, state + 0.5 * h * a)
        c = slope(t + 0.5 * h, state + 0.5 * h * b)
        d = slope(t + h, state + h * c)
        state = state + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        if (k + 1) % finer == 0:
            found.append(state)
    return np.array(found)
