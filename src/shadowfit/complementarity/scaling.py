"""Units in which all equations and unknowns of a complementarity problem are about equally large."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.lazy_jax import jnp, lax


def equilibrate(H: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Positive scales r, c of rows and columns that bring the largest entries of ``r_i H_ij c_j`` near 1.

    A complementarity problem stays the same when its equations and unknowns change units, and in these units
    one tolerance serves all of them. Two passes of dividing each row and column by the square root of its largest
    entry suffice: the first weighs impulses by inverse masses, the second evens out rows of pure numbers.
    """
    size: Array = jnp.abs(H)
    rows, columns = _inverse_root(jnp.max(size, axis=1)), _inverse_root(jnp.max(size, axis=0))
    size = rows[:, None] * size * columns
    return rows * _inverse_root(jnp.max(size, axis=1)), columns * _inverse_root(jnp.max(size, axis=0))


def _inverse_root(size: Float[Array, " n"]) -> Float[Array, " n"]:
    """``size^(−1/2)``, and 1 for zero."""
    return lax.rsqrt(jnp.where(size > 0, size, 1.0))
