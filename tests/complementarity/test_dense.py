"""Dense factorisation: solutions, derivatives, singular matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from shadowfit.complementarity import dense


@jax.jit
def solve(A, b):
    return dense.factor(A).solve(b)


@pytest.mark.parametrize("shape", [(1,), (7,), (7, 3)])
def test_solves(shape):
    rng = np.random.default_rng(2)
    A, b = rng.normal(size=(shape[0], shape[0])), rng.normal(size=shape)
    np.testing.assert_allclose(solve(A, b), np.linalg.solve(A, b), rtol=1e-10)


def test_derivatives_equal_finite_differences():
    rng = np.random.default_rng(0)
    A, b = jnp.array(rng.normal(size=(4, 4)) + 3 * np.eye(4)), jnp.array(rng.normal(size=(4, 2)))
    check_grads(solve, (A, b), order=1, modes=("fwd", "rev"), rtol=1e-6)


def test_badly_scaled_but_regular():
    """Pivots are judged against their column, hence twelve decades between them are no singularity."""
    A = jnp.array([[1e6, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(solve(A, jnp.array([1.0, 2.0])), [-2.0, 2e6 + 1], rtol=1e-12)


def test_singular_matrices_stay_finite():
    """Alone and in a batch, forwards and backwards; an unknown that is not determined is exactly zero."""
    rng = np.random.default_rng(1)
    thin = rng.normal(size=(4, 2))
    A = np.stack([np.zeros((4, 4)), np.ones((4, 4)), thin @ thin.T, np.diag([1.0, 0.0, 2.0, 0.0])])
    b = np.ones((4, 4))
    x, gradient = jax.jit(jax.vmap(jax.value_and_grad(lambda A, b: solve(A, b).sum())))(A, b)
    assert np.isfinite(x).all()
    assert np.isfinite(gradient).all()
    solutions = jax.jit(jax.vmap(solve))(A, b)
    np.testing.assert_array_equal(solutions[0], 0.0)
    np.testing.assert_allclose(solutions[1], [1.0, 0.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(solutions[3], [1.0, 0.0, 0.5, 0.0])
    for matrix, solution in zip(A, solutions, strict=True):
        np.testing.assert_allclose(solve(matrix, np.ones(4)), solution, rtol=1e-12)


def test_no_rows():
    assert dense.factor(jnp.zeros((0, 0))).solve(jnp.zeros((0, 4))).shape == (0, 4)
