"""Compiled kernels, and facts that take long to find, kept in the user's cache directory for later runs.

An entry is a file: a digest, and what was kept. The digest is over the content together with the entry's name, the
source of the package, the processor and the version of this format, so that a damaged entry, or one that was made for
something else, is not used but made again. Only files and folders are read that belong to the user and that nobody
else can write to: what is in them is run.

Entries appear at once or not at all, so that several processes can use one folder. The least recently used ones are
removed beyond `MOST_BYTES`.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from shadowfit.kernels import codegen
from shadowfit.kernels.fingerprint import package_digest
from shadowfit.records import record

FOLDER_VARIABLE = "SHADOWFIT_KERNELS"
"""Environment variable that names another folder; empty: nothing is kept."""
MOST_BYTES = 512 * 2**20
"""Size of all entries beyond which the least recently used ones are removed."""
FORMAT = "1"
"""Version of what an entry looks like."""
UNFINISHED = ".unfinished-"
"""How names of files begin that are being written."""
ABANDONED = 3600.0
"""Age of such a file from which on its writer is taken for dead [s]."""
DIGEST_SIZE = 32

_used: set[str] = set()
"""Names of the entries that this process has read or written."""


@record(frozen=True)
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
    """A kernel of an earlier run; None if there is none or it cannot be used."""
    content = _read(name)
    if content is None:
        return None
    try:
        head, code = content.split(b"\n", 1)
        described = json.loads(head)
        sizes, shapes = _counts(described["sizes"]), tuple(_counts(shape) for shape in described["shapes"])
        (scratch,) = _counts([described["scratch"]])
    except (ValueError, KeyError, TypeError):
        return None
    ends = list(itertools.accumulate(sizes))
    if not ends or len(code) != ends[-1]:
        return None
    return Compiled([code[begin:end] for begin, end in zip([0, *ends], ends, strict=False)], shapes, scratch)


def _counts(values: Any) -> tuple[int, ...]:
    """Whole numbers that are not negative."""
    if not isinstance(values, list) or not all(type(x) is int and x >= 0 for x in values):
        raise TypeError("not a list of sizes")
    return tuple(values)


def save(name: str, compiled: Compiled) -> None:
    """Keep a kernel."""
    head = {"sizes": [len(code) for code in compiled.objects], "shapes": compiled.shapes, "scratch": compiled.scratch}
    _write(name, json.dumps(head).encode() + b"\n" + b"".join(compiled.objects))


def remembered(name: str, find: Callable[[], Any]) -> Any:
    """What ``find`` found in an earlier run, or finds now; something that JSON can hold."""
    content = _read(name)
    if content is not None:
        with contextlib.suppress(ValueError):
            return json.loads(content)
    value = find()
    _write(name, json.dumps(value).encode())
    return value


def given_away() -> dict[str, bytes]:
    """All entries that this process has used, digests included, for another machine to :func:`take`."""
    entries = {}
    for name in sorted(_used):
        content = _read(name)
        if content is not None:
            entries[name] = _digest(name, content) + content
    return entries


def take(entries: Mapping[str, bytes]) -> None:
    """Keep entries of another machine; those that are here already, or not for this processor, are left alone.

    What comes is run later: take it only from a process that may run programs here anyway.
    """
    for name, whole in entries.items():
        digest, content = whole[:DIGEST_SIZE], whole[DIGEST_SIZE:]
        if digest == _digest(name, content) and _read(name) is None:
            _write(name, content)


def _digest(name: str, content: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for part in (FORMAT, package_digest(), codegen.processor(), name):
        digest.update(f"{part}\n".encode())
    digest.update(content)
    return digest.digest()


def _is_ours(status: os.stat_result) -> bool:
    """Whether it belongs to the user, and others cannot write to it."""
    if not hasattr(os, "geteuid"):
        return True  # rights are not kept as modes
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(name: str) -> bytes | None:
    """The content of an entry; None if there is none, it is damaged, or somebody else could have written it."""
    place = folder()
    if place is None:
        return None
    try:
        if not _is_ours(os.stat(place)):
            return None
        with open(place / name, "rb", opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
                return None
            whole = file.read()
    except OSError:
        return None
    digest, content = whole[:DIGEST_SIZE], whole[DIGEST_SIZE:]
    if digest != _digest(name, content):
        return None
    with contextlib.suppress(OSError):
        os.utime(place / name)  # used now
    _used.add(name)
    return content


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: what has an entry's name may be a pipe that nobody writes to."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _write(name: str, content: bytes) -> None:
    """Write at once or not at all; a folder that cannot be written to only costs the time to compile again."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        _close_to_others(place)
        handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(name, content) + content)
            os.replace(temporary, place / name)
            _used.add(name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _remove_unused(place)


def _close_to_others(place: Path) -> None:
    """Take away from others the right to write to a folder of the user's, which some systems give by default."""
    status = os.stat(place)
    if hasattr(os, "geteuid") and status.st_uid == os.geteuid() and not _is_ours(status):
        os.chmod(place, stat.S_IMODE(status.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))


def _remove_unused(place: Path) -> None:
    """Entries that were not used for the longest time, and what dead processes have left."""
    entries = []
    for path in place.iterdir():
        with contextlib.suppress(OSError):  # another process may have removed it
            status = path.stat()
            if not path.name.startswith(UNFINISHED):
                entries.append((status.st_mtime, status.st_size, path))
            elif status.st_mtime < time.time() - ABANDONED:
                path.unlink()
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
