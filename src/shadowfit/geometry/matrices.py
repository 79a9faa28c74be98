"""Inverse of 3×3 matrices in closed form: inertias are inverted at every step, where a LAPACK call would cost more."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from shadowfit.arrays import Array


def inverse(matrix: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3 3"]:
    """``A⁻¹`` from the cross products of the rows of ``A``; not finite if A is singular."""
    a, b, c = matrix[..., 0, :], matrix[..., 1, :], matrix[..., 2, :]
    columns = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], axis=-1)
    determinant = jnp.sum(a * columns[..., 0], axis=-1)
    return columns / determinant[..., None, None]
