"""Joints: a type, two attachments, compliance, and what acts on the free axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.errors import MechanismError
from shadowfit.geometry import rotations
from shadowfit.mechanism import joint_types
from shadowfit.mechanism.friction import FrictionLaw
from shadowfit.mechanism.joint_types import JointType
from shadowfit.mechanism.laws import AxisLaw
from shadowfit.mechanism.leaves import TRANSPARENT, Parts, number, rotation, vector
from shadowfit.pytrees import PyTree, field

WORLD = "world"

# The paper's values: compliance 1e-4 m/N (and rad/(N m)), relaxation time 0.02 s.
DEFAULT_COMPLIANCE = 1e-4
DEFAULT_DAMPING = 0.02

Vector = Sequence[float] | np.ndarray


class Compliance(PyTree):
    """Inverse stiffness of a joint's constraints, for its lengths and for its angles."""

    linear: Any = number("m/N", default=DEFAULT_COMPLIANCE, lower=0.0)
    rotational: Any = number("rad/(N m)", default=DEFAULT_COMPLIANCE, lower=0.0)


class Joint(PyTree):
    """A joint between two bodies, or a body and the world.

    ``parent_point`` and ``child_point`` [m] are in the bodies' frames; the rotations turn the attachment frames (whose
    x axis is the free axis) into the bodies' frames. ``damping`` [s] is the relaxation time τ of the constraint,
    ``viscous`` [N m s/rad or N s/m] acts on the free axis, and so do ``friction`` and the named ``laws``. In joint
    coordinates joints are rigid, but those that are ``compliant`` give as they do with poses of bodies as unknowns.
    """

    kind: JointType = field(metadata=TRANSPARENT)
    parent: str = field(static=True)
    child: str = field(static=True)
    parent_point: Any = vector("m")
    child_point: Any = vector("m")
    parent_rotation: Any = rotation()
    child_rotation: Any = rotation()
    compliance: Compliance = field(default_factory=Compliance)
    damping: Any = number("s", default=DEFAULT_DAMPING, lower=0.0)
    viscous: Any = number("N m s/rad | N s/m", default=0.0, lower=0.0)
    friction: FrictionLaw | None = field(default=None, metadata=TRANSPARENT)
    laws: Parts = field(default_factory=Parts, converter=lambda p: p if isinstance(p, Parts) else Parts(p))
    compliant: bool = field(static=True, default=False)

    def check_types(self, name: str) -> None:
        """Raise unless laws and friction are what they should be."""
        for law_name, law in self.laws.items():
            if not isinstance(law, AxisLaw):
                raise MechanismError(f"{name}.{law_name} is a {type(law).__name__}, not an axis law")
        if not isinstance(self.friction, FrictionLaw | None):
            raise MechanismError(f"the friction of {name!r} is a {type(self.friction).__name__}, not a friction law")

    def check(self, name: str) -> None:
        """Raise where the parts do not fit together."""
        if self.parent == self.child:
            raise MechanismError(f"joint {name!r} connects {self.parent!r} to itself; parent and child must differ")
        on_axis = self.friction is not None or len(self.laws) > 0 or float(self.viscous) > 0.0
        if on_axis and self.kind.axis_kind is None:
            raise MechanismError(
                f"joint {name!r} is a {type(self.kind).__name__.lower()}, which has no free axis; "
                "friction, viscous and laws need a hinge, a slider or another type with an axis"
            )
        radius = 1.0 if self.friction is None else float(self.friction.dry_radius)
        if self.kind.axis_kind == "translation" and not radius > 0.0:
            raise MechanismError(f"{name}.dry_radius must be positive: a slider's friction divides torques by it")
        if isinstance(self.kind, joint_types.Distance) and not float(self.kind.length) > 0.0:
            raise MechanismError(f"{name}.length must be positive")


def connect(
    kind: JointType,
    parent: str,
    child: str,
    *,
    axis: Vector = (1.0, 0.0, 0.0),
    parent_point: Vector = (0.0, 0.0, 0.0),
    child_point: Vector = (0.0, 0.0, 0.0),
    zero_rotation: Vector = (1.0, 0.0, 0.0, 0.0),
    laws: Mapping[str, AxisLaw] | None = None,
    compliance: Compliance | float = DEFAULT_COMPLIANCE,
    **options: Any,
) -> Joint:
    """A joint described by its free axis (in the parent's frame) and by how the child sits at the zero position.

    ``zero_rotation`` is the quaternion of the child's frame in the parent's frame when the joint's coordinate is zero.
    A single number as compliance is used for lengths and angles alike.
    """
    axis = np.asarray(axis, float)
    if axis.shape != (3,) or not np.all(np.isfinite(axis)) or np.linalg.norm(axis) == 0.0:
        raise MechanismError(f"a joint's axis must be three finite numbers that are not all zero, not {axis}")
    zero = _unit_quaternion(zero_rotation)
    parent_rotation = rotations.from_axes(axis)
    relative = np.concatenate([zero[:1], -zero[1:]])
    child_rotation = np.asarray(_multiply(relative, parent_rotation))
    if not isinstance(compliance, Compliance):
        compliance = Compliance(compliance, compliance)
    return Joint(
        kind,
        parent,
        child,
        parent_point,
        child_point,
        parent_rotation,
        child_rotation,
        compliance=compliance,
        laws=Parts(laws),
        **options,
    )


def hinge(parent: str, child: str, **options: Any) -> Joint:
    """A :class:`~joint_types.Hinge` about ``axis``; options as in :func:`connect`."""
    return connect(joint_types.Hinge(), parent, child, **options)


def slider(parent: str, child: str, **options: Any) -> Joint:
    """A :class:`~joint_types.Slider` along ``axis``; options as in :func:`connect`."""
    return connect(joint_types.Slider(), parent, child, **options)


def ball(parent: str, child: str, **options: Any) -> Joint:
    """A :class:`~joint_types.Ball` at the two points; options as in :func:`connect`."""
    return connect(joint_types.Ball(), parent, child, **options)


def lock(parent: str, child: str, **options: Any) -> Joint:
    """A :class:`~joint_types.Lock`; options as in :func:`connect`."""
    return connect(joint_types.Lock(), parent, child, **options)


def distance(parent: str, child: str, length: float, **options: Any) -> Joint:
    """A :class:`~joint_types.Distance` of ``length`` [m] between the two points; options as in :func:`connect`."""
    return connect(joint_types.Distance(length), parent, child, **options)


def _unit_quaternion(value: Vector) -> np.ndarray:
    quaternion = np.asarray(value, float)
    norm = np.linalg.norm(quaternion) if quaternion.shape == (4,) else 0.0
    if not np.isfinite(norm) or norm == 0.0:
        raise MechanismError(f"a rotation is four finite numbers (quaternion w x y z), not all zero; not {value}")
    return quaternion / norm


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    vector_part = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.concatenate([[a[0] * b[0] - a[1:] @ b[1:]], vector_part])
