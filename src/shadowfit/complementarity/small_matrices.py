"""Cholesky, LU and triangular solves of small matrices: one at a time by LAPACK, batches by elementwise loops.

For a single matrix a LAPACK call is fastest. For a batch, elementwise operations over all matrices at once are as fast,
and there is a second reason for them: batched LAPACK calls of one program share the thread pool that runs them, and
several at a time can wait for each other for ever (seen with jaxlib 0.10 on two cores: four independent
triangular solves of 256 matrices of 14 rows). Which way is taken is decided by ``vmap``; results agree to rounding.

None of these functions is to be differentiated: `dense` and `block_ldl` differentiate the solution of a system instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from shadowfit.arrays import Array, Float, Int
from shadowfit.lazy_jax import at_first_call, jax, jnp, lax, with_vmap

TriangularSolve = Callable[[Float[Array, "n n"], Float[Array, "n k"]], Float[Array, "n k"]]


@at_first_call(lambda function: with_vmap(function, _cholesky_batched))
def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower triangular ``C`` with ``C Cᵀ`` equal to a symmetric matrix, whose lower triangle is read.

    Not a number if the matrix is not positive definite.
    """
    return lax.linalg.cholesky(jnp.asarray(matrix), symmetrize_input=False)


def _cholesky_batched(axis_size: int, batched: list[bool], matrix: Array) -> tuple[Array, bool]:
    del axis_size, batched  # the only argument is the one that is batched
    return jax.vmap(_cholesky_loop)(matrix), True


def _cholesky_loop(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Column by column: scale it, and subtract its outer product from what remains."""
    index = jnp.arange(matrix.shape[0])

    def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        remaining, root = state
        column = jnp.where(index >= k, remaining[:, k], 0.0) / jnp.sqrt(remaining[k, k])
        return remaining - column[:, None] * column, jnp.where(index == k, column[:, None], root)

    return lax.fori_loop(0, matrix.shape[0], eliminate, (matrix, jnp.zeros_like(matrix)))[1]


@at_first_call(lambda function: with_vmap(function, _lu_batched))
def lu(matrix: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Int[Array, " n"]]:
    """``L`` (unit diagonal, not stored) and ``U`` in one matrix, and the row exchanges: ``A[permutation] = L U``."""
    lower_upper, _, permutation = lax.linalg.lu(matrix)
    return lower_upper, permutation


def _lu_batched(axis_size: int, batched: list[bool], matrix: Array) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
    del axis_size, batched  # the only argument is the one that is batched
    return jax.vmap(_lu_loop)(matrix), (True, True)


def _lu_loop(matrix: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Int[Array, " n"]]:
    """Gaussian elimination with the largest remaining entry of each column as pivot."""
    n = matrix.shape[0]
    index = jnp.arange(n, dtype=jnp.int32)

    def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        work, permutation = state
        pivot_row = jnp.argmax(jnp.where(index >= k, jnp.abs(work[:, k]), -1.0))
        exchanged = jnp.where(index == k, pivot_row, jnp.where(index == pivot_row, k, index))
        work, permutation = work[exchanged], permutation[exchanged]
        row, pivot = work[k], work[k, k]
        # As in LAPACK, a zero pivot leaves its column, which is zero, as it is.
        multiplier = jnp.where(index > k, work[:, k] / jnp.where(pivot == 0, 1.0, pivot), 0.0)
        work = work - multiplier[:, None] * jnp.where(index > k, row, 0.0)
        return jnp.where((index == k) & (index[:, None] > k), multiplier[:, None], work), permutation

    return lax.fori_loop(0, n, eliminate, (matrix, index))


@functools.cache
def triangular_solver(lower: bool, transposed: bool = False, unit_diagonal: bool = False) -> TriangularSolve:
    """The function ``(T, B) ↦ T⁻¹ B``, or ``T⁻ᵀ B``, that reads one triangle of T, with or without its diagonal."""

    @at_first_call(lambda function: with_vmap(function, solve_batched))
    def solve(triangle: Float[Array, "n n"], rhs: Float[Array, "n k"]) -> Float[Array, "n k"]:
        return lax.linalg.triangular_solve(
            triangle, rhs, left_side=True, lower=lower, transpose_a=transposed, unit_diagonal=unit_diagonal
        )

    def solve_batched(axis_size: int, batched: list[bool], triangle: Array, rhs: Array) -> tuple[Array, bool]:
        triangle_batched, rhs_batched = batched
        if not triangle_batched:  # one matrix, more columns
            columns = jnp.moveaxis(rhs, 0, 1).reshape(rhs.shape[1], -1)
            solution = solve(triangle, columns).reshape(rhs.shape[1], axis_size, -1)
            return jnp.moveaxis(solution, 1, 0), True
        return jax.vmap(loop, in_axes=(0, 0 if rhs_batched else None))(triangle, rhs), True

    def loop(triangle: Float[Array, "n n"], rhs: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """Unknown by unknown: solve for it, and remove it from the equations that follow."""
        n = rhs.shape[0]
        index = jnp.arange(n)
        matrix = triangle.T if transposed else triangle
        downwards = lower != transposed

        def substitute(step: Array, rhs: Array) -> Array:
            k = step if downwards else n - 1 - step
            unknown = rhs[k] if unit_diagonal else rhs[k] / matrix[k, k]
            follows = index > k if downwards else index < k
            remaining = rhs - jnp.where(follows, matrix[:, k], 0.0)[:, None] * unknown
            return jnp.where((index == k)[:, None], unknown, remaining)

        return lax.fori_loop(0, n, substitute, rhs)

    return solve
