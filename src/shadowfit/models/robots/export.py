"""Calibrated numbers back into a user's own file: a URDF, an MJCF or a model file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.mechanism import Mechanism
from shadowfit.models.errors import ModelFileError
from shadowfit.models.places import parse
from shadowfit.models.reader import parse_model
from shadowfit.models.robots.build import Robot
from shadowfit.models.robots.changes import changes_of
from shadowfit.models.robots.edits import Editor
from shadowfit.models.robots.markup import parse_markup
from shadowfit.models.robots.mjcf_export import edit_mjcf
from shadowfit.models.robots.overlay import load_overlay
from shadowfit.models.robots.read import Reading, decode, read_bytes, read_robot
from shadowfit.models.robots.urdf_export import edit_urdf
from shadowfit.models.table import Table
from shadowfit.models.update import put_numbers
from shadowfit.models.writer import same_numbers
from shadowfit.records import record

# How far a number of the written file may be from the calibrated one, relative to the largest of its kind in its part:
# inertias are turned between frames, and MuJoCo diagonalises them.
READ_BACK = 1e-9


@record(frozen=True)
class Exported:
    """A file with calibrated numbers."""

    content: bytes
    written: dict[str, float]
    """Names of the numbers that the file now has."""
    homeless: dict[str, float]
    """Numbers that a file of this format has no place for."""
    impossible: dict[str, str]
    """Names of numbers that would leave nothing possible for a link, and why; they are as they were."""


@record(frozen=True)
class Source:
    """A robot file that was read."""

    robot: Robot
    reading: Reading


def export_robot(path: Path, values: Mapping[str, Any], source: Source | None = None) -> Exported:
    """The content of a URDF or MJCF file with new values, by the names of its mechanism.

    Args:
        path: of the file.
        values: by name.
        source: what :func:`read_source` made of the file, where that is known.

    Raises:
        ModelFileError: the file cannot be read, or does not read back as it should.
        MechanismError: the values, beside those of the file, are not those of a possible mechanism.
    """
    source = source or read_source(path)
    robot = source.robot
    known = {name: value for name, value in values.items() if name in robot.mechanism.leaves()}
    changes = changes_of(robot, known)
    content = read_bytes(path)
    editor, root = Editor(content), parse_markup(content, str(path))
    edit = edit_urdf if root.tag == "robot" else edit_mjcf
    left = {*edit(root, robot, changes, editor), *(name for name in values if name not in known)}
    written = {name: value for name, value in known.items() if name not in left and name not in changes.impossible}
    result = editor.result()
    _check(path, result, source.reading, robot.mechanism.set(written), written)
    homeless = {name: value for name, value in values.items() if name in left}
    return Exported(result, written, homeless, changes.impossible)


def read_source(path: Path) -> Source:
    """The robot of a file, whose inertias are repaired only if it cannot be read otherwise."""
    try:
        return Source(read_robot(path), Reading())
    except ModelFileError:
        return Source(read_robot(path, Reading(repair=True)), Reading(repair=True))


def export_tables(path: Path, values: Mapping[str, Any]) -> Exported:
    """The content of a model file (whole, or beside a robot's) with new values.

    Raises:
        ModelFileError: the file cannot be read, or the values cannot be put into it.
        MechanismError: the values, beside those of the file, are not those of a possible mechanism.
    """
    content, source = read_bytes(path), str(path)
    text = decode(content, path)
    model = _model_of(text, path)
    written = {name: value for name, value in values.items() if name in model.leaves()}
    wanted = model.set(written)
    new = put_numbers(text, wanted, written)
    if not same_numbers(_model_of(new, path), wanted):
        raise ModelFileError(f"{', '.join(written)} cannot be put into the text", source)
    start = content[: len(content) - len(text.encode())]  # the mark of UTF-8, where there is one
    homeless = {name: value for name, value in values.items() if name not in written}
    return Exported(start + new.encode(), written, homeless, {})


def _model_of(text: str, path: Path) -> Mechanism:
    values, places = parse(text, str(path))
    if "robot" in values:
        return load_overlay(Table(values, (), places, str(path)), path.parent).mechanism
    return parse_model(text, str(path), path.stem).mechanism


def _check(path: Path, content: bytes, reading: Reading, wanted: Mechanism, names: Mapping[str, Any]) -> None:
    """Read the new content and compare."""
    try:
        again = read_robot(path, reading, content).mechanism
    except ShadowfitError as error:
        raise ModelFileError(f"with the new values the file is not right any more: {error}", str(path)) from error
    wrong = [name for name in names if not _same(again, wanted, name)]
    if wrong:
        raise ModelFileError(f"the new values do not read back as they are: {', '.join(wrong)}", str(path))


def _same(read: Mechanism, wanted: Mechanism, name: str) -> bool:
    family = name.rpartition(".")[0]
    scale = max(
        float(np.max(np.abs(wanted.get(other)))) for other in wanted.leaves() if other.rpartition(".")[0] == family
    )
    return bool(np.max(np.abs(np.asarray(read.get(name)) - wanted.get(name))) <= READ_BACK * scale)
