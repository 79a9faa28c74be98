"""A secret of the user, made at first use, by which code that was kept is known to be the user's own.

It lies apart from what it seals: whoever may write to a folder of compiled code (one that is shared, or was brought
back from somewhere) cannot make entries that are run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import stat
import tempfile
from pathlib import Path

import platformdirs

PATH_VARIABLE = "SHADOWFIT_KEY"
"""Environment variable that names another file."""
SIZE = 32


def key_path() -> Path:
    """Where the secret is kept."""
    named = os.environ.get(PATH_VARIABLE)
    return Path(named) if named else Path(platformdirs.user_data_dir("shadowfit")) / "key"


def user_key() -> bytes | None:
    """The secret; None where there is none and none can be kept, or where others could know or change it."""
    return _key(key_path())


@functools.cache
def _key(path: Path) -> bytes | None:
    with contextlib.suppress(OSError):
        if not path.exists():
            _make(path)
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            if _is_secret(os.fstat(file.fileno())):
                key = file.read(SIZE + 1)
                return key if len(key) == SIZE else None
    return None


def _make(path: Path) -> None:
    """Make the secret, whole or not at all; that of a process which was quicker stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)  # for its owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SIZE))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _is_secret(status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True  # rights are not kept as modes
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
