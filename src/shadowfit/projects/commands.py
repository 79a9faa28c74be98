"""The command lines of a project, as lists of arguments: what ``shadowfit run`` runs and the page shows.

They are meant for the project's folder, to which its paths are relative.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from shadowfit.projects.project import FreeNumber, Part, Project, ProjectError


def shown(arguments: Sequence[str]) -> str:
    """The command line as one types it."""
    return shlex.join(["shadowfit", *arguments])


def show(project: Project) -> list[str]:
    """``shadowfit show``: the model."""
    return ["show", _model(project), *_repeated("--weld", project.weld), *_settings(project)]


def check(project: Project, out: str = "check.html") -> list[str]:
    """``shadowfit check``: before the fit."""
    return ["check", *_asked(project), "--out", out]


def fit(project: Project, out: str | None = None) -> list[str]:
    """``shadowfit fit``."""
    return ["fit", *_asked(project), *_beyond(project), *_options(project), "--out", out or project.out]


def validate(project: Project, result: str | None = None) -> list[str]:
    """``shadowfit validate``: a result on the recordings for validation."""
    files = _files(project.validation, "for validation")
    return ["validate", result or project.out, *files, *_channels(project), *_window(project.validation)]


def export(result: str, model: str, out: str) -> list[str]:
    """``shadowfit export``: calibrated numbers in a copy of the model's own file."""
    return ["export", result, model, "--out", out]


def _asked(project: Project) -> list[str]:
    """Model, recordings and free parameters."""
    files = _files(project.fit, "to fit")
    free = [_free(name, number) for name, number in project.free.items()]
    return [
        *(_model(project), *files, *_repeated("--free", free), *_settings(project)),
        *(*_repeated("--weld", project.weld), *_channels(project), *_window(project.fit)),
    ]


def _model(project: Project) -> str:
    if not project.model:
        raise ProjectError("the project has no model yet")
    return project.model


def _files(part: Part, purpose: str) -> tuple[str, ...]:
    if not part.recordings:
        raise ProjectError(f"the project has no recording {purpose} yet")
    return part.recordings


def _free(name: str, number: FreeNumber) -> str:
    """``NAME[=START][@LO:HI]``."""
    start = "" if number.start is None else f"={number.start!r}"
    if number.lower is None and number.upper is None:
        return name + start
    ends = ("" if end is None else repr(end) for end in (number.lower, number.upper))
    return f"{name}{start}@{':'.join(ends)}"


def _beyond(project: Project) -> list[str]:
    """What else is known of free parameters."""
    priors = [f"{name}={number.prior!r}" for name, number in project.free.items() if number.prior is not None]
    each = [name for name, number in project.free.items() if number.each]
    return [*_repeated("--prior", priors), *_repeated("--each", each)]


def _settings(project: Project) -> list[str]:
    return _repeated("--set", [f"{name}={value!r}" for name, value in project.settings.items()])


def _channels(project: Project) -> list[str]:
    return [] if project.channels is None else ["--channels", project.channels]


def _window(part: Part) -> list[str]:
    ends = (("--from", part.begin), ("--to", part.end))
    return [text for option, end in ends if end is not None for text in (option, repr(end))]


def _options(project: Project) -> list[str]:
    return [text for name, value in project.options.items() for text in _option(f"--{name}", value)]


def _option(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from _repeated(name, [str(one) for one in value])
    elif isinstance(value, bool):
        yield from [name] if value else []
    else:
        yield from (name, str(value))


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [text for value in values for text in (option, value)]
