"""Linear systems in kernels: with a search for pivots as XLA has it; without one where the caller promises enough."""

import jax
import numpy as np
import pytest

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.kernels import kernel


def solved(matrices, right, **settings):
    compiled = kernel(lambda s, c, v: [small_solve(*v, **settings)], [], [], [matrices[0], right[0]], None)
    return compiled([], [], [matrices, right])[0]


@pytest.fixture
def right():
    return np.random.default_rng(1).standard_normal((6, 4, 2))


def test_pivots_are_searched_for(right):
    """Zeros on the diagonal, which elimination in order would divide by, and rows of very different size."""
    matrices = np.random.default_rng(0).standard_normal((6, 4, 4))
    matrices[:, 0, 0] = matrices[1:3, 1, 1] = 0.0
    matrices[3:] *= 10.0 ** np.arange(-6.0, 6.0, 3.0)[:, None]
    found = solved(matrices, right)
    np.testing.assert_allclose(found, np.linalg.solve(matrices, right), rtol=1e-9)
    np.testing.assert_allclose(found, jax.vmap(small_solve)(matrices, right), rtol=1e-9)
    permuted = np.eye(4)[[2, 0, 3, 1]][None].repeat(6, axis=0)
    np.testing.assert_array_equal(solved(permuted, right), np.linalg.solve(permuted, right))


def test_a_definite_matrix_needs_none(right):
    """``A + Aᵀ`` positive definite, with masses over many orders of magnitude and a skew part."""
    rng = np.random.default_rng(2)
    roots, skew = rng.standard_normal((6, 4, 4)), rng.standard_normal((6, 4, 4))
    scale = np.diag(10.0 ** np.array([-4.0, 3.0, 0.0, -1.0]))
    matrices = scale @ (roots @ roots.mT + np.eye(4) + skew - skew.mT) @ scale
    found = solved(matrices, scale @ right, definite=True)
    expected = np.linalg.solve(matrices, scale @ right)
    np.testing.assert_allclose(scale @ found, scale @ expected, rtol=1e-9)
