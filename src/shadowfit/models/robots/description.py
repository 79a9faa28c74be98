"""What a robot file says, whatever its format: links, joints, what drives them, what closes loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal

import numpy as np

from shadowfit.errors import nearest
from shadowfit.geometry.rotations import to_matrix
from shadowfit.models.errors import ModelFileError
from shadowfit.models.robots.inertia import MassProperties

JointKind = Literal["hinge", "slider", "ball", "planar", "fixed", "free"]
AXIS_KINDS = ("hinge", "slider")
NOWHERE = np.zeros(3)


@dataclasses.dataclass(frozen=True)
class Link:
    """A link: its mass properties in its own frame, None where it has no mass."""

    name: str
    mass: MassProperties | None = None
    line: int | None = None


@dataclasses.dataclass(frozen=True)
class RobotJoint:
    """A joint of the tree. At zero the child's frame has ``rotation`` (matrix) and ``position`` [m] in the parent's.

    The joint is at ``anchor`` [m], along ``axis``, both in the child's frame.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    rotation: np.ndarray
    position: np.ndarray
    axis: np.ndarray = dataclasses.field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    anchor: np.ndarray = dataclasses.field(default_factory=lambda: NOWHERE)
    damping: float = 0.0
    """N m s/rad or N s/m."""
    friction: float = 0.0
    """N m or N."""
    armature: float = 0.0
    """kg m² or kg."""
    stiffness: float = 0.0
    """Of a spring on the axis [N m/rad or N/m], at rest at ``rest`` [rad or m]."""
    rest: float = 0.0
    limits: tuple[float, float] | None = None
    """End stops [rad or m]."""
    line: int | None = None

    def held(self, position: float) -> RobotJoint:
        """The joint fixed at a position of its axis [rad or m]."""
        rotation, shift = np.eye(3), self.axis * position
        if self.kind == "hinge":
            half = 0.5 * position
            rotation = to_matrix(np.array([np.cos(half), *(np.sin(half) * self.axis)]))
            shift = self.anchor - rotation @ self.anchor
        return dataclasses.replace(
            self, kind="fixed", rotation=self.rotation @ rotation, position=self.position + self.rotation @ shift
        )


@dataclasses.dataclass(frozen=True)
class Actuator:
    """What drives a joint: torque ``gain·u``, or a position controller ``kp (u − x) − kd s`` if ``kp`` is given."""

    joint: str
    gain: float = 1.0
    kp: float | None = None
    kd: float = 0.0
    limit: float = np.inf
    """Largest torque of a controller [N m or N]."""
    gear: float = 1.0
    """Transmission ratio as the file states or inherits it; part of ``gain`` and ``kp`` already."""


@dataclasses.dataclass(frozen=True)
class Loop:
    """A joint that closes a loop: a point, or a whole frame, of one link stays at that of another."""

    name: str
    kind: Literal["ball", "lock"]
    parent: str
    child: str
    parent_point: np.ndarray
    child_point: np.ndarray
    rotation: np.ndarray
    """Of the child's frame in the parent's, for a lock (matrix)."""


@dataclasses.dataclass(frozen=True)
class Mimic:
    """A joint that follows another one: ``x = ratio·x_leader + offset``."""

    joint: str
    leader: str
    ratio: float
    offset: float


@dataclasses.dataclass(frozen=True)
class RobotSensor:
    """A sensor that a robot file states, in the words of model files."""

    name: str
    type: str
    of: str
    """The joint or link."""
    point: np.ndarray = dataclasses.field(default_factory=lambda: NOWHERE)
    """Where it is on the link [m], and how it is turned there (quaternion)."""
    mounting: np.ndarray = dataclasses.field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))


@dataclasses.dataclass(frozen=True)
class Description:
    """A robot file, read. ``root`` is the link that stands for the world; its own mass plays no part."""

    name: str
    source: str
    root: str
    links: dict[str, Link]
    joints: dict[str, RobotJoint]
    actuators: tuple[Actuator, ...] = ()
    loops: tuple[Loop, ...] = ()
    mimics: tuple[Mimic, ...] = ()
    sensors: tuple[RobotSensor, ...] = ()
    gravity: np.ndarray = dataclasses.field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    start: dict[str, float] = dataclasses.field(default_factory=dict)
    """Joint → position at which simulations start [rad or m]."""
    notes: tuple[str, ...] = ()
    """What is in the file and not in the model, and what was assumed; a sentence each."""

    def error(self, message: str, line: int | None = None) -> ModelFileError:
        """An error in this file."""
        return ModelFileError(message, self.source, line)

    def inward(self, link: str) -> RobotJoint | None:
        """The joint that holds a link; None for the root."""
        return next((joint for joint in self.joints.values() if joint.child == link), None)

    def outward(self, link: str) -> list[RobotJoint]:
        """The joints that a link holds."""
        return [joint for joint in self.joints.values() if joint.parent == link]

    def welded(self, links: Iterable[str]) -> Description:
        """The robot with some links that float held where they are."""
        joints = dict(self.joints)
        for link in links:
            floating = {joint.child: joint for joint in joints.values() if joint.kind == "free"}
            if link not in floating:
                raise self.error(f"{link!r} cannot be welded: it is no link with a free joint{nearest(link, floating)}")
            joints[floating[link].name] = dataclasses.replace(floating[link], kind="fixed")
        return dataclasses.replace(self, joints=joints)

    def without_mimics(self) -> Description:
        """The robot with joints that follow others held where they are while their leaders are at zero."""
        joints, names = dict(self.joints), [mimic.joint for mimic in self.mimics]
        for mimic in self.mimics:
            joints[mimic.joint] = self.joints[mimic.joint].held(mimic.offset)
        note = f"joints that follow others are held at their offset: {', '.join(names)}"
        actuators = tuple(actuator for actuator in self.actuators if actuator.joint not in names)
        notes = (*self.notes, note) if names else self.notes
        return dataclasses.replace(self, joints=joints, mimics=(), actuators=actuators, notes=notes)

    def driven(self, drive: str | None) -> Description:
        """The robot with all actuators of one kind, ``"torque"`` or ``"position"``; None leaves them as they are."""
        if drive is None:
            return self
        if drive == "torque":
            changed = tuple(
                Actuator(actuator.joint) if actuator.kp is not None else actuator for actuator in self.actuators
            )
        else:
            changed = tuple(
                actuator if actuator.kp is not None else Actuator(actuator.joint, kp=0.0, limit=actuator.limit)
                for actuator in self.actuators
            )
        return dataclasses.replace(self, actuators=changed)
