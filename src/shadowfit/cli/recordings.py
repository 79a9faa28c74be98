"""Reading the recordings that a command names."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowfit.cli.options import assignments
from shadowfit.records import record

if TYPE_CHECKING:
    from shadowfit.mechanism import Mechanism
    from shadowfit.recordings import ChannelTable, Recording


@record(frozen=True)
class Selection:
    """Which part of a recording's contents is meant, as the options say it."""

    channel: Iterable[str] | None = None
    """``SENSOR=COLUMN``."""
    table: Path | None = None
    """A file of channels."""
    topic: Iterable[str] | None = None
    begin: float | None = None
    """First time [s]."""
    end: float | None = None
    """Last time [s]."""

    def channels(self) -> ChannelTable:
        """The table of channels, to which single ones are added."""
        from shadowfit.recordings import Channel, ChannelTable, read_channel_table

        table = ChannelTable({}) if self.table is None else read_channel_table(self.table)
        single = {name: Channel(column) for name, column in assignments(self.channel or (), "--channel").items()}
        topics = tuple(self.topic or table.topics)
        return dataclasses.replace(table, channels={**table.channels, **single}, topics=topics)


def read_recordings(
    paths: Iterable[Path], mechanism: Mechanism, selection: Selection, *, quiet: bool = False
) -> list[Recording]:
    """The recordings of a command line, joints matched by name; what is remarkable is said on standard error."""
    from shadowfit.cli import console
    from shadowfit.cli.progress import reading_progress
    from shadowfit.models.matching import matched
    from shadowfit.recordings import read_recording

    channels = selection.channels()
    measured = []
    for path in paths:
        with reading_progress(path.name, quiet) as progress:
            recording = read_recording(path, channels=channels, progress=progress)
        measured.append(matched(mechanism, recording))
    begin, end = selection.begin, selection.end
    if begin is not None or end is not None:
        first, last = (-math.inf if begin is None else begin), (math.inf if end is None else end)
        measured = [recording.between(first, last) for recording in measured]
    for recording in measured:
        for warning in () if quiet else recording.warnings:
            console.messages().print(f"warning: recording {recording.name!r}: {warning}", soft_wrap=True)
    return measured


@contextlib.contextmanager
def spoken_warnings(recordings: Iterable[Recording], quiet: bool) -> Iterator[list[str]]:
    """Warnings of the library about recordings as messages of the program, unless they were said before."""
    from shadowfit.cli import console

    known = {f"recording {recording.name!r}: {text}" for recording in recordings for text in recording.warnings}
    spoken: list[str] = []

    def speak(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        if text in known or text in spoken:
            return
        spoken.append(text)
        if not quiet:
            console.messages().print(f"warning: {text}", soft_wrap=True)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, message="recording .*")
        warnings.showwarning = speak
        yield spoken
