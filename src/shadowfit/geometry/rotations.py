"""Unit quaternions and rotation vectors.

One convention everywhere: quaternions are ``wxyz`` and map body to world; rotation vectors and angular velocities
are in the *world* frame, so an increment multiplies from the left::

    e ⊞ ψ = exp(ψ) ⋆ e          a ⊟ b = log(a ⋆ b*)          (b ⊞ (a ⊟ b) = a)

All functions take leading batch axes. Near the zero rotation both branches of every ``where`` stay finite, so the
derivatives do too.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.geometry.traced_once import traced_once
from shadowfit.lazy_jax import namespace

# Below this squared angle [rad²] the series are exact to double precision in value and in two derivatives.
SMALL_SQUARED_ANGLE = 1e-6


@traced_once
def multiply(a: Float[Array, "*n 4"], b: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Hamilton product ``a ⋆ b``."""
    library = namespace(a, b)
    a_s, a_v = a[..., :1], a[..., 1:]
    b_s, b_v = b[..., :1], b[..., 1:]
    scalar = a_s * b_s - library.sum(a_v * b_v, axis=-1, keepdims=True)
    vector = a_s * b_v + b_s * a_v + library.cross(a_v, b_v)
    return library.concatenate([scalar, vector], axis=-1)


def conjugate(e: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """``e*``, the inverse rotation of a unit quaternion."""
    library = namespace(e)
    return library.concatenate([e[..., :1], -e[..., 1:]], axis=-1)


@traced_once
def normalise(e: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Scale to unit length."""
    library = namespace(e)
    return e * (1.0 / library.sqrt(library.sum(e * e, axis=-1, keepdims=True)))


@traced_once
def exp(rotation_vector: Float[Array, "*n 3"]) -> Float[Array, "*n 4"]:
    """Quaternion of a rotation vector [rad]: ``(cos ψ/2, ψ⃗/ψ sin ψ/2)``; its derivative at zero is ``(0, ψ̇/2)``."""
    library = namespace(rotation_vector)
    squared = library.sum(rotation_vector * rotation_vector, axis=-1, keepdims=True)
    small = squared < SMALL_SQUARED_ANGLE
    angle = library.sqrt(library.where(small, 1.0, squared))
    scalar = library.where(small, 1.0 - squared / 8.0 + squared**2 / 384.0, library.cos(angle / 2.0))
    factor = library.where(small, 0.5 - squared / 48.0 + squared**2 / 3840.0, library.sin(angle / 2.0) / angle)
    return library.concatenate([scalar, factor * rotation_vector], axis=-1)


@traced_once
def log(e: Float[Array, "*n 4"]) -> Float[Array, "*n 3"]:
    """Rotation vector [rad] of a unit quaternion, of length at most π: the inverse of :func:`exp`."""
    library = namespace(e)
    shortest = library.where(e[..., :1] < 0.0, -e, e)
    scalar, vector = shortest[..., :1], shortest[..., 1:]
    squared = library.sum(vector * vector, axis=-1, keepdims=True)
    small = squared < SMALL_SQUARED_ANGLE
    sine = library.sqrt(library.where(small, SMALL_SQUARED_ANGLE, squared))
    # atan2 is regular at the half turn, where arccos has an infinite derivative.
    exact = 2.0 * library.arctan2(sine, scalar) / sine
    inverse = 1.0 / library.where(small, scalar, 1.0)
    tangent = squared * inverse**2
    series = 2.0 * inverse * (1.0 - tangent / 3.0 + tangent**2 / 5.0)
    return library.where(small, series, exact) * vector


@traced_once
def plus(e: Float[Array, "*n 4"], increment: Float[Array, "*n 3"]) -> Float[Array, "*n 4"]:
    """``e ⊞ ψ = exp(ψ) ⋆ e``."""
    return multiply(exp(increment), e)


def plus_local(e: Float[Array, "*n 4"], increment: Float[Array, "*n 3"]) -> Float[Array, "*n 4"]:
    """``e ⋆ exp(ψ)``: the rotation vector is in the rotated frame."""
    return multiply(e, exp(increment))


@traced_once
def minus(a: Float[Array, "*n 4"], b: Float[Array, "*n 4"]) -> Float[Array, "*n 3"]:
    """``a ⊟ b``, the rotation vector that takes b to a: ``b ⊞ (a ⊟ b) = a``."""
    return log(multiply(a, conjugate(b)))


@traced_once
def matrix(e: Float[Array, "*n 4"]) -> Float[Array, "*n 3 3"]:
    """Rotation matrix of a unit quaternion: ``I + 2 (e_s [e_v]× + [e_v]×²)``."""
    library = namespace(e)
    cross = cross_matrix(e[..., 1:])
    return library.eye(3) + 2.0 * (e[..., :1, None] * cross + cross @ cross)


@traced_once
def rotate(e: Float[Array, "*n 4"], vector: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """The vector turned by the rotation: ``e ⋆ x ⋆ e*``."""
    library = namespace(e, vector)
    t = 2.0 * library.cross(e[..., 1:], vector)
    return vector + e[..., :1] * t + library.cross(e[..., 1:], t)


def cross_matrix(vector: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    """``[x]×`` with ``[x]× y = x × y``."""
    library = namespace(vector)
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    zero = library.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return library.stack([library.stack(row, axis=-1) for row in rows], axis=-2)


@traced_once
def left_jacobian(rotation_vector: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    """``J(ψ)`` with ``exp(ψ + dψ) = exp(J(ψ) dψ) ⋆ exp(ψ)`` to first order."""
    library = namespace(rotation_vector)
    squared = library.sum(rotation_vector * rotation_vector, axis=-1)[..., None, None]
    small = squared < SMALL_SQUARED_ANGLE
    angle = library.sqrt(library.where(small, 1.0, squared))
    first = library.where(small, 0.5 - squared / 24.0, (1.0 - library.cos(angle)) / angle**2)
    second = library.where(small, 1.0 / 6.0 - squared / 120.0, (angle - library.sin(angle)) / angle**3)
    cross = cross_matrix(rotation_vector)
    return library.eye(3) + first * cross + second * (cross @ cross)


@traced_once
def left_jacobian_inverse(rotation_vector: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    """Inverse of :func:`left_jacobian`; the right one is its transpose. Regular for angles below 2π."""
    library = namespace(rotation_vector)
    squared = library.sum(rotation_vector * rotation_vector, axis=-1)[..., None, None]
    small = squared < SMALL_SQUARED_ANGLE
    angle = library.sqrt(library.where(small, 1.0, squared))
    exact = (1.0 - 0.5 * angle / library.tan(0.5 * angle)) / angle**2
    second = library.where(small, 1.0 / 12.0 + squared / 720.0, exact)
    cross = cross_matrix(rotation_vector)
    return library.eye(3) - 0.5 * cross + second * (cross @ cross)


def from_axes(x_axis: np.ndarray, y_axis: np.ndarray | None = None) -> np.ndarray:
    """Quaternion (NumPy) of a frame with the given x axis and, if given, its y axis near ``y_axis``."""
    x = np.asarray(x_axis, float) / np.linalg.norm(x_axis)
    if y_axis is None:
        y_axis = np.eye(3)[int(np.argmin(np.abs(x)))]
    z = np.cross(x, y_axis)
    z /= np.linalg.norm(z)
    return from_matrix(np.stack([x, np.cross(z, x), z], axis=1))


def from_matrix(rotation: np.ndarray) -> np.ndarray:
    """Quaternion (NumPy, ``wxyz``) of a rotation matrix."""
    r = np.asarray(rotation, float)
    turning = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    # The quaternion is the eigenvector of this symmetric matrix with the largest eigenvalue, whatever the angle.
    symmetric = np.block(
        [[np.atleast_2d(np.trace(r)), turning[None]], [turning[:, None], r + r.T - np.trace(r) * np.eye(3)]]
    )
    quaternion = np.linalg.eigh(symmetric)[1][:, -1]
    return quaternion if quaternion[0] >= 0.0 else -quaternion


def to_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix of a unit quaternion as :func:`matrix`, of one rotation and in NumPy."""
    scalar, (x, y, z) = quaternion[0], quaternion[1:]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * (scalar * cross + cross @ cross)
