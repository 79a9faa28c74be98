"""Writing a file in one step: whoever reads it sees the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

from shadowfit.errors import WriteError

# Age [s] of a half-written file that nobody is writing any more: its writer was killed.
ABANDONED = 3600.0


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file (UTF-8) with the folders it needs.

    Raises:
        WriteError: the file cannot be written.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file with the folders it needs.

    Raises:
        WriteError: the file cannot be written.
    """
    target = Path(path)
    # A name of its own length: the target's may be as long as the file system allows.
    partial = target.with_name(f".{uuid.uuid4().hex[:12]}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a machine that stops may otherwise keep the new name without the content
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise WriteError(f"{path} cannot be written: it would lie below a file") from error
    except OSError as error:
        raise WriteError(f"{path} cannot be written: {error.strerror or error}") from error


def remove_abandoned(folder: str | os.PathLike[str]) -> None:
    """Remove what writers that were killed left in a folder; a folder that cannot be read or changed stays as it is."""
    with contextlib.suppress(OSError):
        for left in Path(folder).glob(".*.partial"):
            if left.is_file() and time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink(missing_ok=True)
