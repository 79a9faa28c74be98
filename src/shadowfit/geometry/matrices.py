"""Inverse of 3×3 matrices in closed form: inertias are inverted at every step, where a LAPACK call would cost more."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.lazy_jax import namespace


def inverse(matrix: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3 3"]:
    """``A⁻¹`` from the cross products of the rows of ``A``; not finite if A is singular."""
    library = namespace(matrix)
    a, b, c = matrix[..., 0, :], matrix[..., 1, :], matrix[..., 2, :]
    columns = library.stack([library.cross(b, c), library.cross(c, a), library.cross(a, b)], axis=-1)
    determinant = library.sum(a * columns[..., 0], axis=-1)
    return columns / determinant[..., None, None]
