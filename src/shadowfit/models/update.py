"""New numbers in an existing model file: everything else, comments and layout included, stays as it is.

A number that the file states is replaced where it stands. One that it leaves to a default is added to its table. A
joint's rotations that it states by ``axis`` and ``zero_rotation`` (a plane's by ``normal``) give way to quaternions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shadowfit.mechanism import Mechanism
from shadowfit.mechanism.leaves import COMPONENTS, Leaf
from shadowfit.models.errors import ModelFileError
from shadowfit.models.places import Path, Place, parse
from shadowfit.models.reader import GROUPS, parse_model
from shadowfit.models.writer import array_text, key_text, number_text, same_numbers

# Notations of the reader that stand for a rotation, and the key that takes their place. The joint's two go together.
OTHER_NOTATION = {"parent_rotation": "axis", "child_rotation": "zero_rotation", "plane_rotation": "normal"}
TOGETHER = {"parent_rotation": ("parent_rotation", "child_rotation")}
TOGETHER["child_rotation"] = TOGETHER["parent_rotation"]
Change = tuple[int, int, str]
"""First character, the one behind the last, and what takes their place."""


def update_model(text: str, values: Mapping[str, Any], source: str = "model") -> str:
    """The text of a model file with some of its numbers replaced.

    Args:
        text: the model file.
        values: dotted name → number, or quaternion ``wxyz`` of a rotation.
        source: what to call the file in messages.

    Raises:
        ModelFileError: the text is no model file.
        UnknownNameError: it has no number of that name.
        MechanismError: the new numbers are not possible.
    """
    wanted = parse_model(text, source).mechanism.set(values)
    text = put_numbers(text, wanted, values)
    if not _reads_as(text, wanted):
        raise ModelFileError(f"{', '.join(values)} cannot be put into the text; write the mechanism anew", source)
    return text


def put_numbers(text: str, wanted: Mechanism, names: Iterable[str]) -> str:
    """The text with some numbers as a mechanism has them, each where it stands or would stand."""
    known = wanted.leaves()
    values = _values_by_path(wanted, [known.get(name) or wanted.leaf(name) for name in names])
    text, left = _put_plain(text, values)
    for path, value in left.items():
        text = _put(text, path, value)
    return text


def _put_plain(text: str, values: Mapping[Path, Any]) -> tuple[str, dict[Path, Any]]:
    """The text with all numbers replaced that stand there as such, read once; and what is left to put."""
    stated, places = parse(text, "the updated model")
    changes: list[Change] = []
    left = {}
    for path, value in values.items():
        current = _look_up(stated, path)
        if isinstance(current, list) or _is_number(current):
            changes += _changes(path, value, current, places)
        else:
            left[path] = value
    return _changed(text, changes), left


def _reads_as(text: str, wanted: Mechanism) -> bool:
    try:
        return same_numbers(parse_model(text).mechanism, wanted)
    except ModelFileError:
        return False


def _values_by_path(mechanism: Mechanism, leaves: list[Leaf]) -> dict[Path, Any]:
    """Where each number stands in a model file: ``("joints", "hinge1", "viscous")`` → value."""
    values: dict[Path, Any] = {}
    for leaf in leaves:
        names = leaf.name.split(".")
        group = next((group for group in GROUPS if names[0] in getattr(mechanism, group)), None)
        path: Path = (group, *names) if group else tuple(names)
        if leaf.component is not None:
            vector = leaf.name.rsplit(".", 1)[0]
            values[path[:-1]] = np.array([mechanism.get(f"{vector}.{letter}") for letter in COMPONENTS])
            continue
        for field in TOGETHER.get(names[-1], (names[-1],)):
            values[(*path[:-1], field)] = mechanism.get(".".join((*names[:-1], field)))
    return values


def _put(text: str, path: Path, value: Any) -> str:
    """The text with one value replaced or added."""
    values, places = parse(text, "the updated model")
    current, around = _look_up(values, path), _look_up(values, path[:-1])
    if isinstance(current, list) or _is_number(current):
        return _changed(text, _changes(path, value, current, places))
    if current is not None:  # another notation of a rotation, in a table
        inline = path in places and text[places[path].start] == "{"
        if inline:
            return _splice(text, places[path].start, places[path].stop, _written(value))
        return _put_instead(text, path, path, value, places)
    other = (*path[:-1], OTHER_NOTATION.get(str(path[-1]), ""))
    if other in places:
        return _splice(text, places[other].key, places[other].stop, f"{path[-1]} = {_written(value)}")
    if _look_up(values, other) is not None:
        return _put_instead(text, other, path, value, places)
    if _is_number(around):  # compliance = 1e-4 says both its numbers at once
        both = {"linear": around, "rotational": around, path[-1]: value}
        table = ", ".join(f"{key} = {number_text(number)}" for key, number in both.items())
        return _splice(text, places[path[:-1]].start, places[path[:-1]].stop, f"{{ {table} }}")
    return _add(text, path, _written(value), places)


def _changes(path: Path, value: Any, current: Any, places: Mapping[Path, Place]) -> list[Change]:
    """Numbers that changed, each where it stands."""
    if np.ndim(value) == 0:
        pairs = {path: (current, value)}
    else:
        pairs = {(*path, i): pair for i, pair in enumerate(zip(current, value, strict=True))}
    return [
        (places[place].start, places[place].stop, number_text(new)) for place, (old, new) in pairs.items() if old != new
    ]


def _changed(text: str, changes: list[Change]) -> str:
    """From the end, so that the places before stay right."""
    for start, stop, new in sorted(changes, reverse=True):
        text = _splice(text, start, stop, new)
    return text


def _put_instead(text: str, table: Path, path: Path, value: Any, places: Mapping[Path, Place]) -> str:
    """The text with a value in place of the lines that state a table; unchanged where it has no lines of its own."""
    inside = [place for key, place in places.items() if key[: len(table)] == table and place.header is not None]
    for place in sorted(inside, key=lambda place: place.key, reverse=True):
        text = _splice(text, text.rfind("\n", 0, place.key) + 1, _line_end(text, place.stop), "")
    return _put(text, path, value) if inside else text


def _add(text: str, path: Path, written: str, places: Mapping[Path, Place]) -> str:
    """The text with a key more, in the table that it belongs to or the nearest one around it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for end in range(len(path) - 1, 0, -1):
        table = path[:end]
        if table in places and text[places[table].start] == "{":
            return _add_inline(text, path[end:], written, places[table])
        inside = [
            place
            for key, place in places.items()
            if key[:end] == table and place.header is not None and len(place.header) <= end
        ]
        if inside:
            last = max(inside, key=lambda place: place.stop)
            key = ".".join(key_text(str(name)) for name in path[len(last.header or ()) :])
            start = _line_end(text, last.stop)
            before = text[:start] if text[:start].endswith("\n") else text[:start] + newline
            return f"{before}{key} = {written}{newline}{text[start:]}"
    header = ".".join(key_text(str(name)) for name in path[:-1])
    return f"{text.rstrip()}{newline * 2}[{header}]{newline}{path[-1]} = {written}{newline}"


def _add_inline(text: str, names: Path, written: str, table: Place) -> str:
    key = ".".join(key_text(str(name)) for name in names)
    before = text[: table.stop - 1].rstrip()
    comma = "" if before.endswith("{") else ","
    return f"{before}{comma} {key} = {written} {text[table.stop - 1 :]}"


def _line_end(text: str, at: int) -> int:
    """The first character of the next line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _splice(text: str, start: int, stop: int, new: str) -> str:
    return text[:start] + new + text[stop:]


def _written(value: Any) -> str:
    return number_text(value) if np.ndim(value) == 0 else array_text(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _look_up(values: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values
