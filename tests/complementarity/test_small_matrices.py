"""Small factorisations: batches (elementwise loops) equal single matrices (LAPACK), and batches do not lock up."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.complementarity import small_matrices
from shadowfit.complementarity.small_matrices import triangular_solver


def test_cholesky():
    rng = np.random.default_rng(0)
    roots = np.tril(rng.normal(size=(4, 5, 5)), -1) + np.eye(5) * rng.uniform(0.5, 2, (4, 1, 5))
    matrices = np.array(roots @ np.swapaxes(roots, 1, 2))
    matrices[0, 1, 1] = -1.0
    batch = jax.jit(jax.vmap(small_matrices.cholesky))(matrices)
    np.testing.assert_allclose(batch[1:], roots[1:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(jax.jit(small_matrices.cholesky)(matrices[1]), roots[1], rtol=1e-12, atol=1e-14)
    assert np.isnan(batch[0]).any()


def test_lu():
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(5, 6, 6))
    matrices[0, :, 2] = 0.0  # a zero pivot
    lower_upper, permutation = jax.jit(jax.vmap(small_matrices.lu))(matrices)
    single = jax.jit(small_matrices.lu)
    for index, matrix in enumerate(matrices):
        lower, upper = np.tril(lower_upper[index], -1) + np.eye(6), np.triu(lower_upper[index])
        np.testing.assert_allclose(lower @ upper, matrix[permutation[index]], atol=1e-13)
        assert np.abs(lower).max() <= 1.0
        reference = single(matrix)
        assert (reference[1] == permutation[index]).all()
        np.testing.assert_allclose(lower_upper[index], reference[0], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("lower", "transposed"), list(itertools.product([False, True], repeat=2)))
def test_triangular_solves(lower, transposed):
    rng = np.random.default_rng(2)
    full = rng.normal(size=(3, 5, 5)) + 3 * np.eye(5)
    rhs = rng.normal(size=(3, 5, 2))
    unit_diagonal = lower  # as in LU
    triangles = np.tril(full) if lower else np.triu(full)
    if unit_diagonal:
        triangles[:, range(5), range(5)] = 1.0
    matrices = np.swapaxes(triangles, 1, 2) if transposed else triangles
    solve = triangular_solver(lower, transposed, unit_diagonal)
    both, first, second = (jax.jit(jax.vmap(solve, in_axes)) for in_axes in [(0, 0), (None, 0), (0, None)])
    np.testing.assert_allclose(both(full, rhs), np.linalg.solve(matrices, rhs), rtol=1e-10)
    np.testing.assert_allclose(first(full[0], rhs), np.linalg.solve(matrices[[0, 0, 0]], rhs), rtol=1e-10)
    np.testing.assert_allclose(second(full, rhs[0]), np.linalg.solve(matrices, rhs[[0, 0, 0]]), rtol=1e-10)


def test_many_batches_at_a_time():
    """Eight independent solves of 300 matrices, many times over: batched LAPACK calls would lock up here."""
    matrices = 3 * jnp.eye(14) + 0.1 * jnp.ones((8, 300, 14, 14))
    solve = jax.vmap(triangular_solver(lower=True))

    @jax.jit
    def repeat(matrices):
        def body(_, total):
            parts = [solve(matrix + 1e-9 * total, matrix[:, :, :1]) for matrix in matrices]
            return sum(jnp.sum(part) for part in parts)

        return jax.lax.fori_loop(0, 20, body, 0.0)

    single = np.linalg.solve(np.tril(matrices[0, 0]), matrices[0, 0, :, :1]).sum()
    np.testing.assert_allclose(repeat(matrices), 2400 * single, rtol=1e-3)
