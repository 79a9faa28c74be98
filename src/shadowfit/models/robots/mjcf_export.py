"""New values into the elements of an MJCF file; what an element inherits from a default is written out on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shadowfit.models.robots.build import MOTOR, Robot
from shadowfit.models.robots.changes import ROUNDING, Changes, moved
from shadowfit.models.robots.edits import Editor
from shadowfit.models.robots.inertia import MassProperties, moments_of
from shadowfit.models.robots.markup import Element

JOINT_ATTRIBUTES = {
    "viscous": "damping",
    "coulomb": "frictionloss",
    f"{MOTOR}.shaft_inertia": "armature",
    "rotor.shaft_inertia": "armature",
    "spring.stiffness": "stiffness",
}
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")


def edit_mjcf(root: Element, robot: Robot, changes: Changes, editor: Editor) -> list[str]:
    """Put the changes where they belong; returns the names of those that have no place in this file.

    Bodies and joints of included files, and without a name of their own, have none, and neither have masses where the
    compiler is told to compute all of them from geoms.
    """
    bodies = {name: element for name, element, _ in _bodies(root)}
    joints = {name: element for _, _, body_joints in _bodies(root) for name, element in body_joints.items()}
    left = list(changes.other)
    from_geoms = _inertia_from_geoms(root)
    for link, mass in changes.links.items():
        old = robot.description.links[link].mass
        if link not in bodies or old is None or from_geoms:
            left += changes.names[link]
        else:
            _edit_body(bodies[link], old, mass, editor)
    for joint, fields in changes.joints.items():
        for field, value in fields.items():
            actuator = _actuator(root, joint)
            if field in JOINT_ATTRIBUTES and joint in joints:
                editor.put(joints[joint], JOINT_ATTRIBUTES[field], value)
            elif field == f"{MOTOR}.gain" and actuator is not None:
                editor.put(actuator, "gear", _geared(robot, joint, actuator, value))
            else:
                left += changes.names[f"{joint}.{field}"]
    return left


def _inertia_from_geoms(root: Element) -> bool:
    """Whether an ``inertial`` of this file would count for nothing."""
    stated = [compiler.attributes.get("inertiafromgeom") for compiler in root.all("compiler")]
    return any(value is not None and value.text == "true" for value in stated)


def _bodies(root: Element) -> Iterator[tuple[str, Element, dict[str, Element]]]:
    """Bodies with a name of their own, and the joints of each by the names that the reader gives them."""
    for worldbody in root.all("worldbody"):
        for element in worldbody.walk():
            if element.tag == "body" and "name" in element.attributes:
                name = element.attributes["name"].text
                yield name, element, _joints(name, element)


def _joints(body: str, element: Element) -> dict[str, Element]:
    joints: dict[str, Element] = {}
    for place, joint in enumerate(child for child in element.children if child.tag == "joint"):
        name = joint.attributes["name"].text if "name" in joint.attributes else ""
        joints[name or f"{body}_joint{place + 1 if place else ''}"] = joint
    return joints


def _edit_body(element: Element, old: MassProperties, new: MassProperties, editor: Editor) -> None:
    changed = np.max(np.abs(new.inertia - old.inertia)) > ROUNDING * np.max(np.abs(old.inertia))
    inertial = element.one("inertial")
    values: dict[str, Any] = {"pos": new.com, "mass": new.mass, "fullinertia": moments_of(new.inertia)}
    if inertial is None:
        # The inertia came from geoms; from now on it is stated.
        editor.add_child(element, "inertial", values)
        return
    if new.mass != old.mass:
        editor.put(inertial, "mass", new.mass)
    if moved(old, new):
        editor.put(inertial, "pos", new.com)
    if changed:
        for name in ORIENTATIONS:
            editor.remove(inertial, name)
        if "diaginertia" in inertial.attributes:
            editor.replace(inertial, "diaginertia", "fullinertia", values["fullinertia"])
        else:
            editor.put(inertial, "fullinertia", values["fullinertia"])


def _actuator(root: Element, joint: str) -> Element | None:
    for group in root.all("actuator"):
        for element in group.children:
            named = element.attributes.get("joint")
            if element.tag in ("motor", "general") and named is not None and named.text == joint:
                return element
    return None


def _geared(robot: Robot, joint: str, actuator: Element, gain: float) -> np.ndarray:
    """The gear that gives a torque per control; its other components, if there are any, stay."""
    stated = actuator.attributes["gear"].text.split() if "gear" in actuator.attributes else []
    before = next(part for part in robot.description.actuators if part.joint == joint)
    return np.array([before.gear * gain / before.gain, *map(float, stated[1:])])
