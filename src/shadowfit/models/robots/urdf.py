"""URDF: the text of a file to a description of the robot.

Frames: a joint's ``origin`` is the child link's frame in the parent link's, the axis is in the child's frame, and an
``inertial`` has an ``origin`` of its own in the link's frame. Fixed-axis angles: ``R = R_z(yaw) R_y(pitch) R_x(roll)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from shadowfit.errors import nearest
from shadowfit.mechanism import WORLD
from shadowfit.models.errors import ModelFileError
from shadowfit.models.robots.description import AXIS_KINDS, Actuator, Description, JointKind, Link, Mimic, RobotJoint
from shadowfit.models.robots.inertia import MassProperties, ball, flaw_of, matrix_of, moments_of
from shadowfit.models.robots.markup import Element

KINDS: dict[str, JointKind] = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def read_urdf(robot: Element) -> Description:
    """The robot of a ``<robot>`` element.

    Raises:
        ModelFileError: what is wrong with it, with the line.
    """
    _refuse_xacro(robot)
    links = _named(robot, "link")
    joints = _named(robot, "joint")
    if not links:
        raise robot.error("the robot has no links")
    tree = {name: _joint(element, links) for name, element in joints.items()}
    mimics = tuple(
        _mimic(element, tree)
        for name, element in joints.items()
        # A joint that was fixed later follows nothing any more.
        if tree[name].kind != "fixed" and element.one("mimic") is not None
    )
    _refuse_circles(mimics, joints)
    followers = {mimic.joint for mimic in mimics}
    root = _root(robot, links, tree)
    tied = {root, *(joint.child for joint in tree.values() if joint.kind == "fixed")}
    read = {name: _link(element, tied=name in tied) for name, element in links.items()}
    return Description(
        name=robot.attributes["name"].text if "name" in robot.attributes else "robot",
        source=robot.source,
        root=root,
        links=read,
        joints=tree,
        actuators=tuple(
            Actuator(name) for name, joint in tree.items() if joint.kind in AXIS_KINDS and name not in followers
        ),
        mimics=mimics,
        notes=tuple(_assumed({name: element for name, element in links.items() if name != root}, read)),
    )


def inertial_frame(inertial: Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation matrix and position [m] of an ``inertial`` in the link's frame."""
    return _origin(inertial)


def _refuse_xacro(robot: Element) -> None:
    for element in robot.walk():
        macro = element.tag.startswith("xacro:")
        blank = any(sign in value.text for value in element.attributes.values() for sign in ("${", "$("))
        if macro or blank:
            raise element.error(
                "this is a xacro template, not yet a URDF; expand it first: `xacro FILE > robot.urdf` "
                "(`pip install xacro`, or ROS), and use robot.urdf"
            )


def _named(robot: Element, tag: str) -> dict[str, Element]:
    elements: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.text("name")
        if name in elements:
            raise element.error(f"a second {tag} called {name!r}; the first is on line {elements[name].line}")
        elements[name] = element
    return elements


def _link(element: Element, *, tied: bool) -> Link:
    """A link; ``tied``: whether it is the root or a fixed joint holds it, so that it needs no mass of its own."""
    name, inertial = element.text("name"), element.one("inertial")
    if inertial is None:
        return Link(name, None, element.line)
    mass, moments = _stated(inertial)
    if mass < 0.0:
        raise inertial.error(f"link {name!r} has a mass of {mass:g} kg; a mass cannot be negative")
    if mass == 0.0:
        if np.any(moments) and not tied:
            raise inertial.error(f"link {name!r} has moments of inertia but no mass; give it one, or leave both out")
        return Link(name, None, element.line)
    rotation, position = _origin(inertial)
    if not np.any(moments):
        return Link(name, ball(mass, position), inertial.line)
    inertia = rotation @ matrix_of(moments) @ rotation.T
    flaw = flaw_of(inertia, f"the inertia of link {name!r}", lambda nearest: _written(rotation.T @ nearest @ rotation))
    return Link(name, MassProperties(mass, position, 0.5 * (inertia + inertia.T)), inertial.line, flaw)


def _stated(inertial: Element) -> tuple[float, np.ndarray]:
    """Mass [kg] and moments [kg m²] of an ``inertial``, zero where it says nothing."""
    mass, inertia = inertial.one("mass"), inertial.one("inertia")
    moments = np.zeros(6) if inertia is None else np.array([inertia.number(key, 0.0) for key in MOMENTS])
    return (0.0 if mass is None else mass.number("value")), moments


def _assumed(elements: dict[str, Element], links: dict[str, Link]) -> Iterator[str]:
    """What was assumed about links whose mass or inertia is missing, a sentence for all of a kind."""
    balls, idle = [], []
    for name, element in elements.items():
        inertial, mass = element.one("inertial"), links[name].mass
        _, moments = (0.0, np.zeros(6)) if inertial is None else _stated(inertial)
        if mass is not None and not np.any(moments):
            balls.append(f"{name} ({mass.mass:g} kg, {mass.inertia[0, 0]:.3g} kg m²)")
        if mass is None and np.any(moments):
            idle.append(name)
    if balls:
        yield f"links with a mass but no inertia are taken as balls of water of that mass: {', '.join(balls)}"
    if idle:
        yield f"moments of inertia of links without mass are left out: {', '.join(idle)}"


def _written(inertia: np.ndarray) -> str:
    return " ".join(f'{key}="{value:.6g}"' for key, value in zip(MOMENTS, moments_of(inertia), strict=True))


