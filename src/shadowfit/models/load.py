"""Reading a model by the name of a built-in one or by the path of a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from shadowfit.errors import nearest
from shadowfit.mechanism import Mechanism
from shadowfit.models import catalogue
from shadowfit.models.chain import chain
from shadowfit.models.errors import ModelFileError
from shadowfit.models.places import parse
from shadowfit.models.reader import ModelFile, model_of
from shadowfit.models.robots.build import Robot
from shadowfit.models.robots.overlay import load_overlay
from shadowfit.models.robots.read import Reading, decode, is_robot_file, read_bytes, read_robot
from shadowfit.models.start import Start
from shadowfit.models.table import Table
from shadowfit.models.writer import format_model


def read_model(path_or_name: str | os.PathLike[str]) -> Mechanism:
    """The mechanism of a model file, of a robot file (URDF, MJCF), or of a built-in model such as ``"furuta"``.

    Raises:
        ModelFileError: there is no such model, or its file is not right; the message says where and what is allowed.
    """
    return load_model(path_or_name).mechanism


def load_model(path_or_name: str | os.PathLike[str], *, weld: Iterable[str] = ()) -> ModelFile:
    """As :func:`read_model`, with the start of simulations, the description and the text of the file.

    Of a robot file, the text is that of a model file that says the same. ``weld`` names floating links to be held.
    """
    name, held = os.fspath(path_or_name), tuple(weld)
    path = Path(path_or_name)
    if is_robot_file(path):
        return robot_model(read_robot(path, Reading(weld=held)))
    builtin = isinstance(path_or_name, str) and catalogue.is_builtin(name)
    text = _builtin_text(name) if builtin else _file_text(path, name)
    source = f"{name}.toml (built in)" if builtin else str(path)
    values, places = parse(text, source)
    document = Table(values, (), places, source)
    if "robot" in values:
        return load_overlay(document, path.parent, held)
    if held:
        raise ModelFileError("only links of a robot file (URDF, MJCF) can be welded", source)
    return model_of(document, text, path.stem)


def robot_model(robot: Robot) -> ModelFile:
    """A robot as a model file that says the same."""
    source, notes = robot.description.source, robot.notes
    return ModelFile(robot.mechanism, robot.start, "", None, source, notes, ratings=robot.ratings)


def _builtin_text(name: str) -> str:
    links = catalogue.CHAIN.fullmatch(name)
    if links is None:
        return catalogue.builtin_text(name)
    swung = Start(positions={"hinge1": 1.0})
    return format_model(chain(int(links[1])), description=f"Planar chain of {links[1]} hanging links", start=swung)


def _others(name: str) -> str:
    return nearest(name, catalogue.library()) + " (a model file's name ends in .toml, a robot's in .urdf or .xml)"


def _file_text(path: Path, name: str) -> str:
    if path.suffix == "" and path.name == name and not path.exists():
        raise ModelFileError(f"there is neither a file nor a built-in model of this name{_others(name)}", name)
    text = decode(read_bytes(path), path)
    if text.lstrip().startswith("<"):
        raise ModelFileError("this is XML and no model file; a robot file's name ends in .urdf or .xml", str(path), 1)
    return text
