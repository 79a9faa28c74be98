"""Linear systems of a handful of unknowns, many at a time.

Gaussian elimination with partial pivoting, written as a loop of elementwise operations so that under ``vmap`` it runs
over the whole batch at once. Batched LAPACK calls are no faster at these sizes and share one thread pool, in which
several of them at a time can wait for each other. Kernels eliminate in scalars
(:mod:`shadowfit.kernels.rules.elimination`).
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.kernels.operation import operation
from shadowfit.kernels.rules import elimination
from shadowfit.lazy_jax import jax, jnp


@operation(unroll=elimination.solve)
def small_solve(
    matrix: Float[Array, "n n"], rhs: Float[Array, "n k"], *, definite: bool = False
) -> Float[jax.Array, "n k"]:
    """``A⁻¹ B``; not finite if A is singular. Differentiate around it, not through it.

    ``definite`` promises that ``A + Aᵀ`` is positive definite, as of mass matrices with forces that take energy out:
    kernels then leave out the search for pivots, which is most of the work.
    """
    del definite
    size = matrix.shape[0]
    if size == 0:
        return jnp.zeros(rhs.shape)
    # Unknowns are scaled to a unit diagonal where there is one: masses and inertias differ by orders of magnitude.
    scale = 1.0 / jnp.sqrt(jnp.maximum(jnp.abs(jnp.diagonal(matrix)), jnp.finfo(matrix.dtype).tiny))
    system = jnp.concatenate([matrix * scale[:, None] * scale[None], rhs * scale[:, None]], axis=1)
    places = jnp.arange(size)

    def eliminate(k: jax.Array, system: jax.Array) -> jax.Array:
        column = jnp.where(places >= k, jnp.abs(system[:, k]), -1.0)
        pivot = jnp.argmax(column)
        upper, lower = system[k], system[pivot]
        system = jnp.where((places == k)[:, None], lower, jnp.where((places == pivot)[:, None], upper, system))
        row = lower / lower[k]
        cleared = system - system[:, k][:, None] * row
        return jnp.where((places == k)[:, None], row, cleared)

    return jax.lax.fori_loop(0, size, eliminate, system)[:, size:] * scale[:, None]