def _joint(element: Element, links: dict[str, Element]) -> RobotJoint:
    name, kind = element.text("name"), element.choice("type", KINDS)
    ends = {}
    for side in ("parent", "child"):
        end = element.one(side)
        if end is None:
            raise element.error(f"joint {name!r} has no <{side}>")
        ends[side] = end.text("link")
        if ends[side] not in links:
            raise end.error(
                f"the {side} of joint {name!r} is {ends[side]!r}, which is no link{nearest(ends[side], links)}"
            )
    if ends["parent"] == ends["child"]:
        raise element.error(f"joint {name!r} connects {ends['parent']!r} to itself")
    rotation, position = _origin(element)
    # Exporters write an axis for joints that have none, too, mostly zero.
    axis = None if kind in ("fixed", "floating") else element.one("axis")
    dynamics = element.one("dynamics")
    direction = np.array([1.0, 0.0, 0.0]) if axis is None else axis.numbers("xyz", 3)
    if not np.linalg.norm(direction) > 0.0:
        raise (axis or element).error(f"the axis of joint {name!r} is zero; a direction needs some length")
    losses = {key: 0.0 if dynamics is None else dynamics.number(key, 0.0) for key in ("damping", "friction")}
    for key, value in losses.items():
        if value < 0.0 and dynamics is not None:
            raise dynamics.error(f"the {key} of joint {name!r} is {value:g}; it cannot be negative")
    return RobotJoint(
        name,
        KINDS[kind],
        ends["parent"],
        ends["child"],
        rotation,
        position,
        axis=direction / np.linalg.norm(direction),
        damping=losses["damping"],
        friction=losses["friction"],
        limits=_limits(element) if kind in ("revolute", "prismatic") else None,
        speed=_rated(element, "velocity"),
        effort=_rated(element, "effort"),
        line=element.line,
    )


def _limits(element: Element) -> tuple[float, float] | None:
    limit = element.one("limit")
    if limit is None or not {"lower", "upper"} & set(limit.attributes):
        return None
    lower, upper = limit.number("lower", 0.0), limit.number("upper", 0.0)
    if lower > upper:
        raise limit.error(
            f"the lower limit {lower:g} of joint {element.text('name')!r} is above the upper one, {upper:g}"
        )
    return (lower, upper) if lower < upper else None


def _rated(element: Element, key: str) -> float | None:
    """What the joint may do at most; files that do not know write nothing, or zero."""
    limit = element.one("limit")
    value = 0.0 if limit is None else limit.number(key, 0.0)
    return value if 0.0 < value < np.inf else None


def _mimic(element: Element, joints: dict[str, RobotJoint]) -> Mimic:
    name, mimic = element.text("name"), element.one("mimic")
    assert mimic is not None
    leader = mimic.text("joint")
    for joint in (name, leader):
        if joint not in joints:
            raise mimic.error(f"joint {name!r} mimics {leader!r}, which is no joint{nearest(leader, joints)}")
        if joints[joint].kind not in (*AXIS_KINDS, "fixed"):
            raise mimic.error(f"joint {joint!r} has no single axis, so {name!r} cannot mimic {leader!r}")
    if leader == name:
        raise mimic.error(f"joint {name!r} mimics itself")
    return Mimic(name, leader, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


def _refuse_circles(mimics: Iterable[Mimic], joints: dict[str, Element]) -> None:
    """Raise where joints mimic each other, so that none of them leads."""
    leaders = {mimic.joint: mimic.leader for mimic in mimics}
    for name in leaders:
        way = [name]
        while way[-1] in leaders and leaders[way[-1]] not in way:
            way.append(leaders[way[-1]])
        if leaders.get(way[-1]) == name:
            raise joints[name].error(f"joints mimic each other in a circle: {', '.join(map(repr, way))}; one must lead")


def _root(robot: Element, links: dict[str, Element], joints: dict[str, RobotJoint]) -> str:
    holder: dict[str, RobotJoint] = {}
    for joint in joints.values():
        if joint.child in holder:
            raise ModelFileError(
                f"link {joint.child!r} is the child of two joints, {holder[joint.child].name!r} and {joint.name!r}; "
                "a URDF is a tree: close loops in the small model file beside it",
                robot.source,
                joint.line,
            )
        holder[joint.child] = joint
    if WORLD in holder:
        raise links[WORLD].error(f"only the root link may be called {WORLD!r}, for it does not move; rename this one")
    roots = [name for name in links if name not in holder]
    if len(roots) > 1:
        raise links[roots[1]].error(
            f"the robot falls into pieces: no joint holds {', '.join(map(repr, roots))}; only one link may be the root"
        )
    # With one joint for each other link the rest must be a tree, unless some links hold each other in a circle.
    held: dict[str, list[str]] = {}
    for joint in joints.values():
        held.setdefault(joint.parent, []).append(joint.child)
    reached, ahead = set(roots), list(roots)
    while ahead:
        more = held.get(ahead.pop(), [])
        reached.update(more)
        ahead += more
    circle = [name for name in links if name not in reached]
    if circle:
        raise ModelFileError(
            f"links hold each other in a circle: {', '.join(map(repr, circle[:6]))}; a URDF is a tree",
            robot.source,
            holder[circle[0]].line,
        )
    return roots[0]


def _origin(element: Element) -> tuple[np.ndarray, np.ndarray]:
    origin = element.one("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    roll, pitch, yaw = origin.numbers("rpy", 3, (0.0, 0.0, 0.0))
    return turn(2, yaw) @ turn(1, pitch) @ turn(0, roll), origin.numbers("xyz", 3, (0.0, 0.0, 0.0))


def turn(axis: int, angle: float) -> np.ndarray:
    """Matrix of a rotation about an axis of the frame (0, 1, 2) by an angle [rad]."""
    matrix = np.eye(3)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[first, second], matrix[second, first] = -np.sin(angle), np.sin(angle)
    return matrix
