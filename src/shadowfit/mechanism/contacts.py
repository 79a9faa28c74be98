"""Contacts ``c(q) ≥ 0``: limits of a joint's axis, and points of a body against a plane, with Coulomb friction.

A new contact shape is one pure function, ``points(a, b)``: the gaps [m] and the places [m] where a body may touch a
plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.errors import MechanismError
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import jax
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.joint_types import Frame
from shadowfit.mechanism.leaves import TRANSPARENT, number, rotation, vector
from shadowfit.pytrees import PyTree, field

# A contact is stiff and settles within some steps; both are documented in docs/simulator.md.
DEFAULT_CONTACT_COMPLIANCE = 1e-6
DEFAULT_CONTACT_DAMPING = 0.01


class JointLimit(PyTree):
    """End stops of a joint: ``lower ≤ x ≤ upper`` [rad or m], each a contact with compliance and relaxation time.

    A hinge's angle is measured in (−π, π], so its stops must lie inside that range.
    """

    joint: str = field(static=True)
    lower: Any = number("rad | m", default=-np.inf)
    upper: Any = number("rad | m", default=np.inf)
    compliance: Any = number("rad/(N m) | m/N", default=DEFAULT_CONTACT_COMPLIANCE, lower=0.0)
    damping: Any = number("s", default=DEFAULT_CONTACT_DAMPING, lower=0.0)

    def check(self, name: str) -> None:
        """Raise unless the two stops leave room."""
        if not float(self.lower) < float(self.upper):
            raise MechanismError(f"{name}: lower ({float(self.lower):g}) must be below upper ({float(self.upper):g})")


class ContactShape(PyTree):
    """Interface of a body's contact geometry against a plane. Subclasses are final."""

    def points(self, plane: Frame, body: Frame) -> tuple[Float[Array, "c"], Float[Array, "c 3"]]:
        """Gaps [m] and contact points [m, world]; the plane's normal is the x axis of its frame."""
        raise NotImplementedError

    def count(self) -> int:
        """Number of points; found out by tracing where a shape does not say."""
        point, axes = (jax.ShapeDtypeStruct(shape, float) for shape in ((3,), (3, 3)))
        gap, _ = jax.eval_shape(lambda p, a: self.points(Frame(p, a), Frame(p, a)), point, axes)
        return int(gap.shape[0])


class Sphere(ContactShape):
    """A sphere around the origin of the body's contact frame."""

    radius: Any = number("m", lower=0.0)

    def points(self, plane: Frame, body: Frame) -> tuple[Float[Array, "1"], Float[Array, "1 3"]]:
        normal = plane.axes[:, 0]
        gap = normal @ (body.point - plane.point) - self.radius
        return gap[None], (body.point - self.radius * normal)[None]

    def count(self) -> int:
        return 1


class Box(ContactShape):
    """A box around the origin of the body's contact frame; its eight corners may touch."""

    half_size: Any = vector("m", lower=0.0)

    def points(self, plane: Frame, body: Frame) -> tuple[Float[Array, "8"], Float[Array, "8 3"]]:
        signs = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
        corners = body.point + (signs * self.half_size) @ body.axes.T
        return (corners - plane.point) @ plane.axes[:, 0], corners

    def count(self) -> int:
        return 8


class PlaneContact(PyTree):
    """A shape on a body against a plane on another body or the world, with compliance, damping and friction.

    ``friction`` is Coulomb's μ, over two tangent directions and both signs (the friction pyramid ``|λ_1| + |λ_2| ≤ μ
    λ_n``); ``stick_time`` [s] regularises sticking as in a joint.
    """

    shape: ContactShape = field(metadata=TRANSPARENT)
    body: str = field(static=True)
    plane: str = field(static=True, default=WORLD)
    center: Any = vector("m")
    plane_point: Any = vector("m")
    plane_rotation: Any = rotation()
    compliance: Any = number("m/N", default=DEFAULT_CONTACT_COMPLIANCE, lower=0.0)
    damping: Any = number("s", default=DEFAULT_CONTACT_DAMPING, lower=0.0)
    friction: Any = number("1", default=0.0, lower=0.0)
    stick_time: Any = number("s", default=1e-6, lower=0.0, tunable=False)

    def check(self, name: str) -> None:
        """Raise where the parts do not fit together."""
        if self.body == self.plane:
            raise MechanismError(f"contact {name!r}: a body cannot touch a plane fixed to itself ({self.body!r})")


def touch(
    shape: ContactShape,
    body: str,
    *,
    normal: Sequence[float] = (0.0, 0.0, 1.0),
    plane_point: Sequence[float] = (0.0, 0.0, 0.0),
    **options: Any,
) -> PlaneContact:
    """Contact of a shape on ``body`` with the plane through ``plane_point`` with ``normal``."""
    return PlaneContact(
        shape, body, plane_point=plane_point, plane_rotation=rotations.from_axes(np.asarray(normal)), **options
    )
