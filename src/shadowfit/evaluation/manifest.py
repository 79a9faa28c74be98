"""Whether the files of a result are those that its fit wrote: their digests are in a file beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from shadowfit.files import read_bytes, read_text
from shadowfit.models.atomic import write_text

NAME = "manifest.json"


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Keep the digests of files of a folder."""
    digests = {name: _digest(folder / name) for name in sorted(names)}
    write_text(folder / NAME, json.dumps({"sha256": digests}, indent=2, ensure_ascii=False) + "\n")


def changed_files(folder: Path) -> tuple[str, ...]:
    """Names of files that are not what was written: changed, cut, missing, or of another result.

    Raises:
        FileNotFoundError: there is no manifest.
    """
    try:
        digests = json.loads(read_text(folder / NAME))["sha256"]
        named = {str(name): str(digest) for name, digest in digests.items()}
    except FileNotFoundError:
        raise
    except Exception:  # whatever may stand in a file
        return (NAME,)
    return tuple(name for name, digest in named.items() if _digest(folder / name) != digest)


def _digest(path: Path) -> str:
    """Of what is in a file, empty where it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except (OSError, ValueError):
        return ""
