"""What a robot file says, whatever its format: links, joints, what drives them, what closes loops."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from shadowfit.errors import nearest
from shadowfit.geometry.rotations import to_matrix
from shadowfit.models.errors import ModelFileError
from shadowfit.models.robots.inertia import Flaw, MassProperties
from shadowfit.records import record

JointKind = Literal["hinge", "slider", "ball", "planar", "fixed", "free"]
AXIS_KINDS = ("hinge", "slider")
NOWHERE = np.zeros(3)
# Axes and ratios of a parallelogram may be off by the digits in which files are written.
PARALLEL = 1e-6
# Fields that may be without limit.
ENDLESS = ("limit", "limits", "speed", "effort")


@record(frozen=True)
class Link:
    """A link: its mass properties in its own frame, None where it has no mass."""

    name: str
    mass: MassProperties | None = None
    line: int | None = None
    flaw: Flaw | None = None
    """What is wrong with its inertia, and the nearest possible one, in the link's axes."""


@record(frozen=True)
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
    speed: float | None = None
    """Largest speed of the joint, and largest effort of what drives it, as rated [rad/s, m/s; N m, N]."""
    effort: float | None = None
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


@record(frozen=True)
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


@record(frozen=True)
class Loop:
    """A joint that closes a loop: a point, a frame, or an angle of one link stays at that of another."""

    name: str
    kind: Literal["ball", "lock", "same_angle"]
    parent: str
    child: str
    parent_point: np.ndarray
    child_point: np.ndarray
    rotation: np.ndarray
    """Of the child's frame in the parent's, for a lock or an angle (matrix)."""
    axis: np.ndarray = dataclasses.field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    """About which an angle stays, in the parent's frame."""


@record(frozen=True)
class Mimic:
    """A joint that follows another one: ``x = ratio·x_leader + offset``."""

    joint: str
    leader: str
    ratio: float
    offset: float


@record(frozen=True)
class RobotSensor:
    """A sensor that a robot file states, in the words of model files."""

    name: str
    type: str
    of: str
    """The joint or link."""
    point: np.ndarray = dataclasses.field(default_factory=lambda: NOWHERE)
    """Where it is on the link [m], and how it is turned there (quaternion)."""
    mounting: np.ndarray = dataclasses.field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))


