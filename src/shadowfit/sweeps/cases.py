"""A case is one piece of work of a larger study: a function's name and arguments, and later a file with its outcome.

The file appears whole or not at all. A study that is started again keeps the cases whose file exists and was made by
the same version from the same arguments, so that it can be stopped at any time.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shadowfit.errors import ShadowfitError
from shadowfit.models.atomic import remove_abandoned, write_text
from shadowfit.records import record


@record(frozen=True)
class Case:
    """One piece of work. The arguments are JSON values: they are written down and compared when a study goes on."""

    name: str
    """Unique in its study; the name of its file."""
    task: str
    """``module:function`` of a function ``(arguments, folder) → JSON values``; folder is that of the study."""
    arguments: Mapping[str, Any]
    group: str = ""
    """Cases of one group run the same compiled programs; they are run one after the other."""


@record(frozen=True)
class Outcome:
    """What became of a case: its result, or the error that ended it."""

    case: Case
    result: Mapping[str, Any] | None
    error: str
    seconds: float

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.result is not None


def path(case: Case, folder: Path) -> Path:
    """File of a case in the folder of its study."""
    return _files(folder) / f"{case.name}.json"


def tidy(folder: Path) -> None:
    """Remove what killed runs of a study left half-written."""
    remove_abandoned(_files(folder))


def _files(folder: Path) -> Path:
    return folder / "cases"


def attempt(case: Case, folder: Path) -> Outcome:
    """Run a case. An error ends the case, not the study."""
    began = time.perf_counter()
    result: Mapping[str, Any] | None = None
    error = ""
    try:
        module, function = case.task.split(":")
        result = getattr(importlib.import_module(module), function)(dict(case.arguments), folder)
    except ShadowfitError as wrong:
        error = str(wrong)
    except Exception:
        error = traceback.format_exc()
    return Outcome(case, result, error, time.perf_counter() - began)


def store(outcome: Outcome, folder: Path) -> None:
    """Write a case's file."""
    case = outcome.case
    record = {
        "case": case.name,
        "task": case.task,
        "arguments": case.arguments,
        "result": outcome.result,
        "error": outcome.error,
        "seconds": outcome.seconds,
        "version": version(),
    }
    write_text(path(case, folder), json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def load(case: Case, folder: Path) -> Outcome | None:
    """The outcome of a case that was finished before; None if there is none, or it was another case, or it failed."""
    try:
        record = json.loads(path(case, folder).read_text("utf-8"))
        same = (record["task"], record["arguments"], record["version"]) == (case.task, _plain(case), version())
        if same and record["result"] is not None:
            return Outcome(case, record["result"], "", float(record["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no file, or not one of ours: the case is run
    return None


def _plain(case: Case) -> Any:
    """The arguments as they come back from a file: lists for tuples."""
    return json.loads(json.dumps(case.arguments))


def version() -> str:
    """Version of the library, which results depend on."""
    return importlib.metadata.version("shadowfit")


def digest(file: Path) -> str:
    """Fingerprint of a file's contents: among a case's arguments it makes the case run again when the file changes."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise ShadowfitError(f"{file} cannot be read: {error.strerror or error}") from error
