"""Reading the recordings that a command names."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowfit.cli.options import assignments

if TYPE_CHECKING:
    from shadowfit.recordings import Recording


def read_recordings(
    paths: Iterable[Path],
    channels: Iterable[str],
    *,
    begin: float | None = None,
    end: float | None = None,
    quiet: bool = False,
) -> list[Recording]:
    """The recordings of a command line between two times [s]; what is remarkable is said on standard error."""
    from shadowfit.cli import console
    from shadowfit.recordings import read_recording

    mapping = assignments(channels, "--channel")
    found = [read_recording(path, channels=mapping) for path in paths]
    if begin is not None or end is not None:
        first, last = (-math.inf if begin is None else begin), (math.inf if end is None else end)
        found = [recording.between(first, last) for recording in found]
    for recording in found:
        for warning in () if quiet else recording.warnings:
            console.messages().print(f"warning: recording {recording.name!r}: {warning}", soft_wrap=True)
    return found


@contextlib.contextmanager
def spoken_warnings(recordings: Iterable[Recording], quiet: bool) -> Iterator[list[str]]:
    """Warnings of the library about recordings as messages of the program, unless they were said before."""
    from shadowfit.cli import console

    said = {f"recording {recording.name!r}: {text}" for recording in recordings for text in recording.warnings}
    spoken: list[str] = []

    def speak(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        if text in said or text in spoken:
            return
        spoken.append(text)
        if not quiet:
            console.messages().print(f"warning: {text}", soft_wrap=True)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, message="recording .*")
        warnings.showwarning = speak
        yield spoken
