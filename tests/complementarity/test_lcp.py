"""Linear complementarity: against enumeration and linear programming, warm starts, batches, failures, derivatives."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from scipy.optimize import linprog

from complementarity import problems
from shadowfit.complementarity import LcpShapeError, Status, lcp, solve_lcp

compiled = jax.jit(solve_lcp)


def solve(H, q, guess=None, max_pivots=500):
    """All arguments given, so that each size of problem is compiled once."""
    return compiled(H, q, np.zeros(len(q), bool) if guess is None else guess, max_pivots)


def assert_solution(H, q, solution):
    assert solution.status == Status.SOLVED
    z, w = np.array(solution.z), np.array(solution.w)
    assert (z >= 0).all()
    assert (w >= 0).all()
    assert (z * w == 0).all()
    assert (z[~solution.active] == 0).all()
    assert problems.residual(H, q, z) < 1e-9


@pytest.mark.parametrize("kind", problems.KINDS)
@pytest.mark.parametrize(("n", "count"), [(4, 40), (12, 3)])
def test_against_enumeration(kind, n, count):
    rng = np.random.default_rng(n)
    for _ in range(count):
        H, q = problems.KINDS[kind](rng, n)
        solution = solve(H, q)
        assert_solution(H, q, solution)
        reference = problems.enumerate_lcp(H, q)
        scale = np.abs(reference).max(initial=0.0)
        assert np.abs(reference - solution.z).max(axis=1).min() <= 1e-7 * scale


def test_p_matrix_has_one_solution():
    rng = np.random.default_rng(0)
    for _ in range(20):
        H, q = problems.p_matrix(rng, 4)
        reference = problems.enumerate_lcp(H, q)
        assert len(reference) == 1
        np.testing.assert_allclose(solve(H, q).z, reference[0], atol=1e-9 * np.abs(reference).max())


def test_box_problem_clips():
    """For a diagonal T the problem ``|T x + c| ≤ L`` has the solution ``T x = clip(0, −L − c, L − c)``."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        T, c, limit = rng.uniform(0.5, 2, 6), 3 * rng.normal(size=6), rng.uniform(0, 2, 6)
        H = np.block([[np.diag(T), -np.diag(T)], [-np.diag(T), np.diag(T)]])
        z = solve(H, np.concatenate([limit + c, limit - c])).z
        np.testing.assert_allclose(T * (z[:6] - z[6:]), np.clip(0, -limit - c, limit - c), atol=1e-12)


@pytest.mark.parametrize("regularisation", [1e-3, 1e-8, 0.0])
def test_friction_of_any_stiffness(regularisation):
    rng = np.random.default_rng(2)
    for _ in range(60):
        H, q = problems.friction(rng, 12, regularisation)
        assert_solution(H, q, solve(H, q))


numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4, width=32))
powers = hnp.arrays(np.float64, 4, elements=st.integers(-4, 4).map(lambda power: 10.0**power))


@given(
    hnp.arrays(np.float64, (4, 4), elements=numbers),
    hnp.arrays(np.float64, 4, elements=numbers),
    powers,
    powers,
    hnp.arrays(bool, 4),
)
@settings(max_examples=200)
def test_solved_means_solved(H, q, rows, columns, guess):
    """Whatever the matrix, its units and the guess: the status can be trusted and nothing becomes NaN."""
    H, q = rows[:, None] * H * columns, rows * q
    solution = solve(H, q, guess)
    assert np.isfinite(solution.z).all()
    assert np.isfinite(solution.w).all()
    if solution.status == Status.SOLVED:
        assert_solution(H, q, solution)
    else:
        assert solution.status in (Status.RAY, Status.ITERATION_LIMIT, Status.INACCURATE)


@given(
    hnp.arrays(np.float64, (4, 2), elements=st.integers(-2, 2).map(float)),
    hnp.arrays(np.float64, 4, elements=st.integers(-2, 2).map(float)),
)
@settings(max_examples=100)
def test_semidefinite_problem_is_solved_exactly_if_feasible(root, q):
    """For a positive semidefinite H a solution exists as soon as some z ≥ 0 has H z + q ≥ 0."""
    H = root @ root.T
    feasible = linprog(np.zeros(4), A_ub=-H, b_ub=q).status == 0
    assert solve(H, q).status == (Status.SOLVED if feasible else Status.RAY)


def test_units_do_not_matter():
    rng = np.random.default_rng(3)
    H, q = problems.friction(rng, 12)
    rows, columns = 10.0 ** rng.uniform(-6, 6, (2, 12))
    solution, scaled = solve(H, q), solve(rows[:, None] * H * columns, rows * q)
    assert scaled.status == Status.SOLVED
    np.testing.assert_allclose(columns * scaled.z, solution.z, rtol=1e-9, atol=1e-12 * np.max(solution.z))


