"""Joint types: what a joint forbids (its gap function) and what it leaves free (its axis).

A joint connects two attachment frames, ``a`` on the parent and ``b`` on the child. A new type is a small module with
one pure function, ``gap(a, b)``; the Jacobian follows by automatic differentiation unless the type gives it in closed
form, which the built-in ones do because it is evaluated at every step. A type that leaves one axis free adds
``coordinate(a, b)`` (its position, rad or m) and ``axis(a, b)`` (the row ``Ḡ`` that turns velocities into its speed).
A type with no gap rows and only an axis is a nonholonomic row ``Ḡ v = γ(t)``: a law on the axis supplies ``γ``.

The hinge axis and the slider's direction are the x axes of the frames.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from shadowfit.arrays import Array, ArrayLike, Float
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.leaves import number
from shadowfit.pytrees import PyTree


class Frame(PyTree):
    """An attachment frame in the world, or several: origin [m], and axes as the columns of a rotation matrix."""

    point: Float[Array, "*n 3"]
    axes: Float[Array, "*n 3 3"]

    def moved(self, twist: Float[Array, "6"]) -> Frame:
        """The frame shifted by ``twist[:3]`` [m] and turned by the vector ``twist[3:]`` [rad] about its origin."""
        turn = rotations.matrix(rotations.exp(twist[3:]))
        return Frame(self.point + twist[:3], turn @ self.axes)


class FrameRows(PyTree):
    """Derivatives of functions of two frames by twists (translation, rotation about the frame's origin) of each."""

    a: Float[Array, "*n m 6"]
    b: Float[Array, "*n m 6"]


def differentiate(function: Any, a: Frame, b: Frame) -> FrameRows:
    """Rows of a function of two frames by forward-mode differentiation."""
    zero = jnp.zeros(6)
    return FrameRows(
        jax.jacfwd(lambda twist: function(a.moved(twist), b))(zero),
        jax.jacfwd(lambda twist: function(a, b.moved(twist)))(zero),
    )


class JointType(PyTree):
    """Interface of a joint type. Subclasses are final; numeric fields of a type become leaves of the joint."""

    axis_kind: ClassVar[Literal["rotation", "translation"] | None] = None
    linear_rows: ClassVar[int]
    """How many of the leading gap rows are lengths (compliance [m/N]); the rest are angles (compliance [rad/(N m)])."""
    gap_count: ClassVar[int | None] = None
    """Number of gap rows; None: to be found out by tracing."""
    freedom: ClassVar[tuple[int, ...] | None] = None
    """Directions of frame b that the joint leaves free: translations 0–2 and rotations 3–5 along the axes of frame a.
    None where they are no such directions; the mechanism then has no joint coordinates."""

    def gap(self, a: Frame, b: Frame) -> Float[Array, "m"]:
        """``g(q)``: zero when the joint is satisfied."""
        raise NotImplementedError

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        """Jacobian of :meth:`gap`."""
        return differentiate(self.gap, a, b)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, ""]:
        """Position along or about the free axis [rad or m]; angles in (−π, π]."""
        raise NotImplementedError

    def axis(self, a: Frame, b: Frame) -> FrameRows:
        """The row ``Ḡ`` (m = 1) whose product with the velocities is the speed of the free axis."""
        return differentiate(lambda a, b: self.coordinate(a, b)[None], a, b)

    def place(self, position: Float[ArrayLike, ""]) -> tuple[Float[ArrayLike, "3"], Float[ArrayLike, "3"]]:
        """Translation [m] and rotation vector [rad] of frame b in frame a at a position of the free axis."""
        # Plain arrays: a machine is put together outside of any trace, and nothing has to be compiled for it.
        zero = np.zeros(3)
        if self.axis_kind is None:
            return zero, zero
        along = position * np.array([1.0, 0.0, 0.0])
        return (along, zero) if self.axis_kind == "translation" else (zero, along)

    def row_count(self) -> int:
        """Number of gap rows."""
        if self.gap_count is not None:
            return self.gap_count
        # Shapes alone: arrays would be two programs for XLA.
        point, axes = (jax.ShapeDtypeStruct(shape, float) for shape in ((3,), (3, 3)))
        return int(jax.eval_shape(lambda p, a: self.gap(Frame(p, a), Frame(p, a)), point, axes).shape[0])


def _parallel_gap(a: Frame, b: Frame) -> Float[Array, "2"]:
    return jnp.stack([a.axes[:, 0] @ b.axes[:, 1], a.axes[:, 0] @ b.axes[:, 2]])


def _dot_rows(first: Float[Array, "m 3"], second: Float[Array, "m 3"]) -> FrameRows:
    """Rows of dot products of an axis of a (``first``) with an axis of b (``second``)."""
    turn = jnp.cross(first, second)
    zero = jnp.zeros_like(turn)
    return FrameRows(jnp.concatenate([zero, turn], axis=1), jnp.concatenate([zero, -turn], axis=1))


def _coincidence_rows() -> FrameRows:
    identity = jnp.concatenate([jnp.eye(3), jnp.zeros((3, 3))], axis=1)
    return FrameRows(identity, -identity)


def _stack(*rows: FrameRows) -> FrameRows:
    return FrameRows(jnp.concatenate([r.a for r in rows]), jnp.concatenate([r.b for r in rows]))


def _parallel_rows(a: Frame, b: Frame) -> FrameRows:
    x = a.axes[:, 0]
    return _dot_rows(jnp.stack([x, x]), b.axes[:, 1:].T)


