"""From the description of a robot to a mechanism with the sensors and inputs that recordings of robots have."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from shadowfit.geometry import rotations
from shadowfit.mechanism import (
    WORLD,
    AxisLaw,
    Body,
    Compliance,
    Coulomb,
    Gravity,
    Input,
    Joint,
    JointLimit,
    JointPosition,
    Mechanism,
    PositionMotor,
    Rotor,
    Sensor,
    Spring,
    TorqueMotor,
    connect,
)
from shadowfit.mechanism.joint_types import Ball, Hinge, JointType, Lock, Planar, SameAngle, Slider
from shadowfit.models import vocabulary
from shadowfit.models.reader import Rating
from shadowfit.models.robots.description import AXIS_KINDS, Actuator, Description, Loop, RobotJoint, RobotSensor
from shadowfit.models.robots.lump import Lumped, lump
from shadowfit.models.robots.naming import Names
from shadowfit.models.start import Start
from shadowfit.records import record

KINDS: dict[str, JointType] = {"hinge": Hinge(), "slider": Slider(), "ball": Ball(), "planar": Planar()}
LOOPS: dict[str, JointType] = {"ball": Ball(), "lock": Lock(), "same_angle": SameAngle()}
MOTOR = "motor"
# How far joints give under the robot's own weight, relative to its size: not at all, for what recordings can tell.
SAG = 1e-6
STANDARD_GRAVITY = 9.81  # m/s²


@record(frozen=True)
class Robot:
    """A robot as a mechanism, and which of its parts stand for what in the file."""

    description: Description
    lumped: Lumped
    mechanism: Mechanism
    start: Start
    bodies: dict[str, str]
    """Link that moves → body of the mechanism."""
    joints: dict[str, str]
    """Joint that moves → joint of the mechanism."""
    notes: tuple[str, ...]

    @property
    def ratings(self) -> dict[str, Rating]:
        """Joint of the mechanism → what the file says it may do, where it says something."""
        stated = {
            name: Rating(joint.limits, joint.speed, joint.effort)
            for joint in self.lumped.joints
            if joint.kind in AXIS_KINDS and (name := self.joints.get(joint.name)) is not None
        }
        return {name: rating for name, rating in stated.items() if rating != Rating()}


def build(robot: Description, *, limits: bool = False) -> Robot:
    """The mechanism of a robot; with ``limits``, its end stops are contacts."""
    lumped, names = lump(robot), Names()
    moving = {joint.name: joint for joint in lumped.joints}
    if not lumped.masses:
        raise robot.error(_why_nothing_moves(robot))
    joints = names.take_all((name for name, joint in moving.items() if joint.kind != "free"), "_joint")
    bodies = {WORLD: WORLD} | names.take_all(lumped.masses, "_link")
    stops = {name: names.take(f"{name}_limits") for name in joints if limits and moving[name].limits}
    actuators = {actuator.joint: actuator for actuator in robot.actuators if actuator.joint in joints}
    inputs = {
        name: names.take(f"{name}_{'effort' if part.kp is None else 'target'}") for name, part in actuators.items()
    }
    sensors, left_out = _sensors(robot, lumped, joints, bodies, names)
    loops = {loop.name: names.take(loop.name) for loop in robot.loops}
    compliance = _compliance(robot, lumped)
    laws = {name: _laws(moving[name], actuators.get(name), inputs.get(name)) for name in joints}
    mechanism = Mechanism(
        {bodies[body]: Body(mass.mass, mass.inertia, tuple(mass.com)) for body, mass in lumped.masses.items()},
        {joints[name]: _joint(moving[name], lumped, bodies, laws[name], compliance) for name in joints}
        | {loops[loop.name]: _loop(loop, lumped, bodies, compliance) for loop in robot.loops},
        contacts={stop: JointLimit(joints[name], *_stops(moving[name])) for name, stop in stops.items()},
        sensors=sensors,
        inputs={inputs[name]: _input(moving[name], part) for name, part in actuators.items()},
        gravity=_gravity(robot.gravity),
        name=robot.name,
    )
    start = Start(positions={joints[name]: position for name, position in robot.start.items() if name in joints})
    notes = [*robot.notes, *lumped.notes]
    if left_out:
        notes.append(f"sensors that are left out: {', '.join(left_out)}")
    return Robot(robot, lumped, mechanism, start, bodies, joints, tuple(notes))


def _why_nothing_moves(robot: Description) -> str:
    moving = [joint.name for joint in robot.joints.values() if joint.kind != "fixed"]
    if not moving:
        return f"nothing in this robot moves: no joint but fixed ones, and the root {robot.root!r} is the world"
    return (
        f"nothing that moves in this robot has a mass (joints: {', '.join(moving)}); a fit starts from masses and "
        "inertias: write what you know or guess of them into the file"
    )


def _compliance(robot: Description, lumped: Lumped) -> Compliance:
    """Of all joints: M g bends them by ``SAG`` of the length L of all links one behind the other.

    ``c = SAG·L/(M g)`` for lengths [m/N], ``c = SAG/(M g L)`` for angles [rad/(N m)], with standard gravity,
    both to the power of ten below.
    """
    parts = lumped.masses.values()
    sizes = [np.linalg.norm(part.com) + np.sqrt(np.trace(part.inertia) / part.mass) for part in parts]
    length = float(sum(sizes) + sum(np.linalg.norm(joint.position) for joint in robot.joints.values()))
    weight = STANDARD_GRAVITY * sum(part.mass for part in parts)
    exact = np.array([SAG * length / weight, SAG / (weight * length)])
    return Compliance(*(10.0 ** np.floor(np.log10(exact))))


def _joint(
    joint: RobotJoint, lumped: Lumped, bodies: dict[str, str], laws: dict[str, AxisLaw], compliance: Compliance
) -> Joint:
    base = lumped.places[joint.parent]
    rotation = base.rotation @ joint.rotation
    free = joint.kind in AXIS_KINDS
    return connect(
        KINDS[joint.kind],
        bodies[base.body],
        bodies[joint.child],
        axis=rotation @ joint.axis,
        parent_point=base.position + base.rotation @ joint.position + rotation @ joint.anchor,
        child_point=joint.anchor,
        zero_rotation=rotations.from_matrix(rotation),
        viscous=joint.damping if free else 0.0,
        friction=Coulomb(coulomb=joint.friction) if free else None,
        laws=laws,
        compliance=compliance,
    )


def _laws(joint: RobotJoint, actuator: Actuator | None, command: str | None) -> dict[str, AxisLaw]:
    laws: dict[str, AxisLaw] = {}
    if actuator is not None and actuator.kp is not None:
        laws[MOTOR] = PositionMotor(
            kp=actuator.kp,
            kd=actuator.kd,
            limit=actuator.limit,
            shaft_inertia=joint.armature,
            input=command,
            rotary=joint.kind == "hinge",
        )
    elif actuator is not None:
        laws[MOTOR] = TorqueMotor(gain=actuator.gain, shaft_inertia=joint.armature, input=command)
    elif joint.armature > 0.0 and joint.kind in AXIS_KINDS:
        laws["rotor"] = Rotor(shaft_inertia=joint.armature)
    if joint.stiffness > 0.0:
        laws["spring"] = Spring(stiffness=joint.stiffness, rest=joint.rest)
    return laws


def _input(joint: RobotJoint, actuator: Actuator) -> Input:
    turns = joint.kind == "hinge"
    if actuator.kp is None:
        return Input(unit="N m" if turns else "N")
    return Input(gain=actuator.gain, unit="rad" if turns else "m")


def _loop(loop: Loop, lumped: Lumped, bodies: dict[str, str], compliance: Compliance) -> Joint:
    parent, child = lumped.places[loop.parent], lumped.places[loop.child]
    turn = parent.rotation @ loop.rotation @ child.rotation.T
    return connect(
        LOOPS[loop.kind],
        bodies[parent.body],
        bodies[child.body],
        parent_point=parent.position + parent.rotation @ loop.parent_point,
        child_point=child.position + child.rotation @ loop.child_point,
        zero_rotation=rotations.from_matrix(turn),
        axis=parent.rotation @ loop.axis,
        compliance=compliance,
    )


def _sensors(
    robot: Description, lumped: Lumped, joints: dict[str, str], bodies: dict[str, str], names: Names
) -> tuple[dict[str, Sensor], list[str]]:
    """A position sensor for each axis, those that the file states, and the kinds of those that are left out."""
    rotary = {joint.name: joint.kind == "hinge" for joint in lumped.joints if joint.kind in AXIS_KINDS}
    stated = {sensor.of for sensor in robot.sensors if sensor.type == "joint_position"}
    sensors: dict[str, Sensor] = {
        names.take(f"{name}_position"): JointPosition(joint=joints[name], rotary=turns)
        for name, turns in rotary.items()
        if name not in stated and name not in robot.followers
    }
    left_out = []
    for stated_sensor in robot.sensors:
        fields = _sensor_fields(stated_sensor, lumped, joints, bodies, rotary)
        kind = vocabulary.SENSORS.get(stated_sensor.type)
        if kind is None or fields is None or not fields.keys() <= {field.name for field in dataclasses.fields(kind)}:
            left_out.append(stated_sensor.name)
        else:
            sensors[names.take(stated_sensor.name)] = kind(**fields)
    return sensors, left_out


def _sensor_fields(
    sensor: RobotSensor, lumped: Lumped, joints: dict[str, str], bodies: dict[str, str], rotary: dict[str, bool]
) -> dict[str, Any] | None:
    """What the class of a sensor is made with; None where it looks at something that does not move."""
    if sensor.type in ("joint_position", "joint_speed"):
        return {"joint": joints[sensor.of], "rotary": rotary[sensor.of]} if sensor.of in rotary else None
    place = lumped.places[sensor.of]
    if place.body == WORLD:
        return None
    fields: dict[str, Any] = {"body": bodies[place.body]}
    turn = place.rotation @ rotations.to_matrix(sensor.mounting)
    if sensor.type != "point_position" and not np.array_equal(turn, np.eye(3)):
        fields["mounting"] = rotations.from_matrix(turn)
    if sensor.type in ("point_position", "accelerometer"):
        fields["point"] = place.position + place.rotation @ sensor.point
    return fields


def _stops(joint: RobotJoint) -> tuple[float, float]:
    """End stops that a mechanism can have: those of a hinge beyond half a turn never hold."""
    lower, upper = joint.limits or (-np.inf, np.inf)
    reach = np.pi if joint.kind == "hinge" else np.inf
    return (lower if lower > -reach else -np.inf), (upper if upper < reach else np.inf)


def _gravity(vector: np.ndarray) -> Gravity:
    size = float(np.linalg.norm(vector))
    if size == 0.0 or (vector[0] == 0.0 and vector[1] == 0.0 and vector[2] < 0.0):
        return Gravity(size)
    # The turn between two frames whose x axes are up by this gravity and up by the plain one.
    upward, plain = (rotations.to_matrix(rotations.from_axes(up)) for up in (-vector, np.array([0.0, 0.0, 1.0])))
    return Gravity(size, rotations.from_matrix(upward @ plain.T))
