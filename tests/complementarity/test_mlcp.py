"""Mixed complementarity: against enumeration, with dense and block factors, without either part, derivatives."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.complementarity import LcpShapeError, Status, block_ldl, dense, solve_mlcp


def mixed_problem(rng, a, b):
    """Positive definite, not symmetric, with a symmetric upper left block."""
    n = a + b
    root, skew = rng.normal(size=(2, n, n))
    skew = skew - skew.T
    skew[:a, :a] = 0
    return root @ root.T + 0.1 * np.eye(n) + skew, 2 * rng.normal(size=n)


def parts(S, offset, a):
    return S[:a, a:], S[a:, :a], S[a:, a:], offset[:a], offset[a:]


compiled = jax.jit(lambda S_AA, *rest: solve_mlcp(dense.factor(S_AA), *rest))


def solve_dense(S, offset, a, guess=None):
    """All arguments given, so that each size of problem is compiled once."""
    return compiled(S[:a, :a], *parts(S, offset, a), np.zeros(len(offset) - a, bool) if guess is None else guess)


CHAIN = block_ldl.plan([2, 2, 2], [(1, 0), (2, 1)], group_size=0)


@jax.jit
def solve_chain(S, offset):
    """The same with a block factor of the first six rows."""
    blocks = {(i, j): S[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] for i, j in [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]}
    return solve_mlcp(block_ldl.factor(CHAIN, blocks), *parts(S, offset, 6))


def chain_problem(rng):
    S, offset = mixed_problem(rng, 6, 4)
    S[4:6, :2] = S[:2, 4:6] = 0
    return S, offset


def enumerate_mlcp(S, offset, a):
    """The solution (λ, z) by trying every active set of the complementary rows."""
    n = len(offset)
    for active in itertools.product([False, True], repeat=n - a):
        index = np.flatnonzero([True] * a + list(active))
        x = np.zeros(n)
        x[index] = np.linalg.solve(S[np.ix_(index, index)], -offset[index])
        if (x[a:] >= -1e-12).all() and ((S @ x + offset)[a:] >= -1e-12).all():
            return x
    raise AssertionError("no active set solves the problem")


@pytest.mark.parametrize(("a", "b"), [(6, 4), (4, 8)])
def test_against_enumeration(a, b):
    rng = np.random.default_rng(a)
    for _ in range(10):
        S, offset = mixed_problem(rng, a, b)
        solution = solve_dense(S, offset, a)
        assert solution.status == Status.SOLVED
        reference = enumerate_mlcp(S, offset, a)
        np.testing.assert_allclose(solution.free, reference[:a], atol=1e-9)
        np.testing.assert_allclose(solution.complementary, reference[a:], atol=1e-9)
        np.testing.assert_allclose(solution.slack, (S @ reference + offset)[a:], atol=1e-9)


def test_nonsymmetric_equality_part():
    rng = np.random.default_rng(0)
    S, offset = mixed_problem(rng, 4, 8)
    S[0, 1] += 2.0
    S[1, 0] -= 2.0
    solution = solve_dense(S, offset, 4)
    np.testing.assert_allclose(solution.free, enumerate_mlcp(S, offset, 4)[:4], atol=1e-9)


def test_block_factor_equals_dense():
    S, offset = chain_problem(np.random.default_rng(1))
    structured, reference = solve_chain(S, offset), solve_dense(S, offset, 6)
    np.testing.assert_allclose(structured.free, reference.free, rtol=1e-10)
    np.testing.assert_allclose(structured.complementary, reference.complementary, rtol=1e-10)
    assert (structured.active == reference.active).all()


def test_guess_from_a_similar_problem():
    rng = np.random.default_rng(2)
    S, offset = mixed_problem(rng, 4, 8)
    cold = solve_dense(S, offset, 4)
    warm = solve_dense(S, 1.001 * offset, 4, cold.active)
    assert warm.pivots == 0
    np.testing.assert_allclose(warm.complementary, 1.001 * cold.complementary, rtol=1e-10, atol=1e-14)


def test_without_complementary_rows():
    rng = np.random.default_rng(3)
    S, offset = mixed_problem(rng, 5, 0)
    solution = solve_dense(S, offset, 5)
    np.testing.assert_allclose(solution.free, -np.linalg.solve(S, offset), rtol=1e-10)
    assert solution.status == Status.SOLVED
    assert solution.complementary.shape == (0,)


def test_without_free_unknowns():
    rng = np.random.default_rng(4)
    S, offset = mixed_problem(rng, 0, 4)
    solution = solve_dense(S, offset, 0)
    np.testing.assert_allclose(solution.complementary, enumerate_mlcp(S, offset, 0), atol=1e-10)
    assert solution.free.shape == (0,)


def test_indefinite_equality_part_is_never_called_solved():
    S, offset = chain_problem(np.random.default_rng(6))
    S[0, 0] = -1.0
    assert solve_chain(S, offset).status == Status.INACCURATE
    equality = block_ldl.factor(block_ldl.plan([1], []), {(0, 0): -jnp.eye(1)})
    nothing = jnp.zeros((1, 0)), jnp.zeros((0, 1)), jnp.zeros((0, 0)), jnp.ones(1), jnp.zeros(0)
    assert solve_mlcp(equality, *nothing).status == Status.INACCURATE


def test_shapes_are_checked():
    rest = jnp.zeros((2, 2)), jnp.zeros((2, 3)), jnp.zeros((2, 2)), jnp.zeros(2), jnp.zeros(2)
    with pytest.raises(LcpShapeError, match=r"S_BA \(2, 3\)"):
        solve_mlcp(dense.factor(jnp.eye(2)), *rest)


def test_derivatives_equal_finite_differences():
    """Along a random direction forwards, and against a random weight of the results backwards."""
    rng = np.random.default_rng(5)
    S, offset = chain_problem(rng)
    S_dot, offset_dot = rng.normal(size=S.shape), rng.normal(size=offset.shape)
    S_dot[:6, :6] += S_dot[:6, :6].T
    weight = rng.normal(size=14)

    def results(S, offset):
        solution = solve_chain(S, offset)
        return jnp.concatenate([solution.free, solution.complementary, solution.slack])

    @jax.jit
    def value_and_derivatives(S, offset):
        value, tangent = jax.jvp(results, (S, offset), (jnp.array(S_dot), jnp.array(offset_dot)))
        return value, tangent, jax.grad(lambda S, offset: weight @ results(S, offset), (0, 1))(S, offset)

    value, tangent, (by_S, by_offset) = value_and_derivatives(S, offset)
    z, w = np.split(value[6:], 2)
    assert 0 < (z > 0).sum() < 4
    assert np.maximum(z, w).min() > 1e-2  # far from switching
    step = 1e-6
    ahead, behind = (value_and_derivatives(S + s * S_dot, offset + s * offset_dot)[0] for s in (step, -step))
    difference = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(tangent, difference, rtol=1e-6, atol=1e-8 * np.abs(difference).max())
    np.testing.assert_allclose(np.sum(by_S * S_dot) + by_offset @ offset_dot, weight @ difference, rtol=1e-6)
