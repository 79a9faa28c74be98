"""The pieces of a recording across which the equations of motion can be followed.

Across a short gap states come from what was read on both sides, and from the equations. They come from neither where an
input was not recorded and is another one afterwards, nor where a position was not read for longer than the motion
remembers where it was (:mod:`shadowfit.recordings.pace`): a fit that goes on as if they did ends in another minimum.
There a recording is several: each piece has states of its own, and all share the parameters.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Bool, Float, Int
from shadowfit.estimation.problem.pacing import of_configuration, pace_of
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import JointPosition
from shadowfit.recordings import Recording, check_recording
from shadowfit.recordings.checks import GAP
from shadowfit.recordings.pace import FEWEST


class Cut(NamedTuple):
    """Times between which samples do not count [s], infinite at the ends of a recording; what is not known there."""

    start: float
    stop: float
    unknown: str

    def __str__(self) -> str:
        between = f"between {self.start:.6g} and {self.stop:.6g} s"
        if np.isinf(self.stop):
            between = f"after {self.start:.6g} s"
        elif np.isinf(self.start):
            between = f"before {self.stop:.6g} s"
        return f"{self.unknown} is not known {between}"


def all_pieces(mechanism: Mechanism, recordings: Sequence[Recording]) -> list[Recording]:
    """The pieces of all recordings, in their order; what is none is left for others to refuse."""
    cut = (pieces(mechanism, one) if isinstance(one, Recording) else [one] for one in recordings)
    return [piece for parts in cut for piece in parts]


def pieces(mechanism: Mechanism, recording: Recording) -> list[Recording]:
    """The recording itself, or its pieces; a warning says where it should be cut, and whether it was.

    Pieces too short to show a motion are left out. Where less than half of the samples would be left, it stays whole.
    """
    cuts = [*_without_input(mechanism, recording), *_without_position(mechanism, recording)]
    if not cuts:
        return [recording]
    kept = [rows for rows in _between(recording.time, cuts) if len(rows) >= FEWEST]
    whole = 2 * sum(map(len, kept)) < len(recording)
    parts = "1 recording" if len(kept) == 1 else f"{len(kept)} recordings"
    result = "too much lies there to be left out" if whole else f"what is left counts as {parts}"
    more = len({cut[:2] for cut in cuts}) - 1
    places = f" (and so at {more} more place{'s' if more > 1 else ''})" if more else ""
    warnings.warn(f"recording {recording.name!r}: {cuts[0]}{places}; {result}", stacklevel=2)
    return [recording] if whole else [_part(recording, rows, i, len(kept)) for i, rows in enumerate(kept)]


def _without_input(mechanism: Mechanism, recording: Recording) -> Iterator[Cut]:
    """Where an input was not recorded for long, and is another one afterwards."""
    for name in mechanism.inputs:
        values = recording.channels.get(name, np.zeros(len(recording)))
        for start, stop in _gaps(recording.time, np.isfinite(values)):
            ends = values[np.isin(recording.time, (start, stop))]
            if len(ends) < 2 or ends[0] != ends[1]:
                yield Cut(start, stop, f"input {name!r}")


def _without_position(mechanism: Mechanism, recording: Recording) -> Iterator[Cut]:
    """Where a joint's position was not read for long; with sensors that see several joints, where none was."""
    sensors = {name: sensor for name, sensor in mechanism.sensors.items() if of_configuration(sensor)}
    seen: dict[str, list[str]] = {}
    apart = all(isinstance(sensor, JointPosition) for sensor in sensors.values())
    for name, sensor in sensors.items():
        what = f"the position of {sensor.joint!r}" if apart else "any position"
        seen.setdefault(what, []).extend(c for c in sensor.channels(name) if c in recording.channels)
    for what, channels in seen.items():
        known = np.zeros(len(recording), bool)
        for channel in channels:
            known |= np.isfinite(recording.channels[channel])
        remembered = pace_of(mechanism, recording, channels)
        yield from (Cut(*gap, what) for gap in _gaps(recording.time, known, remembered))


def _gaps(
    time: Float[np.ndarray, " n"], known: Bool[np.ndarray, " n"], least: float = 0.0
) -> Iterator[tuple[float, float]]:
    """Times between which nothing is known for much longer than usual."""
    if np.count_nonzero(known) < FEWEST:
        return
    there = time[known]
    long = max(GAP * float(np.median(np.diff(there))), least)
    if there[0] - time[0] > long:
        yield -np.inf, float(there[0])
    for i in np.flatnonzero(np.diff(there) > long):
        yield float(there[i]), float(there[i + 1])
    if time[-1] - there[-1] > long:
        yield float(there[-1]), np.inf


def _between(time: Float[np.ndarray, " n"], cuts: Sequence[Cut]) -> Iterator[Int[np.ndarray, " k"]]:
    """Rows of each piece."""
    counts = np.ones(len(time), bool)
    for start, stop, _ in cuts:
        counts &= (time <= start) | (time >= stop)
    ends = [np.searchsorted(time, stop) for _, stop, _ in cuts]
    for rows in np.split(np.arange(len(time)), np.unique(ends)):
        yield rows[counts[rows]]


def _part(recording: Recording, rows: Int[np.ndarray, " k"], index: int, count: int) -> Recording:
    channels = {key: values[rows] for key, values in recording.channels.items()}
    name = recording.name if count == 1 else f"{recording.name} ({index + 1} of {count})"
    # What is remarkable of the whole, such as its gaps, need not be so of a part.
    said = check_recording(recording)
    notes = tuple(text for text in recording.warnings if text not in said)
    return dataclasses.replace(recording, time=recording.time[rows], channels=channels, name=name, warnings=notes)
