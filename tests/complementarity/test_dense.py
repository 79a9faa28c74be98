"""Dense factorisation: solutions, derivatives, singular matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from shadowfit.complementarity import dense


@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_solves(n, columns):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)), rng.normal(size=(n, *columns))
    np.testing.assert_allclose(dense.factor(jnp.array(A)).solve(jnp.array(b)), np.linalg.solve(A, b), rtol=1e-10)


def test_derivatives_equal_finite_differences():
    rng = np.random.default_rng(0)
    A, b = jnp.array(rng.normal(size=(4, 4)) + 3 * np.eye(4)), jnp.array(rng.normal(size=(4, 2)))
    check_grads(lambda A, b: dense.factor(A).solve(b), (A, b), order=2, modes=("fwd", "rev"), rtol=1e-6)


def test_badly_scaled_but_regular():
    """Pivots are judged against their column, hence twelve decades between them are no singularity."""
    A = jnp.array([[1e6, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(dense.factor(A).solve(jnp.array([1.0, 2.0])), [-2.0, 2e6 + 1], rtol=1e-12)


def test_singular_matrices_stay_finite():
    rng = np.random.default_rng(1)
    thin = rng.normal(size=(6, 3))
    for A in (np.zeros((3, 3)), np.ones((3, 3)), thin @ thin.T, np.diag([1.0, 0.0, 2.0])):
        A = jnp.array(A)
        x = dense.factor(A).solve(jnp.ones(A.shape[0]))
        gradient = jax.grad(lambda A: dense.factor(A).solve(jnp.ones(A.shape[0])).sum())(A)
        assert jnp.isfinite(x).all()
        assert jnp.isfinite(gradient).all()
    np.testing.assert_allclose(dense.factor(jnp.ones((3, 3))).solve(jnp.ones(3)), [1.0, 0.0, 0.0], atol=1e-15)


def test_no_rows():
    assert dense.factor(jnp.zeros((0, 0))).solve(jnp.zeros((0, 4))).shape == (0, 4)
