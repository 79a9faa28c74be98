"""Random complementarity problems of known kinds, and slow, plain solutions of them in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

Problem = tuple[np.ndarray, np.ndarray]


def p_matrix(rng: np.random.Generator, n: int) -> Problem:
    """Positive definite but not symmetric: one solution for every q."""
    root, skew = rng.normal(size=(2, n, n))
    return root @ root.T + 0.01 * np.eye(n) + skew - skew.T, 3 * rng.normal(size=n)


def box(rng: np.random.Generator, n: int) -> Problem:
    """``|T x + c| ≤ L`` with ``x = z₊ − z₋``: positive semidefinite and singular; some limits L are zero."""
    m = n // 2
    root = rng.normal(size=(m, m))
    T, c = root @ root.T + 1e-6 * np.eye(m), 3 * rng.normal(size=m)
    limit = np.abs(rng.normal(size=m)) * (rng.random(m) < 0.8)
    return np.block([[T, -T], [-T, T]]), np.concatenate([limit + c, limit - c])


def friction(rng: np.random.Generator, n: int, regularisation: float = 1e-6) -> Problem:
    """Coulomb friction at n / 4 contacts, unknowns (λ_n, λ_t₊, λ_t₋, σ); inverse masses over four decades."""
    m = n // 4
    directions = 3 * m + 2
    inverse_mass = 10.0 ** rng.uniform(-1, 3, directions)
    normal, tangent = rng.normal(size=(2, m, directions))
    rows = np.concatenate([normal, tangent, -tangent])
    H = np.zeros((n, n))
    H[: 3 * m, : 3 * m] = rows * inverse_mass @ rows.T + regularisation * np.eye(3 * m)
    either = np.concatenate([np.eye(m), np.eye(m)])
    H[m : 3 * m, 3 * m :] = either
    H[3 * m :, m : 3 * m] = -either.T
    H[3 * m :, :m] = np.diag(rng.uniform(0, 1, m) * (rng.random(m) < 0.9))
    velocity = rng.normal(size=directions) * 10.0 ** rng.uniform(-3, 3)
    return H, np.concatenate([rows @ velocity, np.zeros(m)])


KINDS: dict[str, Callable[[np.random.Generator, int], Problem]] = {
    "p-matrix": p_matrix,
    "box": box,
    "friction": friction,
}


def residual(H: np.ndarray, q: np.ndarray, z: np.ndarray) -> float:
    """Largest violation of ``z ≥ 0``, ``w = H z + q ≥ 0`` and ``w = 0 where z > 0``, relative to the terms of ``w``.

    Rows and columns are measured in units that make their largest entries in H comparable.
    """
    size = np.abs(H)
    rows = columns = np.ones(len(q))
    for _ in range(2):
        scaled = rows[:, None] * size * columns
        row_max, column_max = scaled.max(axis=1), scaled.max(axis=0)
        rows = rows / np.sqrt(np.where(row_max > 0, row_max, 1))
        columns = columns / np.sqrt(np.where(column_max > 0, column_max, 1))
    w = rows * (H @ z + q)
    scale = np.max(rows * (size @ np.abs(z) + np.abs(q)))
    excess = np.concatenate([-z / columns, np.where(z > 0, np.abs(w), -w), [0.0]])
    return np.max(excess) / (scale if scale > 0 else 1.0)


def enumerate_lcp(H: np.ndarray, q: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
    """All solutions with a regular active set, one per row, found by trying every active set."""
    n = len(q)
    sets = np.array(list(itertools.product([False, True], repeat=n)))
    eye = np.eye(n)
    restricted = np.where(sets[:, :, None] & sets[:, None, :], H, eye)
    restricted[~sets[:, :, None] & (eye == 0)] = 0.0
    regular = np.linalg.det(restricted) != 0  # sets that only rounding errors make regular fail the test below
    sets, restricted = sets[regular], restricted[regular]
    points = np.linalg.solve(restricted, np.where(sets, -q, 0.0)[..., None])[..., 0]
    points = points[points.min(axis=1) >= -tolerance * np.abs(points).max(axis=1)]
    return np.array([z for z in points if residual(H, q, z) <= tolerance]).reshape(-1, n)
