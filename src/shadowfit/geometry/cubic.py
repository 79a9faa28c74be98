"""The cubic spline through equally spaced values: twice continuously differentiable, one cubic at either end."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float

# Values from which on there are four to a cubic; fewer are on one polynomial.
ENOUGH = 4
# Couplings that no longer change a number.
NOTHING = 1e-18


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
    before, diagonal, after = np.ones(count - 2), np.full(count - 2, 4.0), np.ones(count - 2)
    # m_0 and m_{k−1} put into the first and the last equation.
    diagonal[[0, -1]], before[[0, -1]], after[[0, -1]] = 6.0, 0.0, 0.0
    inner = tridiagonal(before, diagonal, after, 6.0 * (flat[:-2] - 2.0 * flat[1:-1] + flat[2:]))
    ends = (2.0 * inner[0] - inner[1], 2.0 * inner[-1] - inner[-2])
    second = np.concatenate([ends[0][None], inner, ends[1][None]])
    left = np.clip(np.floor(at).astype(int), 0, count - 2)
    up = (np.asarray(at, float) - left)[:, None]
    down = 1.0 - up
    values = down * flat[left] + up * flat[left + 1]
    values += ((down**3 - down) * second[left] + (up**3 - up) * second[left + 1]) / 6.0
    return values.reshape(len(at), *table.shape[1:])


def tridiagonal(
    before: Float[np.ndarray, " n"],
    diagonal: Float[np.ndarray, " n"],
    after: Float[np.ndarray, " n"],
    right: Float[np.ndarray, "n d"],
) -> Float[np.ndarray, "n d"]:
    """Solve ``a_i x_{i−1} + b_i x_i + c_i x_{i+1} = r_i`` with dominant b by cyclic reduction of all rows at once.

    Each round puts the neighbours' equations into a row's, which couples it to those twice as far away, the weaker the
    more b dominates.
    """
    before, after, right = before / diagonal, after / diagonal, right / diagonal[:, None]
    distance = 1
    while distance < len(diagonal) and max(np.abs(before).max(), np.abs(after).max()) > NOTHING:
        beyond = ((distance, distance), (0, 0))

        def of(values: np.ndarray, shift: int, padding: tuple[tuple[int, int], ...] = beyond) -> np.ndarray:
            """Those of the rows so far away, zero behind the ends."""
            padded = np.pad(values, padding[: values.ndim])
            begin = padding[0][0] + shift
            return padded[begin : begin + len(values)]

        pivot = 1.0 - before * of(after, -distance) - after * of(before, distance)
        right = right - before[:, None] * of(right, -distance) - after[:, None] * of(right, distance)
        before, after = -before * of(before, -distance) / pivot, -after * of(after, distance) / pivot
        right = right / pivot[:, None]
        distance *= 2
    return right
