"""Which links move as one body: those that fixed joints tie together, and joints that move no mass at all."""

from __future__ import annotations

import numpy as np

from shadowfit.mechanism import WORLD
from shadowfit.models.robots.description import Description, RobotJoint
from shadowfit.models.robots.inertia import MassProperties, ball, total
from shadowfit.records import record

# Mass of a link that has none but must have some, since a joint moves it and it moves others: relative to the robot's.
MASSLESS = 1e-6


@record(frozen=True)
class Placed:
    """A link as part of a body: the body's name (that of its first link), and the link's frame in the body's."""

    body: str
    rotation: np.ndarray
    position: np.ndarray


@record(frozen=True)
class Lumped:
    """A robot with its links put together into bodies."""

    places: dict[str, Placed]
    """Link → where it is; the root and what is fixed to it are part of the world."""
    masses: dict[str, MassProperties]
    """Body → its mass properties, in the frame of its first link."""
    joints: tuple[RobotJoint, ...]
    """Joints that move."""
    notes: tuple[str, ...]

    def members(self, body: str) -> list[str]:
        """Links of a body, the one that gives it its name and frame first."""
        return [link for link, place in self.places.items() if place.body == body]


def lump(robot: Description) -> Lumped:
    """The bodies of a robot."""
    order = _outward(robot)
    idle = _idle(robot, order)
    places = {robot.root: Placed(WORLD, np.eye(3), np.zeros(3))}
    moving = []
    for joint in order:
        base = places[joint.parent]
        if joint.kind == "fixed" or joint.name in idle:
            rotation, position = base.rotation @ joint.rotation, base.position + base.rotation @ joint.position
            places[joint.child] = Placed(base.body, rotation, position)
        else:
            places[joint.child] = Placed(joint.child, np.eye(3), np.zeros(3))
            moving.append(joint)
    masses, massless = _masses(robot, places)
    notes = []
    if idle:
        notes.append(f"joints that move no mass are taken as fixed: {', '.join(idle)}")
    if massless:
        notes.append(
            f"links that move but have no mass get a millionth of the robot's, as a ball: {', '.join(massless)}"
        )
    return Lumped(places, masses, tuple(moving), tuple(notes))


def _outward(robot: Description) -> list[RobotJoint]:
    """All joints, each one behind the one that holds its parent, branch by branch."""
    order, waiting = [], robot.outward(robot.root)[::-1]
    while waiting:
        joint = waiting.pop()
        order.append(joint)
        waiting += robot.outward(joint.child)[::-1]
    return order


def _idle(robot: Description, order: list[RobotJoint]) -> list[str]:
    """Names of joints that could move, but nothing behind them has mass."""
    heavy = {name for name, link in robot.links.items() if link.mass is not None}
    heavy |= {end for loop in robot.loops for end in (loop.parent, loop.child)}
    for joint in reversed(order):
        if joint.child in heavy:
            heavy.add(joint.parent)
    return [joint.name for joint in order if joint.child not in heavy and joint.kind != "fixed"]


def _masses(robot: Description, places: dict[str, Placed]) -> tuple[dict[str, MassProperties], list[str]]:
    parts: dict[str, list[MassProperties]] = {place.body: [] for place in places.values() if place.body != WORLD}
    for name, place in places.items():
        mass = robot.links[name].mass
        if mass is not None and place.body != WORLD:
            parts[place.body].append(mass.moved(place.rotation, place.position))
    whole = sum(part.mass for members in parts.values() for part in members)
    massless = [body for body, members in parts.items() if not members]
    filled = {body: members or [ball(MASSLESS * whole, np.zeros(3))] for body, members in parts.items()}
    return {body: total(members) for body, members in filled.items()}, massless
