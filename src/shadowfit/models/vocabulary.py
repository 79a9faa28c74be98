"""The words of model files: which class a type's name stands for, and the keys of each class.

The keys are those that the classes themselves declare (see :mod:`shadowfit.mechanism.leaves`), so a new number of a
part is a key of its table without further work. A part of one's own becomes available in model files by adding it::

    vocabulary.JOINT_TYPES["universal"] = Universal
"""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from collections.abc import Mapping
from typing import Any, Literal

from shadowfit.mechanism import (
    Accelerometer,
    BodyAngle,
    BodyOrientation,
    BodyRate,
    Box,
    ConstantForce,
    Coulomb,
    DcMotor,
    Drag,
    Joint,
    JointLimit,
    JointPosition,
    JointSpeed,
    JointTorque,
    MotorPosition,
    MotorSpeed,
    PlaneContact,
    PointPosition,
    PositionMotor,
    Rotor,
    Servo,
    Shaft,
    Sphere,
    Spring,
    Stribeck,
    TorqueMotor,
    VelocityMotor,
)
from shadowfit.mechanism.joint_types import Ball, Distance, Hinge, Lock, Planar, SameAngle, Slider
from shadowfit.pytrees import PyTree
from shadowfit.records import record

JOINT_TYPES: dict[str, type] = {
    "hinge": Hinge,
    "slider": Slider,
    "ball": Ball,
    "planar": Planar,
    "lock": Lock,
    "distance": Distance,
    "same_angle": SameAngle,
}
FRICTION_LAWS: dict[str, type] = {"coulomb": Coulomb, "stribeck": Stribeck}
AXIS_LAWS: dict[str, type] = {
    "torque": TorqueMotor,
    "dc": DcMotor,
    "velocity": VelocityMotor,
    "rotor": Rotor,
    "position": PositionMotor,
    "servo": Servo,
    "spring": Spring,
    "drag": Drag,
    "constant": ConstantForce,
}
CONTACTS: dict[str, type] = {"limit": JointLimit, "plane": PlaneContact}
CONTACT_SHAPES: dict[str, type] = {"sphere": Sphere, "box": Box}
SENSORS: dict[str, type] = {
    "joint_position": JointPosition,
    "joint_speed": JointSpeed,
    "joint_torque": JointTorque,
    "motor_position": MotorPosition,
    "motor_speed": MotorSpeed,
    "point_position": PointPosition,
    "body_angle": BodyAngle,
    "body_orientation": BodyOrientation,
    "body_rate": BodyRate,
    "accelerometer": Accelerometer,
}

# A field that holds a part of several possible classes, whose keys stand beside the owner's own: the key that says
# which class it is, and the classes.
VARIANTS: dict[tuple[type, str], tuple[str, Mapping[str, type]]] = {
    (Joint, "kind"): ("type", JOINT_TYPES),
    (Joint, "friction"): ("friction", FRICTION_LAWS),
    (PlaneContact, "shape"): ("shape", CONTACT_SHAPES),
}
# Fields that are not written: they follow from other keys, or mean nothing for this class.
IMPLIED = {
    *((part, "rotary") for part in (JointPosition, JointSpeed, JointTorque, PositionMotor, Servo)),
    *((part, "input") for part in (Rotor, Spring, Drag, ConstantForce)),
    *((part, "ratios") for part in (MotorPosition, MotorSpeed, Shaft)),
    (Joint, "laws"),
}


@record(frozen=True)
class Key:
    """A key of a part's table."""

    name: str
    kind: Literal["number", "vector", "rotation", "text", "flag", "part"]
    unit: str = ""
    lower: float = -math.inf
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] | None = None
    """Possible texts, if they are limited."""
    part: type | None = None
    """Class of a sub-table."""

    @property
    def infinite(self) -> bool:
        """Whether the number may be infinite: where it is so by default, as an end stop that is not there."""
        return isinstance(self.default, float) and math.isinf(self.default)


@functools.cache
def keys(part: type) -> tuple[Key, ...]:
    """The keys that a class declares itself, in order."""
    hints = typing.get_type_hints(part)
    fields = (field for field in dataclasses.fields(part) if (part, field.name) not in {*VARIANTS, *IMPLIED})
    return tuple(_key(field, hints[field.name]) for field in fields)


def _key(field: dataclasses.Field, hint: Any) -> Key:
    missing = field.default is dataclasses.MISSING
    common: dict[str, Any] = {
        "required": missing and field.default_factory is dataclasses.MISSING,
        "default": None if missing else field.default,
    }
    if "leaf" in field.metadata:
        return Key(field.name, field.metadata["leaf"], field.metadata["unit"], field.metadata["lower"], **common)
    if isinstance(hint, type) and issubclass(hint, PyTree):
        return Key(field.name, "part", part=hint, **common)
    if hint is bool:
        return Key(field.name, "flag", **common)
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else None
    return Key(field.name, "text", choices=choices, **common)


def variants(part: type) -> dict[str, tuple[str, Mapping[str, type]]]:
    """Fields of a class that hold one of several classes: field → (key that chooses, classes by name)."""
    return {field: choice for (owner, field), choice in VARIANTS.items() if owner is part}


def word(part: Any, words: Mapping[str, type]) -> str | None:
    """The name under which a part's class is known, if it is."""
    return next((name for name, known in words.items() if known is type(part)), None)
