"""A small model file beside a robot file: it names the robot and says what robot files do not.

    robot = "arm.urdf"
    [sensors."*_position"]
    std = 1e-4
    [joints.elbow]
    friction = "stribeck"

Its tables are laid over those of the model file that the robot alone would be. A name with ``*``, ``?`` or ``[`` stands
for all parts of the group that it matches; ``false`` in place of a part takes it away.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shadowfit.errors import nearest
from shadowfit.files import named_in
from shadowfit.models import places
from shadowfit.models.reader import GROUPS, ModelFile, read_document
from shadowfit.models.robots.build import MOTOR, Robot
from shadowfit.models.robots.read import DRIVES, Reading, read_robot
from shadowfit.models.table import Table
from shadowfit.models.writer import format_model

SETTINGS = ("robot", "weld", "repair", "limits", "drive")
PATTERN = frozenset("*?[")


def load_overlay(document: Table, folder: Path, weld: tuple[str, ...] = ()) -> ModelFile:
    """The model of a file with a key ``robot``; ``folder`` is where that path starts."""
    robot = overlaid_robot(document, folder, weld)
    base = tomllib.loads(format_model(robot.mechanism, start=robot.start))
    parts = _without(document, SETTINGS)
    expanded, where = _expand(parts, base)
    whole = _without_absent_motors(_merge(base, expanded))
    merged = Table(_without_idle_inputs(whole, base), (), where, document.source)
    model = read_document(merged, robot.mechanism.name, "")
    ratings = {name: rating for name, rating in robot.ratings.items() if name in model.mechanism.joints}
    return dataclasses.replace(model, written=None, source=document.source, notes=robot.notes, ratings=ratings)


def overlaid_robot(document: Table, folder: Path, weld: tuple[str, ...] = ()) -> Robot:
    """The robot that such a file names, read as the file says."""
    name = document.text("robot")
    try:
        path = named_in(folder, name)
    except OSError as error:
        raise document.error(f"{name} cannot be read: {error.strerror}", "robot") from error
    with document.blamed("robot"):
        return read_robot(path, _reading(document, weld))


def _reading(document: Table, weld: tuple[str, ...]) -> Reading:
    flags = {}
    for key in ("repair", "limits"):
        flags[key] = document.values.get(key, False)
        if not isinstance(flags[key], bool):
            raise document.error(f"{key} must be true or false, not {flags[key]!r}", key)
    held = document.values.get("weld", [])
    held = [held] if isinstance(held, str) else held
    if not (isinstance(held, list) and all(isinstance(link, str) for link in held)):
        raise document.error("weld must be the name of a link, or an array of names", "weld")
    drive = document.text("drive", DRIVES) if "drive" in document else None
    return Reading(weld=(*held, *weld), drive=drive, **flags)


def _without(document: Table, keys: tuple[str, ...]) -> Table:
    values = {key: value for key, value in document.values.items() if key not in keys}
    return Table(values, (), document.places, document.source)


def _expand(document: Table, base: Mapping[str, Any]) -> tuple[dict[str, Any], dict[places.Path, places.Place]]:
    """The file's values with patterns written out, in the order of the file, and the places of all of them."""
    values = dict(document.values)
    where = dict(document.places)
    for group in (group for group in GROUPS if group in document):
        parts = document.table(group).values
        known = [*base.get(group, {}), *(name for name in parts if not PATTERN & set(name))]
        values[group] = {}
        for name, part in parts.items():
            matched = fnmatch.filter(known, name) if PATTERN & set(name) else [name]
            if not matched:
                words = f"{group}: no name matches {name!r}{nearest(name, known)}{_other_drive(group, name, known)}"
                raise document.error(words, group, name)
            for member in dict.fromkeys(matched):
                values[group][member] = _merge(values[group].get(member), part)
                inside = [path for path in document.places if path[:2] == (group, name)]
                where |= {(group, member, *path[2:]): document.places[path] for path in inside}
    return values, where


def _other_drive(group: str, pattern: str, known: list[str]) -> str:
    """What to write where the inputs that a pattern means would be there with another drive; nothing elsewhere."""
    for drive, ending, other, what in (
        ("torque", "_effort", "_target", "the file's actuators are position loops"),
        ("position", "_target", "_effort", "the inputs are torques"),
    ):
        if group == "inputs" and pattern.endswith(ending) and any(name.endswith(other) for name in known):
            return f' ({what}; write drive = "{drive}" at the top if the recording has JOINT.{ending[1:]})'
    return ""


def _without_idle_inputs(merged: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """A model without the inputs of motors that were taken away."""
    before, now = (set(_commands({**model, "inputs": {}})) for model in (base, merged))
    kept = {name: part for name, part in merged.get("inputs", {}).items() if name in now or name not in before}
    return {**merged, "inputs": kept} if "inputs" in merged else merged


def _commands(table: Mapping[str, Any]) -> Iterator[str]:
    """The inputs that parts of a model name."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _commands(value)
        elif (key == "input" or key.endswith("_input")) and isinstance(value, str):
            yield value


def _without_absent_motors(model: Mapping[str, Any]) -> dict[str, Any]:
    """That a joint has no motor may be said of one that has none, as the file's actuators do not reach all joints."""
    joints = {
        name: {key: value for key, value in joint.items() if not (key == MOTOR and value is False)}
        if isinstance(joint, Mapping)
        else joint
        for name, joint in model.get("joints", {}).items()
    }
    return {**model, "joints": joints} if joints else dict(model)


def _merge(base: Any, over: Any) -> Any:
    """Tables are merged key by key, ``false`` takes a table away, and anything else is replaced."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    merged = dict(base)
    for key, value in over.items():
        if value is False and isinstance(merged.get(key), Mapping):
            del merged[key]
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged
