"""Reading the recordings that a command names."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowfit.cli.options import OptionError, assignments
from shadowfit.records import record

if TYPE_CHECKING:
    from shadowfit.mechanism import Mechanism
    from shadowfit.recordings import ChannelTable, Recording


@record(frozen=True)
class Selection:
    """Which part of a recording's contents is meant, as the options say it."""

    channel: Iterable[str] | None = None
    """``SENSOR=COLUMN``, or ``INPUT=NUMBER,…``."""
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
        columns = assignments(self.channel or (), "--channel").items()
        single = {name: Channel(column) for name, column in columns if _numbers(column) is None}
        topics = tuple(self.topic or table.topics)
        return dataclasses.replace(table, channels={**table.channels, **single}, topics=topics)

    def constants(self, count: int) -> list[dict[str, float]]:
        """Channels that are the same all the time, by name, for each of so many recordings."""
        told: list[dict[str, float]] = [{} for _ in range(count)]
        for name, text in assignments(self.channel or (), "--channel").items():
            values = _numbers(text) or []
            if len(values) not in (0, 1, count):
                raise OptionError(
                    f"--channel {name}={text}: {len(values)} numbers for {count} recordings; give one or all"
                )
            for one, value in zip(told, values * count if len(values) == 1 else values, strict=False):
                one[name] = value
        return told


def _numbers(text: str) -> list[float] | None:
    """``100,400`` as numbers; None of a column's name."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return None


def _with_constants(recording: Recording, constants: Mapping[str, float]) -> Recording:
    import numpy as np

    constant = {name: np.full(len(recording), value) for name, value in constants.items()}
    return dataclasses.replace(recording, channels={**recording.channels, **constant})


def read_recordings(
    paths: Iterable[Path], mechanism: Mechanism, selection: Selection, *, quiet: bool = False
) -> list[Recording]:
    """The recordings of a command line, joints matched by name; what is remarkable is said on standard error."""
    from shadowfit.cli import console
    from shadowfit.cli.progress import reading_progress
    from shadowfit.models.matching import matched
    from shadowfit.recordings import read_recording

    paths, channels = list(paths), selection.channels()
    measured = []
    for path, constants in zip(paths, selection.constants(len(paths)), strict=True):
        with reading_progress(path.name, quiet) as progress:
            recording = _with_constants(read_recording(path, channels=channels, progress=progress), constants)
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
