"""Dense LU factorisation of a small square matrix, which stays finite when the matrix is singular."""

from __future__ import annotations

from shadowfit.arrays import Array, Float, Int
from shadowfit.complementarity.small_matrices import lu, triangular_solver
from shadowfit.lazy_jax import jnp, lax
from shadowfit.pytrees import PyTree


class DenseFactor(PyTree):
    """A factored square matrix ``A``; `solve` applies ``A⁻¹``.

        A[permutation] = L U,   |L| ≤ 1

    Derivatives are those of the solution of ``A x = b``, ``A ẋ = ḃ − Ȧ x``, in forward and in reverse mode.
    """

    matrix: Float[Array, "n n"]
    lower_upper: Float[Array, "n n"]
    """``L`` below the diagonal (its own diagonal is 1) and ``U`` on and above it."""
    permutation: Int[Array, " n"]

    def solve(self, rhs: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
        """``A⁻¹ rhs`` for one right-hand side ``[n]`` or for several ``[n, k]``."""
        if self.matrix.shape[0] == 0:
            return rhs
        return lax.custom_linear_solve(
            lambda x: self.matrix @ x,
            rhs,
            solve=lambda _, b: self._substitute(b),
            transpose_solve=lambda _, b: self._substitute_transposed(b),
        )

    def _substitute(self, rhs: Array) -> Array:
        columns = rhs.reshape(rhs.shape[0], -1)[self.permutation]
        forward = triangular_solver(lower=True, unit_diagonal=True)(self.lower_upper, columns)
        return triangular_solver(lower=False)(self.lower_upper, forward).reshape(rhs.shape)

    def _substitute_transposed(self, rhs: Array) -> Array:
        columns = rhs.reshape(rhs.shape[0], -1)
        forward = triangular_solver(lower=False, transposed=True)(self.lower_upper, columns)
        solver = triangular_solver(lower=True, transposed=True, unit_diagonal=True)
        backward = solver(self.lower_upper, forward)
        return jnp.zeros_like(backward).at[self.permutation].set(backward).reshape(rhs.shape)


def factor(matrix: Float[Array, "n n"]) -> DenseFactor:
    """Factor a square matrix by Gaussian elimination with row exchanges.

    A pivot that is no larger than the rounding errors made in computing it is taken for zero, and the unknown
    it belongs to is set to zero: results are finite for a singular matrix too.
    """
    if matrix.shape[0] == 0:
        return DenseFactor(matrix, matrix, jnp.zeros(0, jnp.int32))
    lower_upper, permutation = lu(lax.stop_gradient(matrix))
    return DenseFactor(matrix, _without_noise(lower_upper), permutation)


def _without_noise(lower_upper: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Make pivots that are rounding errors infinite, so that dividing by them gives zero.

    Since ``|L| ≤ 1``, the terms that cancel in pivot k are no larger than the largest entry of column k of ``U``.
    """
    n = lower_upper.shape[0]
    pivots = jnp.diagonal(lower_upper)
    column_size = jnp.max(jnp.abs(jnp.triu(lower_upper)), axis=0)
    noise = 4 * n * jnp.finfo(lower_upper.dtype).eps * column_size
    return jnp.where(jnp.eye(n, dtype=bool) & (jnp.abs(pivots) <= noise), jnp.inf, lower_upper)
