"""Compiled kernels kept in the user's cache directory, so that a later run need not compile them."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from pathlib import Path

import platformdirs

FOLDER_VARIABLE = "SHADOWFIT_KERNELS"
"""Environment variable that names another folder; empty: nothing is kept."""
MOST_FILES = 400
"""Oldest files are removed beyond this number."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Machine code and what is needed to call it."""

    code: bytes
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
    place = folder()
    if place is None:
        return None
    try:
        head, code = (place / name).read_bytes().split(b"\n", 1)
        described = json.loads(head)
        if len(code) != described["size"]:
            return None
        return Compiled(code, tuple(tuple(shape) for shape in described["shapes"]), described["scratch"])
    except (OSError, ValueError, KeyError):
        return None


def save(name: str, compiled: Compiled) -> None:
    """Keep a kernel; a folder that cannot be written to only costs the time to compile again."""
    place = folder()
    if place is None:
        return
    head = {"size": len(compiled.code), "shapes": compiled.shapes, "scratch": compiled.scratch}
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + compiled.code)
        os.replace(temporary, place / name)
        _remove_oldest(place)
    except OSError:
        return


def _remove_oldest(place: Path) -> None:
    files = sorted(place.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in files[: max(len(files) - MOST_FILES, 0)]:
        path.unlink(missing_ok=True)
