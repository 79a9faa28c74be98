"""What a motion may do: limits of joints, inputs and the space around the machine, from a TOML file.

[joints.shoulder]
position = [-1.5, 1.5]    # rad, m
speed = 2.0               # rad/s, m/s
acceleration = 10.0       # rad/s², m/s²
torque = 30.0             # of its motors: N m, N
end_speed = 0.02          # rad/s, m/s, when the recording ends

[inputs.u]
range = [-10.0, 10.0]     # in the input's unit
rate = 100.0              # per second

[[spheres]]               # what is kept clear; without any, centres of mass and joints are
body = "forearm"
center = [0.1, 0.0, 0.0]  # m, in the body's frame
radius = 0.05             # m

[[planes]]                # spheres stay on the side that the normal points to
point = [0.0, 0.0, 0.0]
normal = [0.0, 0.0, 1.0]

[[boxes]]                 # spheres stay outside
lower = [0.3, -0.2, 0.0]
upper = [0.5, 0.2, 0.4]

self_distance = 0.02      # m, between spheres of bodies that no joint connects; before all tables
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from shadowfit.designs.errors import DesignError
from shadowfit.errors import nearest
from shadowfit.files import read_toml
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.models.reader import ModelFile
from shadowfit.records import record

Pair = tuple[float, float]
# Range of a joint that has no limits [rad], either way.
REACH = 0.5 * np.pi


@record(frozen=True)
class JointLimits:
    """Of one joint with an axis; None: not limited."""

    position: Pair | None = None
    """[rad, m]."""
    speed: float | None = None
    """[rad/s, m/s]."""
    acceleration: float | None = None
    """[rad/s², m/s²]."""
    torque: float | None = None
    """Of its motors [N m, N]."""
    end_speed: float | None = None
    """When the recording ends [rad/s, m/s]."""


@record(frozen=True)
class InputLimits:
    """Of one input, in its unit."""

    range: Pair | None = None
    rate: float | None = None
    """Per second."""


Some = TypeVar("Some", JointLimits, InputLimits)


def _fields(limits: Some) -> list[tuple[str, Some]]:
    """Each number that is limited, and a limit of that alone."""
    given = {field.name: getattr(limits, field.name) for field in dataclasses.fields(limits)}
    return [
        (name.replace("_", " "), type(limits)(**{name: value})) for name, value in given.items() if value is not None
    ]


@record(frozen=True)
class Sphere:
    """A ball that moves with a body and is kept clear."""

    body: str
    center: tuple[float, ...] = (0.0, 0.0, 0.0)
    """In the body's frame [m]."""
    radius: float = 0.0
    """[m]."""


@record(frozen=True)
class Plane:
    """Spheres stay on the side that the normal points to."""

    point: tuple[float, ...]
    """[m]."""
    normal: tuple[float, ...]


@record(frozen=True)
class Box:
    """Spheres stay outside of a box along the world's axes."""

    lower: tuple[float, ...]
    """[m]."""
    upper: tuple[float, ...]


@record(frozen=True)
class Limits:
    """All limits of a motion."""

    joints: Mapping[str, JointLimits] = dataclasses.field(default_factory=dict)
    inputs: Mapping[str, InputLimits] = dataclasses.field(default_factory=dict)
    spheres: tuple[Sphere, ...] = ()
    planes: tuple[Plane, ...] = ()
    boxes: tuple[Box, ...] = ()
    self_distance: float | None = None
    """Least distance of spheres on bodies that no joint connects [m]; None: not looked at."""

    def apart(self) -> list[tuple[str, Limits]]:
        """Each limit by itself, and its name."""
        listed = [
            (f"the {field} of {name}", Limits(joints={name: limit}))
            for name, joint in self.joints.items()
            for field, limit in _fields(joint)
        ]
        listed += [
            (f"the {field} of {name}", Limits(inputs={name: limit}))
            for name, signal in self.inputs.items()
            for field, limit in _fields(signal)
        ]
        balls = self.spheres
        listed += [(f"plane {i}", Limits(spheres=balls, planes=(plane,))) for i, plane in enumerate(self.planes, 1)]
        listed += [(f"box {i}", Limits(spheres=balls, boxes=(box,))) for i, box in enumerate(self.boxes, 1)]
        if self.self_distance is not None:
            listed.append(("self_distance", Limits(spheres=balls, self_distance=self.self_distance)))
        return listed

    def check(self, mechanism: Mechanism, where: str = "limits") -> None:
        """Raise unless every name is one of the mechanism and every range leaves room."""
        axes = [name for name, joint in mechanism.joints.items() if joint.kind.axis_kind is not None]
        for kind, given, known in (
            ("joint with an axis", self.joints, axes),
            ("input", self.inputs, mechanism.inputs.names),
            ("body", {sphere.body: sphere for sphere in self.spheres}, mechanism.bodies.names),
        ):
            for name in given:
                if name not in known:
                    raise DesignError(f"{where}: there is no {kind} {name!r}{nearest(name, known)}")
        for name, joint in self.joints.items():
            _check_pair(joint.position, f"{where}: joints.{name}.position")
            for key in ("speed", "acceleration", "torque", "end_speed"):
                _check_positive(getattr(joint, key), f"{where}: joints.{name}.{key}")
        for name, signal in self.inputs.items():
            _check_pair(signal.range, f"{where}: inputs.{name}.range")
            _check_positive(signal.rate, f"{where}: inputs.{name}.rate")
        for box in self.boxes:
            for pair in zip(box.lower, box.upper, strict=True):
                _check_pair(pair, f"{where}: a box from {list(box.lower)} to {list(box.upper)}")
        for plane in self.planes:
            if not np.linalg.norm(plane.normal) > 0.0:
                raise DesignError(f"{where}: the normal of a plane is zero; give a direction")
        for sphere in self.spheres:
            if not sphere.radius >= 0.0:
                raise DesignError(f"{where}: a sphere of {sphere.body!r} has the radius {sphere.radius:g} m")


