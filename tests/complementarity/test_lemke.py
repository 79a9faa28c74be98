"""Lemke's pivoting by itself: active sets, rays, ties and limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

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
    end = find_active_set(-np.eye(4), np.array([0.0, 1.0, 2.0, 3.0]))
    assert end.status == Status.SOLVED
    assert end.pivots == 0
    assert not end.active.any()


def test_infeasible_problem_ends_on_a_ray():
    """``w₁ = −1 − z₂`` cannot be made positive."""
    H = np.eye(4)
    H[:2, :2] = [[0.0, -1.0], [1.0, 1.0]]
    end = find_active_set(H, np.array([-1.0, -1.0, -1.0, 1.0]))
    assert end.status == Status.RAY


def test_semidefinite_problem_without_solution_ends_on_a_ray():
    """With ``v > 0``, ``H v = 0`` and ``q·v < 0``, ``0 ≤ v·w = q·v`` is impossible."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        root = rng.normal(size=(12, 7))
        null = np.linalg.svd(root)[0][:, -1]
        root, null = root * np.sign(null)[:, None], np.abs(null)
        q = rng.normal(size=12)
        q -= (q @ null + 0.3) * null
        assert find_active_set(root @ root.T, q).status == Status.RAY


def test_every_row_tied():
    """Murty's matrix, for which simpler pivoting cycles, with all rows equal in the ratio test."""
    H = scipy.linalg.block_diag(*[[[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]]] * 4)
    q = -np.ones(12)
    end = find_active_set(H, q)
    assert end.status == Status.SOLVED
    np.testing.assert_allclose(on_set(H, q, np.array(end.active)), 1 / 3, rtol=1e-14)


def test_degenerate_problems_terminate():
    """Small integers make ties at almost every step; for these matrices a solution exists for every q."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        root = rng.integers(-1, 2, size=(12, 12)).astype(float)
        skew = rng.integers(-1, 2, size=(12, 12)).astype(float)
        H, q = root @ root.T + np.eye(12) + skew - skew.T, rng.integers(-1, 1, size=12).astype(float)
        end = find_active_set(H, q)
        assert end.status == Status.SOLVED
        assert end.pivots < 60
        assert problems.residual(H, q, on_set(H, q, np.array(end.active))) < 1e-12


def test_ties_are_broken_lexicographically():
    """With ``q_k + ε^k``, the basic variables are ``B⁻¹ (q, I)`` times ``(1, ε, ε², …)`` for the basis matrix B.

    The row to leave is the one whose ratio is the smallest polynomial, that is, lexicographically smallest.
    """
    rng = np.random.default_rng(4)
    exchange, ratio_test = jax.jit(lemke._exchange), jax.jit(lemke._ratio_test)
    ties = 0
    for _ in range(20):
        root = rng.integers(-1, 2, size=(4, 4)).astype(float)
        H, q = root @ root.T + np.eye(4), -np.ones(4)
        columns = np.concatenate([np.eye(4), -H, -np.ones((4, 1))], axis=1)  # of w, z and z₀ in w − H z − z₀ = q
        state = exchange(
            lemke._Progress(lemke._tableau(jnp.array(H), jnp.array(q)), jnp.asarray(4), jnp.int32(2), jnp.int32(0))
        )
        while state.status == Status.ITERATION_LIMIT:
            tableau = state.tableau
            inverse = np.linalg.inv(columns[:, np.array(tableau.basic)])
            speed = inverse @ columns[:, int(tableau.others[state.column])]
            ratios = np.round((inverse @ np.column_stack([q, np.eye(4)]))[speed > 1e-9] / speed[speed > 1e-9, None], 9)
            rows = np.flatnonzero(speed > 1e-9)
            ties += np.sum(ratios[:, 0] == ratios[:, 0].min()) > 1
            expected = rows[np.lexsort(ratios.T[::-1])[0]]
            leaves_at_once = [row for row in rows[ratios[:, 0] == ratios[:, 0].min()] if tableau.basic[row] == 8]
            assert ratio_test(tableau, state.column)[0] == (leaves_at_once or [expected])[0]
            state = exchange(state)
    assert ties > 10


def test_iteration_limit():
    H, q = problems.p_matrix(np.random.default_rng(5), 12)
    full = find_active_set(H, q)
    assert full.pivots > 3
    short = find_active_set(H, q, 3)
    assert short.status == Status.ITERATION_LIMIT
    assert short.pivots == 3
