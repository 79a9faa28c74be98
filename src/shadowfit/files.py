"""Files are data: only regular ones are opened, no larger than memory allows, in the folders where they were given.

A file that the user names may be anywhere. What a *file* names (an include, a mesh, a robot, a recording) must lie in
that file's own folder or below it, links followed, or in one of the folders that ``SHADOWFIT_FOLDERS`` lists.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from shadowfit.memory import require_for_file

FOLDERS_VARIABLE = "SHADOWFIT_FOLDERS"
"""Environment variable: further folders in which files may name files, separated as in PATH."""
DEEPEST = 100
"""Parts of a dotted key in TOML. Its reader keeps all beginnings of a key, which takes the square of their number."""
PIECE = 1 << 20
"""Size in which a file is read beyond the size that it has [bytes]."""

_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_INTEGER = re.compile(r"\b(?:[0-9][0-9_]{18,}|0[box][0-9a-fA-F_]{16,})\b")
_DEEP_KEY = re.compile(rf"(?:{_PART}[ \t]*\.[ \t]*){{{DEEPEST}}}")
_KINDS = {
    stat.S_IFDIR: (errno.EISDIR, "it is a folder"),
    stat.S_IFIFO: (errno.EINVAL, "it is a pipe, not a file"),
    stat.S_IFSOCK: (errno.EINVAL, "it is a socket, not a file"),
    stat.S_IFCHR: (errno.EINVAL, "it is a device, not a file"),
    stat.S_IFBLK: (errno.EINVAL, "it is a device, not a file"),
}


def check_regular(path: str | os.PathLike[str]) -> int:
    """The size of a file [bytes].

    Raises:
        OSError: there is none, or it is a folder, a pipe, a socket or a device.
    """
    return _size(os.stat(path), path)


def _size(status: os.stat_result, path: str | os.PathLike[str]) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(*_KINDS.get(stat.S_IFMT(status.st_mode), (errno.EINVAL, "it is no file")), os.fspath(path))
    return status.st_size


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: it is none, or cannot be read.
        NotEnoughMemoryError: it is larger than memory allows.
    """
    check_regular(path)  # before it is opened: that alone makes some devices do something
    with open(path, "rb", opener=_at_once) as file:
        size = _size(os.fstat(file.fileno()), path)
        require_for_file(size, str(path), size)
        pieces, read = [], 0
        while piece := file.read(max(size - read, PIECE)):  # files of the system have no size, and some no end
            pieces.append(piece)
            read += len(piece)
            require_for_file(read, str(path), size)
        return b"".join(pieces)


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: in the meantime a pipe may have taken the file's place."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_text(path: str | os.PathLike[str]) -> str:
    """The text (UTF-8) of a regular file.

    Raises:
        OSError: as :func:`read_bytes`.
        UnicodeDecodeError: it is another text, or none.
    """
    return read_bytes(path).decode("utf-8")


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text.

    Raises:
        tomllib.TOMLDecodeError: it is none, or nested deeper than anybody writes.
    """
    if deep := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise tomllib.TOMLDecodeError(f"A key has more than {DEEPEST} parts (at line {line}, column 1)")
    try:
        values = tomllib.loads(text)
        if not _has_common_integers(values):
            long = _LONG_INTEGER.search(text)
            line = text.count("\n", 0, long.start() if long else len(text)) + 1
            raise tomllib.TOMLDecodeError(f"An integer has more than 64 bits (at line {line}, column 1)")
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("Brackets are nested too deeply (at end of document)") from error
    return values


def _has_common_integers(value: Any) -> bool:
    """Whether all integers are those of TOML: larger ones, which Python reads as well, are no floats."""
    if isinstance(value, dict | list):
        return all(map(_has_common_integers, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The values of a TOML file.

    Raises:
        OSError: as :func:`read_bytes`.
        ValueError: it is no TOML, or no text.
    """
    return parse_toml(read_text(path))


def is_allowed(folder: Path, path: Path) -> bool:
    """Whether a file of a folder may name a path: it is in the folder, links followed, or where the user allows it."""
    listed = os.environ.get(FOLDERS_VARIABLE, "")
    wanted = path.resolve()
    return any(
        wanted.is_relative_to(root.resolve()) for root in (folder, *map(Path, filter(None, listed.split(os.pathsep))))
    )


def named_in(folder: Path, name: str) -> Path:
    """The path that a file of a folder names.

    Raises:
        OSError: it lies outside.
    """
    path = folder / name
    if not is_allowed(folder, path):
        reason = f"it lies outside of {folder}; copy it there, or list its folder in {FOLDERS_VARIABLE}"
        raise OSError(errno.EACCES, reason, os.fspath(path))
    return path
