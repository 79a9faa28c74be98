"""Lemke's pivoting by itself: active sets, rays, ties and limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from complementarity import problems

from shadowfit.complementarity import Status, lemke, scaling


@jax.jit
def find_active_set(H, q, max_pivots=500):
    rows, columns = scaling.equilibrate(H)
    return lemke.find_active_set(rows[:, None] * H * columns, rows * q, max_pivots)


def on_set(H, q, active):
    z = np.zeros(len(q))
    index = np.flatnonzero(active)
    z[index] = np.linalg.solve(H[np.ix_(index, index)], -q[index])
    return z


@pytest.mark.parametrize("kind", problems.KINDS)
def test_active_set_gives_a_solution(kind):
    rng = np.random.default_rng(1)
    for _ in range(100):
        H, q = problems.KINDS[kind](rng, 12)
        end = find_active_set(H, q)
        assert end.status == Status.SOLVED
        assert problems.residual(H, q, on_set(H, q, np.array(end.active))) < 1e-9


def test_nothing_to_do():
    end = find_active_set(-np.eye(3), np.array([0.0, 1.0, 2.0]))
    assert end.status == Status.SOLVED
    assert end.pivots == 0
    assert not end.active.any()


def test_infeasible_problem_ends_on_a_ray():
    # w₁ = −1 − z₂ cannot be made positive.
    end = find_active_set(np.array([[0.0, -1.0], [1.0, 1.0]]), np.array([-1.0, -1.0]))
    assert end.status == Status.RAY


def test_semidefinite_problem_without_solution_ends_on_a_ray():
    """With ``v > 0``, ``H v = 0`` and ``q·v < 0``, ``0 ≤ v·w = q·v`` is impossible."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        root = rng.normal(size=(8, 4))
        null = np.linalg.svd(root)[0][:, -1]
        root, null = root * np.sign(null)[:, None], np.abs(null)
        q = rng.normal(size=8)
        q -= (q @ null + 0.3) * null
        assert find_active_set(root @ root.T, q).status == Status.RAY


def test_every_row_tied():
    """Murty's matrix, for which simpler pivoting cycles, with all rows equal in the ratio test."""
    H = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    q = -np.ones(3)
    end = find_active_set(H, q)
    assert end.status == Status.SOLVED
    np.testing.assert_allclose(on_set(H, q, np.array(end.active)), 1 / 3, rtol=1e-14)


def test_degenerate_problems_terminate():
    """Small integers make ties at almost every step; for these matrices a solution exists for every q."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        root = rng.integers(-1, 2, size=(8, 8)).astype(float)
        skew = rng.integers(-1, 2, size=(8, 8)).astype(float)
        H, q = root @ root.T + np.eye(8) + skew - skew.T, rng.integers(-1, 1, size=8).astype(float)
        end = find_active_set(H, q)
        assert end.status == Status.SOLVED
        assert end.pivots < 60
        assert problems.residual(H, q, on_set(H, q, np.array(end.active))) < 1e-12


def test_lexicographic_order_decides_ties():
    """Perturbing ``q_k`` by ``ε^k`` breaks all ties; the pivoting without it must end in the same place."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        root = rng.integers(-2, 3, size=(4, 4)).astype(float)
        H, q = root @ root.T + np.eye(4), -rng.integers(0, 2, size=4).astype(float)
        if not q.any():
            continue
        scale = np.max(np.abs(q))
        perturbed = q / scale + 1e-2 ** np.arange(1, 5)
        end, reference = (lemke.find_active_set(jnp.array(H), jnp.array(x), 500) for x in (q, perturbed))
        assert end.pivots == reference.pivots
        assert (end.active == reference.active).all()


def test_iteration_limit():
    H, q = problems.p_matrix(np.random.default_rng(5), 12)
    full = find_active_set(H, q)
    assert full.pivots > 3
    short = find_active_set(H, q, 3)
    assert short.status == Status.ITERATION_LIMIT
    assert short.pivots == 3