def _aligned_rows(a: Frame, b: Frame) -> FrameRows:
    x, y = a.axes[:, 0], a.axes[:, 1]
    return _dot_rows(jnp.stack([x, x, y]), jnp.stack([b.axes[:, 1], b.axes[:, 2], b.axes[:, 2]]))


def _aligned_gap(a: Frame, b: Frame) -> Float[Array, "3"]:
    return jnp.append(_parallel_gap(a, b), a.axes[:, 1] @ b.axes[:, 2])


class Hinge(JointType):
    """Rotation about the common x axis: ``g = (r_a − r_b, x_a·y_b, x_a·z_b)``."""

    axis_kind = "rotation"
    linear_rows = 3
    gap_count = 5
    freedom = (3,)

    def gap(self, a: Frame, b: Frame) -> Float[Array, "5"]:
        return jnp.concatenate([a.point - b.point, _parallel_gap(a, b)])

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        return _stack(_coincidence_rows(), _parallel_rows(a, b))

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, ""]:
        relative = a.axes.T @ b.axes
        return jnp.arctan2(relative[2, 1] - relative[1, 2], relative[1, 1] + relative[2, 2])

    def axis(self, a: Frame, b: Frame) -> FrameRows:
        # Relative angular velocity along the parent's axis: equal to the rate of the coordinate when the gap is closed.
        row = jnp.concatenate([jnp.zeros(3), a.axes[:, 0]])[None]
        return FrameRows(-row, row)


class Slider(JointType):
    """Translation along the parent's x axis: ``g = (y_a·d, z_a·d, x_a·y_b, x_a·z_b, y_a·z_b)`` with d = r_a − r_b."""

    axis_kind = "translation"
    linear_rows = 2
    gap_count = 5
    freedom = (0,)

    def gap(self, a: Frame, b: Frame) -> Float[Array, "5"]:
        return jnp.concatenate([a.axes[:, 1:].T @ (a.point - b.point), _aligned_gap(a, b)])

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        across = a.axes[:, 1:].T
        lever = jnp.cross(across, (a.point - b.point)[None])
        zero = jnp.zeros_like(lever)
        linear = FrameRows(jnp.concatenate([across, lever], axis=1), jnp.concatenate([-across, zero], axis=1))
        return _stack(linear, _aligned_rows(a, b))

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, ""]:
        return a.axes[:, 0] @ (b.point - a.point)

    def axis(self, a: Frame, b: Frame) -> FrameRows:
        x = a.axes[:, 0]
        lever = jnp.cross(x, b.point - a.point)
        return FrameRows(jnp.concatenate([-x, lever])[None], jnp.concatenate([x, jnp.zeros_like(x)])[None])


class Planar(JointType):
    """Motion in the plane across the parent's x axis, and turning about it: ``g = (x_a·d, x_a·y_b, x_a·z_b)``."""

    linear_rows = 1
    gap_count = 3
    freedom = (1, 2, 3)

    def gap(self, a: Frame, b: Frame) -> Float[Array, "3"]:
        return jnp.concatenate([(a.axes[:, 0] @ (a.point - b.point))[None], _parallel_gap(a, b)])

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        normal = a.axes[:, 0]
        lever = jnp.cross(normal, a.point - b.point)
        row = FrameRows(
            jnp.concatenate([normal, lever])[None], jnp.concatenate([-normal, jnp.zeros_like(normal)])[None]
        )
        return _stack(row, _parallel_rows(a, b))


class Ball(JointType):
    """Rotation about a common point: ``g = r_a − r_b``."""

    linear_rows = 3
    gap_count = 3
    freedom = (3, 4, 5)

    def gap(self, a: Frame, b: Frame) -> Float[Array, "3"]:
        return a.point - b.point

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        del a, b
        return _coincidence_rows()


class Lock(JointType):
    """No relative motion: ``g = (r_a − r_b, x_a·y_b, x_a·z_b, y_a·z_b)``."""

    linear_rows = 3
    gap_count = 6
    freedom = ()

    def gap(self, a: Frame, b: Frame) -> Float[Array, "6"]:
        return jnp.concatenate([a.point - b.point, _aligned_gap(a, b)])

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        return _stack(_coincidence_rows(), _aligned_rows(a, b))


class SameAngle(JointType):
    """Two bodies keep the angle between them about the parent's x axis: ``g = y_a·z_b``, for axes that stay parallel.

    What a parallelogram does to the bodies at its ends, whatever its rods.
    """

    linear_rows = 0
    gap_count = 1

    def gap(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return (a.axes[:, 1] @ b.axes[:, 2])[None]

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        return _dot_rows(a.axes[None, :, 1], b.axes[None, :, 2])


class Distance(JointType):
    """Two points at a fixed distance: ``g = |r_a − r_b| − length``; the length [m] must be positive."""

    linear_rows = 1
    gap_count = 1

    length: Any = number("m", lower=0.0)

    def gap(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return jnp.sqrt(jnp.sum((a.point - b.point) ** 2, keepdims=True)) - self.length

    def gap_rows(self, a: Frame, b: Frame) -> FrameRows:
        apart = a.point - b.point
        direction = apart / jnp.sqrt(apart @ apart)
        row = jnp.concatenate([direction, jnp.zeros(3)])[None]
        return FrameRows(row, -row)

    def place(self, position: Float[ArrayLike, ""]) -> tuple[Float[ArrayLike, "3"], Float[ArrayLike, "3"]]:
        del position
        return self.length * np.array([1.0, 0.0, 0.0]), np.zeros(3)
