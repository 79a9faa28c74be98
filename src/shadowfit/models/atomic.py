"""Writing a file in one step: whoever reads it sees the old one or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path

from shadowfit.errors import ShadowfitError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file (UTF-8) with the folders it needs.

    Raises:
        ShadowfitError: the file cannot be written.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file with the folders it needs.

    Raises:
        ShadowfitError: the file cannot be written.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(content)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ShadowfitError(f"{path} cannot be written: {error.strerror or error}") from error
