"""New values into the elements of a URDF."""

from __future__ import annotations

from typing import Any

import numpy as np

from shadowfit.models.robots.build import Robot
from shadowfit.models.robots.changes import ROUNDING, Changes, joint_origin, moved
from shadowfit.models.robots.edits import Editor
from shadowfit.models.robots.inertia import MassProperties, moments_of
from shadowfit.models.robots.markup import Element
from shadowfit.models.robots.urdf import MOMENTS, inertial_frame

DYNAMICS = {"viscous": "damping", "coulomb": "friction"}


def edit_urdf(root: Element, robot: Robot, changes: Changes, editor: Editor) -> list[str]:
    """Put the changes where they belong; returns the names of those that a URDF has no place for."""
    left = list(changes.other)
    for element in root.all("link"):
        link = element.text("name")
        if link in changes.links:
            _edit_link(element, robot.description.links[link].mass, changes.links[link], editor)
    for element in root.all("joint"):
        joint = element.text("name")
        fields = changes.joints.get(joint, {})
        _put_in_child(element, "dynamics", {DYNAMICS[f]: value for f, value in fields.items() if f in DYNAMICS}, editor)
        if "parent_point" in fields:
            _put_in_child(element, "origin", {"xyz": joint_origin(robot, joint, fields)}, editor)
        for field in fields.keys() - {*DYNAMICS, "parent_point"}:
            left += changes.names[f"{joint}.{field}"]
    return left


def _edit_link(element: Element, old: MassProperties | None, new: MassProperties, editor: Editor) -> None:
    inertial = element.one("inertial")
    if inertial is None or old is None:
        return  # A link without mass that was given some to move others: told when the file is read again.
    rotation, _ = inertial_frame(inertial)
    mass, inertia = inertial.one("mass"), inertial.one("inertia")
    if mass is not None and new.mass != old.mass:
        editor.put(mass, "value", new.mass)
    if moved(old, new):
        _put_in_child(inertial, "origin", {"xyz": new.com}, editor)
    moments = moments_of(rotation.T @ new.inertia @ rotation)
    stated = np.array([inertia.number(key, 0.0) if inertia is not None else 0.0 for key in MOMENTS])
    changed = np.abs(moments - stated) > ROUNDING * np.max(np.abs(stated))
    if not np.any(changed):
        return
    _put_in_child(
        inertial,
        "inertia",
        {
            key: value
            for key, value, differs in zip(MOMENTS, moments, changed, strict=True)
            if differs or inertia is None
        },
        editor,
    )


def _put_in_child(parent: Element, tag: str, values: dict[str, Any], editor: Editor) -> None:
    """Numbers of an element's only child of a tag, which is added where there is none."""
    child = parent.one(tag)
    if child is None:
        if values:
            editor.add_child(parent, tag, values)
        return
    for name, value in values.items():
        editor.put(child, name, value)
