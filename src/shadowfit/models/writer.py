"""From a mechanism to the text of a model file.

Every number is written with all its digits, so that the file reads back as the same mechanism. Numbers that are zero,
and rotations that are none, are left out where that is what leaving them out means; other defaults are written, so
that a file keeps its meaning if a default ever changes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from shadowfit.geometry import rotations
from shadowfit.mechanism import Joint, Mechanism, PlaneContact, leaves
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import notation, vocabulary
from shadowfit.models.atomic import write_text
from shadowfit.models.errors import ModelFileError
from shadowfit.models.reader import GROUPS, parse_model
from shadowfit.models.start import Start
from shadowfit.models.vocabulary import Key, keys, variants, word
from shadowfit.trees import structure_of

# Directions this near to the axes of a frame were meant to be along them.
ALONG_AXES = 1e-12

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TYPES: dict[str, Mapping[str, type]] = {"contacts": vocabulary.CONTACTS, "sensors": vocabulary.SENSORS}


def write_model(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    *,
    comment: str = "",
    description: str = "",
    start: Start | None = None,
) -> None:
    """Write a mechanism as a model file that reads back as the same mechanism; never half a file.

    Args:
        mechanism: the mechanism.
        path: the file, replaced if it is there.
        comment: lines to put at its top.
        description: one line on what the mechanism is.
        start: where simulations start.

    Raises:
        ModelFileError: a part of the mechanism has no words in model files (a sensor by a Python function).
    """
    write_text(path, format_model(mechanism, comment=comment, description=description, start=start))


def format_model(
    mechanism: Mechanism,
    *,
    comment: str = "",
    description: str = "",
    start: Start | None = None,
    derived: Mapping[str, str] | None = None,
) -> str:
    """The text of a model file; see :func:`write_model`. ``derived`` are quantities to report of a fit."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines.append(f"name = {_text(mechanism.name)}")
    if description:
        lines.append(f"description = {_text(description)}")
    lines += ["", "[gravity]", *_lines(mechanism.gravity, "gravity", mechanism)]
    for group in GROUPS:
        for name, part in getattr(mechanism, group).items():
            lines += ["", f"[{group}.{key_text(name)}]", *_part_lines(group, name, part, mechanism)]
    lines += _start_lines(start or Start())
    if derived:
        lines += ["", "[derived]", *(f"{key_text(name)} = {_text(text)}" for name, text in derived.items())]
    text = "\n".join(lines) + "\n"
    _check_equal(parse_model(text, mechanism.name).mechanism, mechanism)
    return text


def _check_equal(read: Mechanism, written: Mechanism) -> None:
    """Raise unless both are the same; a law called like a key of its joint, for example, would be lost."""
    structures: list[Any] = [structure_of(read), structure_of(written)]
    if structures[0] != structures[1] or not same_numbers(read, written):
        raise ModelFileError("the mechanism cannot be written as a model file without change", written.name)


def same_numbers(a: Mechanism, b: Mechanism) -> bool:
    """Whether two mechanisms of the same parts agree in every number, exactly."""
    return all(np.array_equal(leaves.read(a, leaf), leaves.read(b, leaf)) for leaf in leaves.walk(b))


def _part_lines(group: str, name: str, part: Any, mechanism: Mechanism) -> Iterator[str]:
    if group in _TYPES:
        yield f"type = {_word(part, _TYPES[group], f'{group}.{name}')}"
    yield from _lines(part, name, mechanism)
    for joint, ratio in getattr(part, "ratios", Parts()).items():
        yield from _lines(ratio, f"{name}.{joint}", mechanism, f"{key_text(joint)}.")
    if isinstance(part, Joint):
        for law_name, law in part.laws.items():
            yield from ("", f"[joints.{key_text(name)}.{key_text(law_name)}]")
            yield f"type = {_word(law, vocabulary.AXIS_LAWS, f'{name}.{law_name}')}"
            yield from _lines(law, f"{name}.{law_name}", mechanism)


def _lines(part: Any, name: str, mechanism: Mechanism, prefix: str = "") -> Iterator[str]:
    """A part's keys and values; ``name`` is the dotted name of the part, ``prefix`` stands before its keys."""
    kind: type = type(part)
    choices, declared, frames = variants(kind), {key.name: key for key in keys(kind)}, _frames(part)
    for field in (field.name for field in dataclasses.fields(part)):
        value, key = getattr(part, field), declared.get(field)
        if field in choices and value is not None:
            selector, words = choices[field]
            yield f"{selector} = {_word(value, words, f'{name}.{selector}')}"
            yield from _lines(value, name, mechanism)
        elif field in frames:
            yield from frames[field]
        elif key is not None and key.part is not None:
            yield from _lines(value, f"{name}.{field}", mechanism, f"{field}.")
        elif key is not None and not _nothing(key, value):
            yield f"{prefix}{field} = {_value(key, value)}{_unit(key, f'{name}.{field}', mechanism)}"


