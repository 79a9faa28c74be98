"""Reading the recordings that a command names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shadowfit.cli.options import assignments

if TYPE_CHECKING:
    from shadowfit.recordings import Recording


def read_recordings(paths: Iterable[Path], channels: Iterable[str], *, quiet: bool = False) -> list[Recording]:
    """The recordings of a command line; what is remarkable about them is said on standard error."""
    from shadowfit.cli import console
    from shadowfit.recordings import read_recording

    mapping = assignments(channels, "--channel")
    found = [read_recording(path, channels=mapping) for path in paths]
    for recording in found:
        for warning in () if quiet else recording.warnings:
            console.messages().print(f"warning: recording {recording.name!r}: {warning}", soft_wrap=True)
    return found
