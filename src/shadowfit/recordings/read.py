"""Reading a recording: which column is the time, what the channels are called, and everything in SI units."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowfit.errors import RecordingError, UnknownNameError, nearest
from shadowfit.recordings.bags import Progress
from shadowfit.recordings.channel_table import Channel, ChannelTable
from shadowfit.recordings.checks import check_recording
from shadowfit.recordings.headings import TIME_NAMES, Heading, parse_headings
from shadowfit.recordings.merge import Series, shifted
from shadowfit.recordings.recording import Recording
from shadowfit.recordings.repeats import without_repeats
from shadowfit.recordings.table import RawTable, load_table


def read_recording(
    path_or_frame: Any,
    *,
    channels: Mapping[str, str | Channel] | ChannelTable | None = None,
    time: str | None = None,
    name: str | None = None,
    topics: Sequence[str] = (),
    progress: Progress | None = None,
) -> Recording:
    """Read a recording from a file or a frame, check it and convert it to SI units.

    Units in headings (`theta [deg]`, `theta (deg)`, `theta_deg`, `Time (ms)`, `w_rad_s`, `tau_Nm`) are taken
    off the names and converted; values without a unit are taken as SI. What is remarkable but no error ends
    up in `Recording.warnings`. A column of words is left out, and so are samples that a logger wrote
    twice, where the motion is far smoother without them (:mod:`shadowfit.recordings.repeats`).

    Args:
        path_or_frame: path of a CSV (`.csv`, `.tsv`, `.txt`), NumPy (`.npz`), Parquet (`.parquet`), HDF5 (`.h5`) or
            MATLAB (`.mat`) file or of a bag (`.bag`, `.db3`, `.mcap`, folder); a pandas or Polars frame; or a mapping
            of headings to arrays.
        channels: names of sensors or inputs → columns, written with or without their units, such as
            `{"theta": "alpha_rad"}`, or with more to say a :class:`Channel`, or a whole table
            (:func:`read_channel_table`). Other columns keep their own names.
        time: the column of times; without it `time`, `t`, `t_s`, `Time (ms)`, ... are tried.
        name: name of the recording; without it the file's name.
        topics: topics of a bag; without them all that have joint states.
        progress: called with the messages of a bag that were read, and all of them.

    Raises:
        RecordingError: the file or its contents are not usable; the message says where and what to do.
        UnknownNameError: a named column does not exist.
    """
    wanted = _wanted(channels)
    time, topics = time or wanted.time, topics or wanted.topics
    table = load_table(path_or_frame, topics, progress)
    headings = parse_headings(table.columns)
    if wanted.interval is None or time is not None:
        time_heading = _time_heading(headings, time, table.source)
        others = [heading for heading in headings if heading is not time_heading]
        times = _si(_numbers(table, time_heading, "the time"), time_heading)
    else:
        others = headings
        times = wanted.interval * np.arange(_usual_length(table), dtype=np.float64)
    chosen, notes = _name_channels(others, {key: one.column for key, one in wanted.channels.items()}, table)

    samples, kept = {}, {}
    for key, heading in chosen.items():
        values = table.columns[heading.text]
        mapped = key in wanted.channels
        if values is None and not mapped:
            notes.append(f"column {heading.text!r} holds words and was left out")
        elif values is not None and len(values) != len(times) and not mapped:
            notes.append(f"{heading.text!r} has {len(values)} values for {len(times)} times and was left out")
        else:
            numbers = _numbers(table, heading, f"channel {key!r}")
            channel = wanted.channels.get(key, Channel(heading.text))
            kept[key] = heading if channel.unit is None else dataclasses.replace(heading, unit=channel.unit)
            samples[key] = channel.scale * _si(numbers, kept[key]) + channel.offset
    delays = {key: one.delay for key, one in wanted.channels.items()}
    late = any(delays.values())
    series = shifted(times, samples, delays) if late else Series(times, samples)
    recording = Recording(
        time=series.time,
        channels=series.columns,
        units={key: heading.unit.symbol for key, heading in kept.items() if heading.unit is not None},
        name=name or table.name,
        source=table.source,
        columns={key: heading.text for key, heading in kept.items() if heading.text != key},
    )
    if not wanted.keep_repeats:
        recording, sentences = without_repeats(recording)
        notes += sentences
    return dataclasses.replace(recording, warnings=(*table.notes, *notes, *check_recording(recording)))


def _wanted(channels: Mapping[str, str | Channel] | ChannelTable | None) -> ChannelTable:
    if isinstance(channels, ChannelTable):
        return channels
    return ChannelTable({key: Channel(one) if isinstance(one, str) else one for key, one in (channels or {}).items()})


def _time_heading(headings: Sequence[Heading], time: str | None, where: str) -> Heading:
    if time is not None:
        heading = _find(headings, time, where)
    else:
        candidates = [h for candidate in TIME_NAMES for h in headings if h.name.lower() == candidate]
        # In a structure or group it is `log.time`; which of several is meant only the user knows.
        inside = [h for h in headings if h.name.lower().rpartition(".")[2] in TIME_NAMES]
        if not candidates and len(inside) > 1:
            several = ", ".join(repr(h.text) for h in inside)
            raise RecordingError(
                f'{where}: several columns may be the times: {several}; say which (`time = "{inside[0].text}"` in a '
                "file for --channels)"
            )
        if not candidates and not inside:
            columns = ", ".join(repr(h.text) for h in headings)
            raise RecordingError(
                f"{where}: no column of times among {columns}; call it 'time' (in seconds) or 'time [ms]', or "
                'say which column it is (`time = "COLUMN"` in a file for --channels) or how far samples are apart '
                "(`interval = 0.01` [s] there); columns of text files are separated by comma, semicolon or tab"
            )
        heading = (candidates or inside)[0]
    if heading.unit is not None and heading.unit.symbol != "s":
        raise RecordingError(f"{where}: the times in column {heading.text!r} are in {heading.unit.symbol}, not in s")
    return heading


def _usual_length(table: RawTable) -> int:
    """The number of values that most columns have."""
    lengths = [len(values) for values in table.columns.values() if values is not None]
    if not lengths:
        raise RecordingError(f"{table.source}: there are no columns of numbers")
    return max(lengths, key=lengths.count)


def _find(headings: Sequence[Heading], text: str, where: str) -> Heading:
    """The column that a user means: by its heading, or by its name without unit where only one has it."""
    for heading in headings:
        if heading.text == text.strip():
            return heading
    named = [heading for heading in headings if heading.name == text.strip()]
    if len(named) == 1:
        return named[0]
    if named:
        columns = " and ".join(repr(heading.text) for heading in named)
        raise UnknownNameError(f"{where}: {text!r} may mean {columns}; write the whole heading")
    valid = [heading.text for heading in headings]
    raise UnknownNameError(f"{where}: there is no column {text!r}{nearest(text, valid)}")


def _name_channels(
    headings: Sequence[Heading], mapping: Mapping[str, str], table: RawTable
) -> tuple[dict[str, Heading], list[str]]:
    """Channel name → column: the user's names, then each column's own, or its whole heading if that is taken.

    Returned with notes about columns that are called otherwise than their headings promise.
    """
    chosen = {key: _find(headings, column, table.source) for key, column in mapping.items()}
    notes = []
    taken = {heading.text for heading in chosen.values()}
    rest = [heading for heading in headings if heading.text not in taken]
    named: dict[str, list[str]] = {}
    for heading in rest:
        named.setdefault(heading.name, []).append(heading.text)
    for heading in rest:
        alike = [text for text in named[heading.name] if text != heading.text]
        key = heading.text if alike or heading.name in mapping else heading.name
        if alike:
            notes.append(f"column {key!r} keeps its whole heading as name, as there is also {', '.join(alike)}")
        if key in chosen:
            notes.append(f"column {heading.text!r} was left out: another column was given the name {key!r}")
        else:
            chosen[key] = heading
    return chosen, notes


def _numbers(table: RawTable, heading: Heading, role: str) -> NDArray[np.float64]:
    values = table.columns[heading.text]
    if values is None:
        raise RecordingError(
            f"{table.source}: column {heading.text!r} is used for {role} but holds words; it needs numbers "
            "with a decimal point"
        )
    return values


def _si(values: NDArray[np.float64], heading: Heading) -> NDArray[np.float64]:
    return values if heading.unit is None else values * heading.unit.factor