def _nothing(key: Key, value: Any) -> bool:
    """Whether a value need not be written."""
    if key.kind == "text":
        return value is None
    if key.kind == "flag":
        return value == key.default
    empty: Any = {"number": 0.0, "vector": np.zeros(3), "rotation": notation.IDENTITY}[key.kind]
    if key.infinite:
        empty = key.default
    return not key.required and np.array_equal(key.default, empty) and np.array_equal(value, empty)


def _frames(part: Any) -> dict[str, list[str]]:
    """Lines for the rotations of a joint or of a contact's plane, as people would write them if that is exact."""
    if isinstance(part, Joint):
        return dict(zip(("parent_rotation", "child_rotation"), _joint_lines(part), strict=True))
    if isinstance(part, PlaneContact):
        normal = _along_axes(_matrix(part.plane_rotation)[:, 0])
        exact = np.array_equal(rotations.from_axes(notation.unit_vector(normal)), part.plane_rotation)
        return {
            "plane_rotation": [f"normal = {array_text(normal)}" if exact else _quaternion_line(part, "plane_rotation")]
        }
    return {}


def _joint_lines(joint: Joint) -> tuple[list[str], list[str]]:
    """Lines that say where the axis is, and how the child sits at zero."""
    axis = _along_axes(_matrix(joint.parent_rotation)[:, 0])
    turn = _along_axes(_matrix(joint.parent_rotation) @ _matrix(joint.child_rotation).T)
    # Reading scales what is written, which may change its last digit.
    x, y = (notation.unit_vector(turn[:, column]) for column in (0, 1))
    parent, child = notation.joint_frames(notation.unit_vector(axis), rotations.from_axes(x, y))
    if not (np.array_equal(parent, joint.parent_rotation) and np.array_equal(child, joint.child_rotation)):
        return [_quaternion_line(joint, "parent_rotation")], [_quaternion_line(joint, "child_rotation")]
    level = np.array_equal(turn, np.eye(3))
    sits = [] if level else [f"zero_rotation = {{ x = {array_text(turn[:, 0])}, y = {array_text(turn[:, 1])} }}"]
    return [f"axis = {array_text(axis)}"], sits


def _quaternion_line(part: Any, field: str) -> str:
    return f"{field} = {array_text(getattr(part, field))}  # quaternion w x y z"


def _matrix(quaternion: Any) -> np.ndarray:
    return rotations.to_matrix(np.asarray(quaternion))


def _along_axes(directions: np.ndarray) -> np.ndarray:
    whole = np.rint(directions) + 0.0
    return whole if np.allclose(directions, whole, rtol=0.0, atol=ALONG_AXES) else directions


def _value(key: Key, value: Any) -> str:
    if key.kind == "text":
        return _text(value)
    if key.kind == "flag":
        return "true" if value else "false"
    return number_text(value) if key.kind == "number" else array_text(value)


def number_text(value: Any) -> str:
    """A number with all its digits: it reads back as the same one."""
    return repr(float(value))


def array_text(values: Any) -> str:
    """An array of numbers with all their digits."""
    return f"[{', '.join(number_text(value) for value in np.asarray(values))}]"


def _unit(key: Key, name: str, mechanism: Mechanism) -> str:
    if key.kind not in ("number", "vector"):
        return ""
    unit = mechanism.applicable(key.unit, name)
    return "" if unit in ("1", "unit") else f"  # {unit}"


def _start_lines(start: Start) -> list[str]:
    lines = [f"{key_text(name)}.position = {number_text(value)}" for name, value in start.positions.items()]
    lines += [f"{key_text(name)}.speed = {number_text(value)}" for name, value in start.speeds.items()]
    for name, (position, orientation) in start.poses.items():
        lines += [
            f"{key_text(name)}.position = {array_text(position)}",
            f"{key_text(name)}.orientation = {array_text(orientation)}",
        ]
    for name, velocity in start.velocities.items():
        lines += [f"{key_text(name)}.velocity = {array_text(velocity[:3])}"]
        lines += [f"{key_text(name)}.angular_velocity = {array_text(velocity[3:])}"]
    return ["", "[state]", *lines] if lines else []


def _word(part: Any, words: Mapping[str, type], name: str) -> str:
    known = word(part, words)
    if known is None:
        raise ModelFileError(
            f"{name} is a {type(part).__name__}, which model files have no word for; there are: {', '.join(words)}",
            "the mechanism",
        )
    return _text(known)


def key_text(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # TOML escapes as JSON does, and the delete character besides.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
