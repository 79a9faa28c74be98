"""The cubic spline through equally spaced values: twice continuously differentiable, one cubic at either end."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from jaxtyping import Float

# Values from which on there are four to a cubic; fewer are on one polynomial.
ENOUGH = 4


def cubic(values: Float[np.ndarray, "k *d"], at: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n *d"]:
    """The spline through values at 0 … k − 1, at given places; beyond the ends the last cubics go on.

    Second derivatives m of a spline obey ``m_{i−1} + 4 m_i + m_{i+1} = 6 (y_{i−1} − 2 y_i + y_{i+1})``. That the first
    two and the last two pieces are one cubic each (no knot between them) leaves ``m_0 = 2 m_1 − m_2``.
    """
    table = np.asarray(values, float)
    count = len(table)
    if count < ENOUGH:
        powers = np.vander(np.arange(count), count)
        flat = np.linalg.solve(powers, table.reshape(count, -1))
        return (np.vander(at, count) @ flat).reshape(len(at), *table.shape[1:])
    flat = table.reshape(count, -1)
    bands = np.ones((3, count - 2))
    bands[1] = 4.0
    # m_0 and m_{k−1} put into the first and the last equation.
    bands[1, [0, -1]], bands[0, 1], bands[2, -2] = 6.0, 0.0, 0.0
    inner = scipy.linalg.solve_banded((1, 1), bands, 6.0 * (flat[:-2] - 2.0 * flat[1:-1] + flat[2:]))
    ends = (2.0 * inner[0] - inner[1], 2.0 * inner[-1] - inner[-2])
    second = np.concatenate([ends[0][None], inner, ends[1][None]])
    left = np.clip(np.floor(at).astype(int), 0, count - 2)
    up = (np.asarray(at, float) - left)[:, None]
    down = 1.0 - up
    found = down * flat[left] + up * flat[left + 1]
    found += ((down**3 - down) * second[left] + (up**3 - up) * second[left + 1]) / 6.0
    return found.reshape(len(at), *table.shape[1:])
