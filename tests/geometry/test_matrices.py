"""The closed-form inverse of 3×3 matrices against LAPACK's."""

import jax
import numpy as np

from shadowfit.geometry import matrices

RNG = np.random.default_rng(2)


def test_inverse_of_any_regular_matrix() -> None:
    matrix = RNG.normal(size=(20, 3, 3))
    scale = np.linalg.cond(matrix)[:, None, None] * np.abs(np.linalg.inv(matrix)).max(axis=(1, 2), keepdims=True)
    assert np.all(np.abs(matrices.inverse(matrix) - np.linalg.inv(matrix)) < 1e-14 * scale)


def test_inverse_of_thin_inertias() -> None:
    """A rod's moments differ by many orders of magnitude."""
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    inertia = turn @ np.diag([1e-9, 1e-3, 1e-3]) @ turn.T
    np.testing.assert_allclose(matrices.inverse(inertia) @ inertia, np.eye(3), rtol=0, atol=1e-9)


def test_derivative_is_that_of_the_inverse() -> None:
    matrix, change = RNG.normal(size=(2, 3, 3))
    _, slope = jax.jvp(matrices.inverse, (matrix,), (change,))
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(slope, -inverse @ change @ inverse, rtol=1e-9)
