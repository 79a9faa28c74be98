"""The project file: model, recordings, free parameters and options of a fit as TOML. Docs: docs/command-line.md.

    model = "my_rig.toml"
    channels = "channels.toml"
    out = "result"

    [fit]
    recordings = ["data/run.csv"]
    from = 0.5

    [validation]
    recordings = ["data/other_run.csv"]

    [free]
    "hinge*.viscous" = {}
    "arm.inertia.zz" = { start = 0.01, lower = 0.0, upper = 0.1, prior = 0.002 }

    [set]
    "hinge1.coulomb" = 0.0

    [options]
    huber = 3.0

Paths are relative to the file's folder. ``[options]`` are options of ``shadowfit fit`` without their dashes.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomlkit

from shadowfit.errors import ShadowfitError, nearest
from shadowfit.files import named_in, read_toml
from shadowfit.models.atomic import write_text
from shadowfit.records import record

FILE = "project.toml"


class ProjectError(ShadowfitError):
    """A project file that cannot be read, or does not say enough for a command."""


@record(frozen=True)
class Part:
    """Recordings that serve one purpose, and the part of them that does [s]."""

    recordings: tuple[str, ...] = ()
    begin: float | None = None
    end: float | None = None


@record(frozen=True)
class FreeNumber:
    """How a parameter is estimated; what is None comes from the model."""

    start: float | None = None
    lower: float | None = None
    upper: float | None = None
    prior: float | None = None
    each: bool = False
    """A value of its own for each recording."""


@record(frozen=True)
class Project:
    """What a project file says."""

    model: str = ""
    weld: tuple[str, ...] = ()
    channels: str | None = None
    """A table of channels, as ``--channels`` takes it."""
    out: str = "result"
    fit: Part = Part()
    validation: Part = Part()
    free: Mapping[str, FreeNumber] = dataclasses.field(default_factory=dict)
    """Name or pattern → how it is estimated."""
    settings: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Numbers of the model that are fixed at another value (``[set]``)."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further options of ``shadowfit fit``: a value, a list for one that is repeated, or true for a flag."""


def read_project(path: str | os.PathLike[str]) -> Project:
    """Read a project file.

    Raises:
        ProjectError: anything that is wrong with it, with the key.
    """
    where = str(path)
    try:
        content = read_toml(path)
    except OSError as error:
        raise ProjectError(f"{where}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise ProjectError(f"{where}: {error}") from error
    project = _Reader(where).project(content)
    for name in _paths(project):
        _check_path(Path(path).parent, name, where)
    return project


def _paths(project: Project) -> Iterator[str]:
    """What a project reads and where it writes; a model without an ending is a built-in one."""
    yield from (*project.fit.recordings, *project.validation.recordings, project.out)
    yield from () if project.channels is None else (project.channels,)
    yield from (project.model,) if Path(project.model).suffix else ()


def _check_path(folder: Path, name: str, where: str) -> None:
    if name.startswith("-"):
        raise ProjectError(f"{where}: {name!r} would be an option; write ./{name} if a file is called so")
    try:
        named_in(folder, name)
    except OSError as error:
        raise ProjectError(f"{where}: {name} cannot be used: {error.strerror}") from error


def write_project(path: str | os.PathLike[str], project: Project) -> None:
    """Write a project file, in one step."""
    parts = {"fit": _part_table(project.fit), "validation": _part_table(project.validation)}
    content = {
        "model": project.model,
        "weld": list(project.weld),
        "channels": project.channels,
        "out": project.out,
        **parts,
        "free": {name: tomlkit.item(_given(free), _parent=tomlkit.array()) for name, free in project.free.items()},
        "set": dict(project.settings),
        "options": dict(project.options),
    }
    stated = {key: value for key, value in content.items() if value not in (None, [], {})}
    write_text(path, tomlkit.dumps(stated))


def _given(free: FreeNumber) -> dict[str, Any]:
    return {key: value for key, value in dataclasses.asdict(free).items() if value is not None and value is not False}


def _part_table(part: Part) -> dict[str, Any]:
    table = {"recordings": list(part.recordings), "from": part.begin, "to": part.end}
    return {key: value for key, value in table.items() if value not in (None, [])}


class _Reader:
    """The values of a file, each checked where it is taken."""

    def __init__(self, where: str) -> None:
        self.where = where

    def project(self, content: Mapping[str, Any]) -> Project:
        known = ("model", "weld", "channels", "out", "fit", "validation", "free", "set", "options")
        self.allow(content, known, "")
        channels = content.get("channels")
        return Project(
            model=self.text(content.get("model", ""), "model"),
            weld=self.texts(content.get("weld", []), "weld"),
            channels=None if channels is None else self.text(channels, "channels"),
            out=self.text(content.get("out", "result"), "out"),
            fit=self.part(content, "fit"),
            validation=self.part(content, "validation"),
            free={name: self.free(entry, f"free.{name}") for name, entry in self.table(content, "free").items()},
            settings={key: self.number(value, f"set.{key}") for key, value in self.table(content, "set").items()},
            options={
                key: self.option(value, f"options.{key}") for key, value in self.table(content, "options").items()
            },
        )

    def part(self, content: Mapping[str, Any], key: str) -> Part:
        table = self.table(content, key)
        self.allow(table, ("recordings", "from", "to"), key)
        ends = [None if end not in table else self.number(table[end], f"{key}.{end}") for end in ("from", "to")]
        return Part(self.texts(table.get("recordings", []), f"{key}.recordings"), *ends)

    def free(self, entry: Any, key: str) -> FreeNumber:
        if not isinstance(entry, dict):
            raise self.error(key, "write {} or a table such as { start = 0.1, lower = 0.0 }")
        self.allow(entry, tuple(field.name for field in dataclasses.fields(FreeNumber)), key)
        numbers = {name: self.number(value, f"{key}.{name}") for name, value in entry.items() if name != "each"}
        each = entry.get("each", False)
        if not isinstance(each, bool):
            raise self.error(f"{key}.each", "write true or false")
        return FreeNumber(**numbers, each=each)

    def option(self, value: Any, key: str) -> Any:
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str | bool | int | float) for one in listed):
            raise self.error(key, "write a number, a text, true, or a list of them")
        return value

    def table(self, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = content.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"write a table [{key}]")
        return value

    def number(self, value: Any, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error(key, f"{value!r} is not a number")
        return float(value)

    def text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise self.error(key, f"{value!r} is not a text")
        return value

    def texts(self, value: Any, key: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.error(key, f"{value!r} is not a list of texts")
        return tuple(self.text(one, key) for one in value)

    def allow(self, table: Mapping[str, Any], known: tuple[str, ...], key: str) -> None:
        for name in table:
            if name not in known:
                place = f" in {key}" if key else ""
                raise ProjectError(f"{self.where}: there is no key {name!r}{place}{nearest(name, known)}")

    def error(self, key: str, text: str) -> ProjectError:
        return ProjectError(f"{self.where}: {key}: {text}")
