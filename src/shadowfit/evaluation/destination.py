"""Whether a result can be written where it is wanted, asked before the work rather than after it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from shadowfit.errors import WriteError
from shadowfit.evaluation.exchange import check_entries
from shadowfit.evaluation.store import is_own
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording

# Of a result whatever its size [bytes]: the page with its program, the model, the summary.
FIXED_SIZE = 1_000_000
# Of a number in a table of twelve digits, and of one as an array and in the page [bytes].
CELL, NUMBER = 20, 8


def check_destination(folder: str | os.PathLike[str], size: int = 0) -> None:
    """Raise unless ``size`` bytes of a result can probably be written into a folder.

    Raises:
        WriteError: it is a file or lies below one, has a folder where a file is to be, may not be written to, or its
            file system is too full.
    """
    target = Path(folder)
    free = _space(target, target)
    check_entries(target, is_own)
    if free < size:
        raise WriteError(
            f"{folder} has space for {free / 1e6:.1f} MB; the result needs about {size / 1e6:.1f} MB. Name another "
            "folder with --out, or make room"
        )


def check_files(*files: Path) -> None:
    """Raise unless these files can probably be written.

    Raises:
        WriteError: one of them is a folder or lies below a file, or its folder may not be written to.
    """
    for file in files:
        if os.path.isdir(file):
            raise WriteError(f"{file} cannot be written: it is a folder")
        _space(file.parent, file)


def _space(folder: Path, wanted: Path) -> int:
    """Bytes that are free where a folder is, or is to be, after a trial of writing there; the name may be too long."""
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(wanted)
        existing = folder
        while not os.path.lexists(existing) and existing != existing.parent:
            existing = existing.parent
        if not existing.is_dir():
            where = "it is a file" if existing == folder else f"{existing} is a file"
            raise WriteError(f"{folder} cannot be the folder of the result: {where}")
        with tempfile.TemporaryFile(dir=existing):
            pass  # asking for permissions does not tell: an administrator has all, and cannot write to a CD either
        return shutil.disk_usage(existing).free
    except OSError as error:
        raise WriteError(f"{wanted} cannot be written: {error.strerror or error}") from error


def expected_size(mechanism: Mechanism, recordings: Sequence[Recording], steps: Sequence[int]) -> int:
    """About how many bytes a result takes, from above: tables of all samples, states of all steps, the page."""
    channels = sum(max(len(s.components), 1) + s.error_size() for s in mechanism.sensors.values)
    columns = 1 + 3 * channels + len(mechanism.joints) + len(mechanism.inputs)
    cells = columns * sum(len(recording) for recording in recordings)
    return FIXED_SIZE + (CELL + NUMBER) * cells + 2 * NUMBER * 14 * len(mechanism.bodies) * sum(steps)
