"""Tables of channels: which column of a recording is which sensor or input, with unit, sign, offset and delay.

    [channels]
    theta = "alpha_deg"                                    # a sensor or an input = a column
    elbow_effort = { column = "i3", unit = "N m", sign = -1, scale = 0.72, offset = 0.1, delay = 0.002 }

The value is ``sign · scale · (written value in SI units) + offset``; a column that comes late by ``delay`` is put back.
A joint's sensors and inputs may be called ``JOINT.position``, ``JOINT.velocity``, ``JOINT.effort``, ``JOINT.target``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from shadowfit.errors import RecordingError, nearest
from shadowfit.files import read_toml
from shadowfit.recordings.units import Unit, parse_unit
from shadowfit.records import record

KEYS = ("column", "unit", "sign", "scale", "offset", "delay")


@record(frozen=True)
class Channel:
    """How a channel follows from a column."""

    column: str
    """Its heading, with or without the unit."""
    unit: Unit | None = None
    """Of the written values, in place of the heading's; None: what the heading says."""
    scale: float = 1.0
    """Sign included."""
    offset: float = 0.0
    """Added, in SI units."""
    delay: float = 0.0
    """How late the column is [s]."""


@record(frozen=True)
class ChannelTable:
    """A table of channels."""

    channels: Mapping[str, Channel]
    time: str | None = None
    """Column of the times; None: found by its name."""
    topics: tuple[str, ...] = ()
    """Topics of a bag to read."""
    keep_repeats: bool = False
    """Whether samples that were read twice stay (:mod:`recordings.repeats`)."""
    interval: float | None = None
    """Time between samples [s], where there is no column of times."""


def read_channel_table(path: str | os.PathLike[str]) -> ChannelTable:
    """Read a TOML file of channels.

    Raises:
        RecordingError: anything that is wrong with it.
    """
    where = str(path)
    try:
        content = read_toml(path)
    except OSError as error:
        raise RecordingError(f"{where}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise RecordingError(f"{where}: {error}") from error
    _allow(content, ("channels", "time", "interval", "topics", "repeats"), where)
    table = content.get("channels", {})
    repeats = content.get("repeats")
    if repeats not in (None, "keep"):
        raise RecordingError(f'{where}: repeats is {repeats!r}; it can only be "keep"')
    if not isinstance(table, dict) or not content:
        raise RecordingError(f'{where}: says nothing; a table [channels] has lines such as theta = "alpha_deg"')
    interval = None if "interval" not in content else _number(content["interval"], "interval", where)
    if interval is not None and (interval <= 0.0 or "time" in content):
        raise RecordingError(f"{where}: interval is a time above zero [s], and stands in place of a column of times")
    if not isinstance(content.get("time", ""), str):
        raise RecordingError(f"{where}: time is {content['time']!r}; it is the name of a column, in quotes")
    topics = content.get("topics", [])
    topics = [topics] if isinstance(topics, str) else topics
    if not (isinstance(topics, list) and all(isinstance(topic, str) for topic in topics)):
        raise RecordingError(f"{where}: topics must be a list of names")
    channels = {}
    for name, entry in _entries(table):
        channels[name] = channel(entry, f"{where}, channel {name!r}")
    return ChannelTable(channels, content.get("time"), tuple(topics), repeats == "keep", interval)


def _entries(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Channels by dotted name: TOML reads ``elbow.effort = ...`` as a table of a table."""
    entries = []
    for name, entry in table.items():
        if isinstance(entry, dict) and "column" not in entry and any(isinstance(v, dict | str) for v in entry.values()):
            entries += _entries(entry, f"{prefix}{name}.")
        else:
            entries.append((prefix + name, entry))
    return entries


def channel(entry: str | Mapping[str, Any], where: str = "channel") -> Channel:
    """A channel from a column's name or a table with the keys of :data:`KEYS`."""
    if isinstance(entry, str):
        return Channel(entry)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise RecordingError(f'{where}: write a column\'s name, or a table with column = "..."')
    _allow(entry, KEYS, where)
    numbers = {key: _number(entry.get(key, default), key, where) for key, default in _DEFAULTS.items()}
    unit = None
    if "unit" in entry:
        unit = parse_unit(str(entry["unit"]))
        if unit is None:
            raise RecordingError(f"{where}: {entry['unit']!r} is not a known unit")
    if numbers["sign"] not in (-1.0, 1.0):
        raise RecordingError(f"{where}: sign is {numbers['sign']:g}; it is 1 or -1 (scale takes any number)")
    scale = numbers["sign"] * numbers["scale"]
    return Channel(entry["column"], unit, scale, numbers["offset"], numbers["delay"])


_DEFAULTS = {"sign": 1.0, "scale": 1.0, "offset": 0.0, "delay": 0.0}


def _number(value: Any, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RecordingError(f"{where}: {key} is {value!r}; it must be a number")
    return float(value)


def _allow(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise RecordingError(f"{where}: there is no key {key!r}{nearest(key, known)}")
