"""Compiled kernels, and facts that take long to find, kept in the user's cache directory for later runs.

An entry is a file: a seal, and what was kept. The seal is made with a secret of the user (:mod:`key`) over the content
together with the entry's name, the source of the package, the processor and the version of this format, so that an
entry that is damaged, was made for something else or by somebody else is not used but made again: what is in it is run.
A folder that is not the user's alone to write to is not used, which is said once.

Entries appear at once or not at all, so that several processes can use one folder. The least recently used ones are
removed beyond `MOST_BYTES`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
import json
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from shadowfit.kernels import codegen
from shadowfit.kernels.fingerprint import package_digest
from shadowfit.kernels.key import user_key
from shadowfit.records import record

FOLDER_VARIABLE = "SHADOWFIT_KERNELS"
"""Environment variable that names another folder; empty: nothing is kept."""
MOST_BYTES = 512 * 2**20
"""Size of all entries beyond which the least recently used ones are removed."""
FORMAT = "2"
"""Version of what an entry looks like."""
UNFINISHED = ".unfinished-"
"""How names of files begin that are being written."""
ABANDONED = 3600.0
"""Age of such a file from which on its writer is taken for dead [s]."""
DIGEST_SIZE = 32

_refused: set[Path] = set()
"""Folders of which it was said that they are not used."""
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
    content = read(name)
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
    write(name, json.dumps(head).encode() + b"\n" + b"".join(compiled.objects))


def remembered(name: str, find: Callable[[], Any]) -> Any:
    """What ``find`` found in an earlier run, or finds now; something that JSON can hold."""
    content = read(name)
    if content is not None:
        with contextlib.suppress(ValueError):
            return json.loads(content)
    value = find()
    write(name, json.dumps(value).encode())
    return value


def given_away() -> dict[str, bytes]:
    """All entries that this process has used, digests included, for another machine to :func:`take`."""
    entries = {}
    for name in sorted(_used):
        content = read(name)
        if content is not None:
            entries[name] = _digest(name, content).digest() + content
    return entries


def take(entries: Mapping[str, bytes]) -> None:
    """Keep entries of another machine; those that are here already, or not for this processor, are left alone.

    What comes is run later: take it only from a process that may run programs here anyway.
    """
    for name, whole in entries.items():
        digest, content = whole[:DIGEST_SIZE], whole[DIGEST_SIZE:]
        if digest == _digest(name, content).digest() and read(name) is None:
            write(name, content)


def _sealed(name: str, content: bytes, key: bytes) -> bytes:
    """The seal of an entry."""
    return hmac.digest(key, _digest(name, content).digest(), "sha256")


def _digest(name: str, content: bytes) -> hashlib.blake2b:
    """What tells an entry from others; alone it only shows that nothing was lost on the way."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for part in (FORMAT, package_digest(), codegen.processor(), name):
        digest.update(f"{part}\n".encode())
    digest.update(content)
    return digest


def _is_ours(status: os.stat_result) -> bool:
    """Whether it belongs to the user, and others cannot write to it."""
    if not hasattr(os, "geteuid"):
        return True  # rights are not kept as modes
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read(name: str) -> bytes | None:
    """The content of an entry; None if there is none, it is damaged, or it is not from here."""
    place, key = folder(), user_key()
    if place is None or key is None or not place.exists():
        return None
    try:
        if not _is_usable(place):
            return None
        with open(place / name, "rb", opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
                return None
            whole = file.read()
    except OSError:
        return None
    digest, content = whole[:DIGEST_SIZE], whole[DIGEST_SIZE:]
    if not hmac.compare_digest(digest, _sealed(name, content, key)):
        return None
    with contextlib.suppress(OSError):
        os.utime(place / name)  # used now
    _used.add(name)
    return content


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: what has an entry's name may be a pipe that nobody writes to."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def write(name: str, content: bytes) -> None:
    """Write at once or not at all; a folder that cannot be written to only costs the time to compile again."""
    place, key = folder(), user_key()
    if place is None or key is None:
        return
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        if not _is_usable(place):
            return
        handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_sealed(name, content, key) + content)
            os.replace(temporary, place / name)
            _used.add(name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _remove_unused(place)


def _is_usable(place: Path) -> bool:
    """Whether a folder is the user's alone to write to; if not, that is said once."""
    if _is_ours(os.stat(place)):
        return True
    if place not in _refused:
        _refused.add(place)
        warnings.warn(
            f"compiled code is neither read from nor kept in {place}: the folder belongs to another user, or others "
            f"may write to it (chmod go-w), or name another one in {FOLDER_VARIABLE}",
            stacklevel=2,
        )
    return False


def kept() -> tuple[int, int]:
    """How many entries there are, and their size [bytes]."""
    place = folder()
    sizes = [path.stat().st_size for path in place.iterdir()] if place is not None and place.is_dir() else []
    return len(sizes), sum(sizes)


def remove_all() -> None:
    """Remove all entries.

    Raises:
        OSError: the system refuses.
    """
    place = folder()
    for path in place.iterdir() if place is not None and place.is_dir() else ():
        path.unlink(missing_ok=True)


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