def rated(limits: Limits, model: ModelFile, start: Mapping[str, float]) -> tuple[Limits, list[str]]:
    """Limits with what a robot file says of its joints, where they say nothing; and that in words.

    A hinge stays within a quarter turn of where it starts, unless limits say otherwise: files state what a joint can do
    by itself, not what the machine can do without touching itself.
    """
    joints, from_model = dict(limits.joints), []
    for name, rating in model.ratings.items():
        given, rest = joints.get(name, JointLimits()), start.get(name, 0.0)
        room = rating.position
        if room is not None and model.mechanism.joints[name].kind.axis_kind == "rotation":
            room = max(room[0], rest - REACH), min(room[1], rest + REACH)
        stated = JointLimits(room, rating.speed, None, rating.effort)
        taken = {
            key: value
            for key, value in dataclasses.asdict(stated).items()
            if value is not None and getattr(given, key) is None
        }
        if taken:
            joints[name] = dataclasses.replace(given, **taken)
            from_model.append(f"{name}: {', '.join(f'{key} {_in_words(value)}' for key, value in taken.items())}")
    return dataclasses.replace(limits, joints=joints), from_model


def _in_words(value: float | Pair) -> str:
    return f"{value[0]:.3g} to {value[1]:.3g}" if isinstance(value, tuple) else f"up to {value:.3g}"


def read_limits(path: str | os.PathLike[str], mechanism: Mechanism) -> Limits:
    """Limits of a TOML file.

    Raises:
        DesignError: the file cannot be read, or a key, a name or a number in it is wrong.
    """
    try:
        table = read_toml(path)
    except (OSError, ValueError) as error:
        raise DesignError(f"{path}: these limits cannot be read: {error}") from error
    fields = {field.name for field in dataclasses.fields(Limits)}
    for key in table:
        if key not in fields:
            raise DesignError(f"{path}: {key} is not a key of limits{nearest(key, fields)}")
    limits = Limits(
        joints={
            name: _record(JointLimits, joint, f"{path}: joints.{name}")
            for name, joint in _tables(table, "joints", path)
        },
        inputs={
            name: _record(InputLimits, signal, f"{path}: inputs.{name}")
            for name, signal in _tables(table, "inputs", path)
        },
        spheres=tuple(_record(Sphere, entry, f"{path}: spheres") for entry in _list(table, "spheres", path)),
        planes=tuple(_record(Plane, entry, f"{path}: planes") for entry in _list(table, "planes", path)),
        boxes=tuple(_record(Box, entry, f"{path}: boxes") for entry in _list(table, "boxes", path)),
        self_distance=None
        if "self_distance" not in table
        else _number(table["self_distance"], f"{path}: self_distance"),
    )
    limits.check(mechanism, str(path))
    return limits


# How many numbers a key has; one where it is not named.
_SIZES = {"position": 2, "range": 2, "center": 3, "point": 3, "normal": 3, "lower": 3, "upper": 3}


def _record(kind: type, entry: Any, where: str) -> Any:
    if not isinstance(entry, Mapping):
        raise DesignError(f"{where} must be a table")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in fields:
            raise DesignError(f"{where}: {key} is not a key of this table{nearest(key, fields)}")
        if key == "body":
            values[key] = str(value)
        elif key in _SIZES:
            values[key] = _vector(value, _SIZES[key], f"{where}.{key}")
        else:
            values[key] = _number(value, f"{where}.{key}")
    missing = [name for name, field in fields.items() if field.default is dataclasses.MISSING and name not in values]
    if missing:
        raise DesignError(f"{where}: {missing[0]} is missing")
    return kind(**values)


def _tables(table: Mapping[str, Any], key: str, path: object) -> list[tuple[str, Any]]:
    tables = table.get(key, {})
    if not isinstance(tables, Mapping):
        raise DesignError(f"{path}: {key} must be tables, such as [{key}.NAME]")
    return list(tables.items())


def _list(table: Mapping[str, Any], key: str, path: object) -> list[Any]:
    entries = table.get(key, [])
    if not isinstance(entries, list):
        raise DesignError(f"{path}: {key} must be written [[{key}]]")
    return entries


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise DesignError(f"{where} is {value!r}; it must be a finite number")
    return float(value)


def _vector(value: Any, size: int, where: str) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != size:
        raise DesignError(f"{where} is {value!r}; it must be {size} numbers in brackets")
    return tuple(_number(part, where) for part in value)


def _check_pair(pair: Pair | None, where: str) -> None:
    if pair is not None and not pair[0] < pair[1]:
        raise DesignError(f"{where}: the lower limit {pair[0]:g} must be below the upper one, {pair[1]:g}")


def _check_positive(value: float | None, where: str) -> None:
    if value is not None and not value > 0.0:
        raise DesignError(f"{where} is {value:g}; it must be positive, or no motion is allowed")
