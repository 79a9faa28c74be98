"""Changed numbers of a mechanism in terms of the robot file they came from: links, joints, the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.errors import MechanismError
from shadowfit.mechanism import Mechanism
from shadowfit.mechanism.body import check_inertia
from shadowfit.models.robots.build import Robot
from shadowfit.models.robots.inertia import MassProperties, total
from shadowfit.records import record

# Changes below this, relative to the size of what changes, come from turning frames to and fro.
ROUNDING = 1e-12
BODY_FIELDS = ("mass", "com", "inertia")


@record(frozen=True)
class Changes:
    """What is new, by the names of the robot file; ``names`` are the mechanism's, of what each part stands for."""

    links: dict[str, MassProperties]
    """Link → its new mass properties, in its own frame."""
    joints: dict[str, dict[str, Any]]
    """Joint → field of the mechanism's joint (``viscous``, ``motor.gain``, ...) → new value."""
    names: dict[str, list[str]]
    """Link, or joint and field such as ``elbow.viscous`` → names of the numbers."""
    other: list[str]
    """Names of numbers that are of neither."""
    impossible: dict[str, str]
    """Names of numbers of bodies whose change leaves nothing possible for a link, and why."""


def changes_of(robot: Robot, values: Mapping[str, Any]) -> Changes:
    """Sort new values of a robot's mechanism by the parts of its file.

    Those of a body that several links make up go to the heaviest one; the others keep what they have.

    Raises:
        MechanismError: the new values, beside those that stay, are not those of a possible mechanism.
    """
    wanted = robot.mechanism.set(values)
    links_of = {part: link for link, part in robot.bodies.items()}
    joints_of = {part: joint for joint, part in robot.joints.items()}
    links: dict[str, MassProperties] = {}
    joints: dict[str, dict[str, Any]] = {}
    names: dict[str, list[str]] = {}
    other: list[str] = []
    impossible: dict[str, str] = {}
    for name in values:
        part, _, field = name.partition(".")
        if part in links_of and field.split(".")[0] in BODY_FIELDS:
            try:
                link, mass = _share(robot, links_of[part], wanted, part)
            except MechanismError as error:
                impossible[name] = str(error)
                continue
            links[link] = mass
            names.setdefault(link, []).append(name)
        elif part in joints_of:
            plain = field.removesuffix(f".{field[-1]}") if field[-2:] in (".x", ".y", ".z") else field
            value = getattr(wanted.joints[part], plain) if "." not in plain and plain != field else wanted.get(name)
            joints.setdefault(joints_of[part], {})[plain] = value
            names.setdefault(f"{joints_of[part]}.{plain}", []).append(name)
        else:
            other.append(name)
    return Changes(links, joints, names, other, impossible)


def _share(robot: Robot, body: str, wanted: Mechanism, part: str) -> tuple[str, MassProperties]:
    """The heaviest link of a body, and what it must have so that the body has what is wanted."""
    new = wanted.bodies[part]
    mass = MassProperties(float(new.mass), np.asarray(new.com, float), np.array(new.inertia.rows(), float))
    members = robot.lumped.members(body)
    parts = {link: properties for link in members if (properties := robot.description.links[link].mass) is not None}
    if not parts:
        return body, mass
    heaviest = max(parts, key=lambda link: parts[link].mass)
    places = robot.lumped.places
    others = [
        properties.moved(places[link].rotation, places[link].position)
        for link, properties in parts.items()
        if link != heaviest
    ]
    if others:
        rest = total(others)
        if not mass.mass > rest.mass:
            raise MechanismError(f"the links that are fixed to {heaviest!r} have {rest.mass:.4g} kg alone")
        mass = mass.plus(rest, -1.0)
        check_inertia(mass.inertia, f"what is left for {heaviest!r} beside the links that are fixed to it")
    place = places[heaviest]
    return heaviest, mass.moved(place.rotation.T, -place.rotation.T @ place.position)


def joint_origin(robot: Robot, joint: str, wanted: dict[str, Any]) -> np.ndarray:
    """Position [m] of a joint's child frame in its parent link's, from a new ``parent_point``."""
    stated = robot.description.joints[joint]
    base = robot.lumped.places[stated.parent]
    return (
        base.rotation.T @ (np.asarray(wanted["parent_point"], float) - base.position) - stated.rotation @ stated.anchor
    )


def moved(old: MassProperties, new: MassProperties) -> bool:
    """Whether the centre of mass is elsewhere, by more than rounding of the link's own size."""
    size = np.sqrt(np.trace(old.inertia) / old.mass) + np.max(np.abs([old.com, new.com]))
    return bool(np.max(np.abs(new.com - old.com)) > ROUNDING * size)