@record(frozen=True)
class Description:
    """A robot file, read. ``root`` is the link that stands for the world; its own mass plays no part."""

    name: str
    source: str
    root: str
    links: dict[str, Link]
    joints: dict[str, RobotJoint]
    actuators: tuple[Actuator, ...] = ()
    driven_otherwise: tuple[str, ...] = ()
    """Joints with an actuator of another kind (a velocity loop, a muscle), which the model does not have."""
    loops: tuple[Loop, ...] = ()
    mimics: tuple[Mimic, ...] = ()
    followers: tuple[str, ...] = ()
    """Joints that others move; recordings do not have them."""
    sensors: tuple[RobotSensor, ...] = ()
    gravity: np.ndarray = dataclasses.field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    start: dict[str, float] = dataclasses.field(default_factory=dict)
    """Joint → position at which simulations start [rad or m]."""
    notes: tuple[str, ...] = ()
    """What is in the file and not in the model, and what was assumed; a sentence each."""

    def error(self, message: str, line: int | None = None) -> ModelFileError:
        """An error in this file."""
        return ModelFileError(message, self.source, line)

    def check_numbers(self) -> None:
        """Raise at a part of which a number is not finite: what a file says may overflow where it is put together."""
        parts: list[Any] = [*self.links.values(), *self.joints.values(), *self.loops, *self.sensors]
        for part in (*parts, *self.actuators, *self.mimics):
            _check_finite(part, getattr(part, "name", "") or part.joint, self)
        if not np.all(np.isfinite(self.gravity)):
            raise self.error(f"gravity is {self.gravity}, which is not finite")

    def outward(self, link: str) -> list[RobotJoint]:
        """The joints that a link holds."""
        return self._outward.get(link, [])

    @functools.cached_property
    def _outward(self) -> dict[str, list[RobotJoint]]:
        held: dict[str, list[RobotJoint]] = {}
        for joint in self.joints.values():
            held.setdefault(joint.parent, []).append(joint)
        return held

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
        """The robot with each joint that follows another one as a parallelogram, if it is one, or held at its offset.

        A parallelogram keeps the angle of two bodies: a follower behind its leader that turns back as far as that one
        turns, or one beside it that turns as far.
        """
        joints, loops, held = dict(self.joints), list(self.loops), []
        for mimic in self.mimics:
            loop = self._parallelogram(mimic)
            if loop is None:
                held.append(mimic.joint)
                joints[mimic.joint] = self.joints[mimic.joint].held(mimic.offset)
            else:
                loops.append(loop)
        followers = {mimic.joint for mimic in self.mimics}
        note = f"joints that follow others, but not as in a parallelogram, are held at their offset: {', '.join(held)}"
        return dataclasses.replace(
            self,
            joints=joints,
            loops=tuple(loops),
            mimics=(),
            followers=tuple(followers - {*held}),
            actuators=tuple(actuator for actuator in self.actuators if actuator.joint not in followers),
            notes=(*self.notes, note) if held else self.notes,
        )

    def _parallelogram(self, mimic: Mimic) -> Loop | None:
        """The loop that a mimicking hinge stands for; None where it does not keep an angle between two bodies."""
        leader, follower = self.joints[mimic.leader], self.joints[mimic.joint]
        if leader.kind != "hinge" or follower.kind != "hinge":
            return None
        behind = follower.parent == leader.child
        if not behind and follower.parent != leader.parent:
            return None
        base = leader.rotation if behind else np.eye(3)
        first, second = leader.rotation @ leader.axis, base @ follower.rotation @ follower.axis
        sense = float(first @ second)
        wanted = -sense if behind else sense
        if abs(abs(sense) - 1.0) > PARALLEL or abs(mimic.ratio - wanted) > PARALLEL:
            return None
        # Both at zero of the leader: the follower's child, seen from the leader's parent or from its child.
        child = base @ follower.held(mimic.offset).rotation
        parent = leader.parent if behind else leader.child
        seen = child if behind else leader.rotation.T @ child
        axis = first if behind else leader.axis
        return Loop(f"{mimic.joint}_mimic", "same_angle", parent, follower.child, NOWHERE, NOWHERE, seen, axis)

    def driven(self, drive: str | None) -> Description:
        """The robot with all actuators of one kind, ``"torque"`` or ``"position"``; None leaves them as they are.

        Torques are those of the joints, behind all gears. Joints with an actuator of another kind are driven, too; in a
        file without actuators all joints that nothing else moves are.
        """
        if drive is None:
            return self
        known = {actuator.joint: actuator for actuator in self.actuators}
        axes = [name for name, joint in self.joints.items() if joint.kind in AXIS_KINDS and name not in self.followers]
        names = dict.fromkeys([*known, *self.driven_otherwise]) or axes
        before = [known.get(name, Actuator(name)) for name in names]
        if drive == "torque":
            changed = tuple(Actuator(part.joint, gear=part.gear) for part in before)
        else:
            changed = tuple(
                part if part.kp is not None else Actuator(part.joint, kp=0.0, limit=part.limit) for part in before
            )
        return dataclasses.replace(self, actuators=changed)


def _check_finite(part: Any, name: str, file: Description) -> None:
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            _check_finite(value, name, file)
        elif field.name not in ENDLESS and isinstance(value, float | np.ndarray) and not np.all(np.isfinite(value)):
            raise file.error(
                f"{field.name} of {name!r} is {str(value)[:40]}, which is not finite", getattr(part, "line", None)
            )
