"""Units in which all equations and unknowns of a complementarity problem are about equally large."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def equilibrate(H: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Positive scales r, c of rows and columns that bring the largest entry of each in ``r_i H_ij c_j`` near 1.

    A complementarity problem stays the same when its equations and unknowns change units, and in these units
    one tolerance serves all of them. The scales are powers of two: scaling makes no rounding errors.
    """
    size = jnp.abs(H)
    rows, columns = jnp.ones_like(size[0]), jnp.ones_like(size[0])
    for _ in range(2):
        scaled = rows[:, None] * size * columns
        rows, columns = rows * _inverse_root(jnp.max(scaled, axis=1)), columns * _inverse_root(jnp.max(scaled, axis=0))
    return rows, columns


def _inverse_root(size: Float[Array, " n"]) -> Float[Array, " n"]:
    """The power of two nearest to ``size^(−1/2)``; 1 for zero."""
    return jnp.exp2(-jnp.round(0.5 * jnp.log2(jnp.where(size > 0, size, 1.0))))
