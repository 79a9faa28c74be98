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
    rng = np.random.default_rng(1)
    thin = rng.normal(size=(4, 2))
    gradient = jax.jit(jax.grad(lambda A, b: solve(A, b).sum()))
    for A in (np.zeros((4, 4)), np.ones((4, 4)), thin @ thin.T, np.diag([1.0, 0.0, 2.0, 0.0])):
        assert np.isfinite(solve(A, np.ones(4))).all()
        assert np.isfinite(gradient(A, np.ones(4))).all()
    np.testing.assert_allclose(solve(np.ones((4, 4)), np.ones(4)), [1.0, 0.0, 0.0, 0.0], atol=1e-15)


def test_no_rows():
    assert dense.factor(jnp.zeros((0, 0))).solve(jnp.zeros((0, 4))).shape == (0, 4)