@pytest.mark.parametrize("kind", ["p-matrix", "friction"])
def test_guess_changes_the_way_but_not_the_result(kind):
    rng = np.random.default_rng(4)
    for _ in range(30):
        H, q = problems.KINDS[kind](rng, 12)
        cold = solve(H, q)
        warm = solve(H, q, cold.active)
        assert warm.pivots == 0
        np.testing.assert_allclose(warm.z, cold.z, rtol=1e-12, atol=1e-14)
        assert (warm.active == cold.active).all()
        assert_solution(H, q, solve(H, q, ~cold.active))


def test_guess_off_by_little_needs_no_pivoting():
    """With one index wrong, Newton steps suffice for a symmetric diagonally dominant matrix."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        H = rng.normal(size=(12, 12))
        H = H + H.T + 40 * np.eye(12)
        q = rng.normal(size=12)
        active = np.array(solve(H, q).active)
        active[rng.integers(12)] ^= True
        assert solve(H, q, active).pivots == 0


def test_batch_equals_one_by_one():
    """Easy, hard, degenerate, infeasible and damaged problems side by side, and their derivatives.

    A solution is homogeneous of degree one in q, hence equal to its derivative along q.
    """
    rng = np.random.default_rng(6)
    cases = [problems.KINDS[kind](rng, 12) for kind in problems.KINDS for _ in range(4)]
    cases += [(np.eye(12), np.ones(12)), (-np.ones((12, 12)), -np.ones(12)), (np.full((12, 12), np.nan), np.ones(12))]
    H, q = (np.stack(arrays) for arrays in zip(*cases, strict=True))
    guess = rng.random((len(cases), 12)) < 0.3

    @jax.jit
    @jax.vmap
    def batched(H, q, guess):
        def along(factor):
            solution = solve_lcp(H, factor * q, guess)
            return solution.z.sum(), solution

        return jax.grad(along, has_aux=True)(1.0)

    derivative, batch = batched(H, q, guess)
    assert set(batch.status.tolist()) == {Status.SOLVED, Status.RAY, Status.INACCURATE}
    for index in range(len(cases)):
        single = solve(H[index], q[index], guess[index])
        assert batch.status[index] == single.status
        if single.status == Status.SOLVED:
            solution = jax.tree.map(lambda leaf, index=index: leaf[index], batch)
            assert_solution(H[index], q[index], solution)
            scale = np.abs(q[index]).max()
            np.testing.assert_allclose(solution.w, single.w, rtol=1e-8, atol=1e-10 * scale)  # z need not be unique
            np.testing.assert_allclose(derivative[index], solution.z.sum(), rtol=1e-7, atol=1e-12)


def test_newton_cycle_is_left_to_lemke():
    """From the set {1} the Newton steps go round in a circle for this matrix."""
    H = scipy.linalg.block_diag([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]], 1.0)
    solution = solve(H, np.array([-1.0, -1.0, -1.0, 1.0]), np.array([True, False, False, False]))
    assert solution.pivots > 0
    np.testing.assert_allclose(solution.z, [1 / 3, 1 / 3, 1 / 3, 0.0], rtol=1e-14)


def test_failures_are_reported():
    H, q = problems.friction(np.random.default_rng(7), 12)
    assert solve(H, q).pivots > 1
    limited = solve(H, q, max_pivots=1)
    assert limited.status == Status.ITERATION_LIMIT
    assert limited.pivots == 1
    assert solve(-np.eye(4), -np.ones(4)).status == Status.RAY
    assert solve(np.eye(4), np.array([np.nan, 1.0, 1.0, 1.0])).status == Status.INACCURATE
    assert solve(np.full((4, 4), np.inf), -np.ones(4)).status == Status.INACCURATE
    assert len({status.text for status in Status}) == len(Status)


def test_noise_is_no_solution():
    """A singular matrix has active sets that rounding errors make regular; their huge ``z`` must not pass.

    With ``v > 0``, ``H v = 0`` and ``q·v < 0`` there is no solution, since ``0 ≤ v·w = q·v``.
    """
    rng = np.random.default_rng(12)
    for _ in range(100):
        root = rng.normal(size=(12, 7))
        null = np.linalg.svd(root)[0][:, -1]
        root, null = root * np.sign(null)[:, None], np.abs(null)
        q = rng.normal(size=12)
        q -= (q @ null + 0.3) * null
        assert solve(root @ root.T, q, rng.random(12) < 0.8).status == Status.RAY


def test_duplicate_constraints():
    """Two equal rows share one impulse; the singular active set is harmless, also in the derivative."""
    H = scipy.linalg.block_diag(np.full((2, 2), 3.0), np.eye(10))
    q, guess = -np.ones(12), np.ones(12, bool)
    solution = solve(H, q, guess)
    assert solution.pivots == 0
    assert_solution(H, q, solution)
    np.testing.assert_allclose(solution.z[:2].sum(), 1 / 3)
    assert all(np.isfinite(jacobian).all() for jacobian in jax.tree.leaves(jacobians(H, q, guess)))


def test_no_unknowns():
    solution = solve_lcp(jnp.zeros((0, 0)), jnp.zeros(0))
    assert solution.status == Status.SOLVED
    assert solution.z.shape == solution.w.shape == solution.active.shape == (0,)


def test_shapes_are_checked():
    with pytest.raises(LcpShapeError, match=r"H \(2, 3\), q \(2,\)"):
        solve_lcp(jnp.zeros((2, 3)), jnp.zeros(2))
    with pytest.raises(LcpShapeError, match=r"guess \(3,\)"):
        solve_lcp(jnp.zeros((2, 2)), jnp.zeros(2), jnp.zeros(3, bool))


def test_violation_measures_the_distance_to_a_solution():
    H, q = problems.p_matrix(np.random.default_rng(8), 12)
    z = solve(H, q).z
    violation = jax.jit(lcp.violation)
    assert violation(H, q, z) < 1e-14
    for shift in (1e-6, 1e-3):
        np.testing.assert_allclose(violation(H, q, z + (z > 0) * shift), problems.residual(H, q, z + (z > 0) * shift))
    assert violation(H, q, z * np.nan) == np.inf


def differentiable_problem(kind):
    """A problem with active and passive indices, all of them far from switching."""
    rng = np.random.default_rng(9)
    while True:
        H, q = problems.KINDS[kind](rng, 12)
        solution = solve(H, q)
        z, w = np.array(solution.z), np.array(solution.w)
        sizes = np.where(solution.active, z / z.max(), w / w.max())
        if solution.pivots > 0 and 2 < solution.active.sum() < 11 and sizes.min() > 1e-3:
            return jnp.array(H), jnp.array(q)


@jax.jit
def jacobians(H, q, guess):
    def unknowns_and_slacks(H, q):
        solution = solve_lcp(H, q, guess)
        return jnp.concatenate([solution.z, solution.w])

    return jax.jacfwd(unknowns_and_slacks, (0, 1))(H, q), jax.jacrev(unknowns_and_slacks, (0, 1))(H, q)


@pytest.mark.parametrize("kind", problems.KINDS)
def test_derivatives_equal_finite_differences(kind):
    H, q = differentiable_problem(kind)
    rng = np.random.default_rng(10)
    H_dot, q_dot = rng.normal(size=H.shape) * np.abs(H), rng.normal(size=q.shape) * np.abs(q)
    step = 1e-6
    ends = [solve(H + s * H_dot, q + s * q_dot) for s in (step, -step)]
    ahead, behind = (np.concatenate([end.z, end.w]) for end in ends)
    difference = (ahead - behind) / (2 * step)
    forward, reverse = jacobians(H, q, np.zeros(12, bool))
    for by_H, by_q in (forward, reverse):
        tangent = np.einsum("kij,ij->k", by_H, H_dot) + by_q @ q_dot
        for part in (slice(0, 12), slice(12, 24)):
            size = np.abs(difference[part]).max()
            np.testing.assert_allclose(tangent[part], difference[part], rtol=1e-6, atol=1e-7 * size)
    for a, b in zip(forward, reverse, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(a).max())


def test_second_derivative():
    """On the active set ``z = −H⁻¹ q``, hence ``z̈ = 2 H⁻¹ Ḣ H⁻¹ Ḣ z`` when H moves along a line."""
    H, q = (
        jnp.array([[3.0, 1.0, 0.0, 0.0], [-1.0, 2.0, 1.0, 0.0], [0.0, 1.0, 4.0, 0.0], [0.0, 0.0, 0.0, 1.0]]),
        -jnp.ones(4),
    )
    H_dot = jnp.array(np.random.default_rng(11).normal(size=(4, 4)))

    def along(t):
        return solve_lcp(H + t * H_dot, q).z

    solution = solve(H, q)
    assert solution.active.all()
    first = np.linalg.solve(H, H_dot @ solution.z)
    expected = 2 * np.linalg.solve(H, H_dot @ first)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(jax.jacrev(along)))(0.0), expected, rtol=1e-10)
