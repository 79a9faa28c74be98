"""Compiled kernels, and facts that take long to find, kept in the user's cache directory for later runs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import platformdirs

FOLDER_VARIABLE = "SHADOWFIT_KERNELS"
"""Environment variable that names another folder; empty: nothing is kept."""
MOST_FILES = 400
"""Oldest files are removed beyond this number."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Machine code and what is needed to call it."""

    objects: Sequence[bytes]
    """Object files."""
    shapes: tuple[tuple[int, ...], ...]
    scratch: int


def folder() -> Path | None:
    """Where kernels are kept; None: nowhere."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "":
        return None
    return Path(named) if named else Path(platformdirs.user_cache_dir("shadowfit")) / "kernels"


def load(name: str) -> Compiled | None:
    """A kernel of an earlier run; None if there is none or it cannot be read."""
    content = _read(name)
    if content is None:
        return None
    try:
        head, code = content.split(b"\n", 1)
        described = json.loads(head)
        ends = list(itertools.accumulate(described["sizes"]))
        if len(code) != ends[-1]:
            return None
        objects = [code[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        return Compiled(objects, tuple(tuple(shape) for shape in described["shapes"]), described["scratch"])
    except (ValueError, KeyError, IndexError):
        return None


def save(name: str, compiled: Compiled) -> None:
    """Keep a kernel."""
    head = {"sizes": [len(code) for code in compiled.objects], "shapes": compiled.shapes, "scratch": compiled.scratch}
    _write(name, json.dumps(head).encode() + b"\n" + b"".join(compiled.objects))


def remembered(name: str, find: Callable[[], Any]) -> Any:
    """What ``find`` found in an earlier run, or finds now; something that JSON can hold."""
    content = _read(name)
    if content is not None:
        try:
            return json.loads(content)
        except ValueError:
            pass  # damaged: found again
    found = find()
    _write(name, json.dumps(found).encode())
    return found


def _read(name: str) -> bytes | None:
    place = folder()
    if place is None:
        return None
    try:
        return (place / name).read_bytes()
    except OSError:
        return None


def _write(name: str, content: bytes) -> None:
    """Write at once or not at all; a folder that cannot be written to only costs the time to compile again."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, place / name)
        _remove_oldest(place)
    except OSError:
        return


def _remove_oldest(place: Path) -> None:
    files = list(place.iterdir())
    if len(files) <= MOST_FILES:
        return
    files.sort(key=lambda path: path.stat().st_mtime)
    for path in files[: len(files) - MOST_FILES]:
        path.unlink(missing_ok=True)
