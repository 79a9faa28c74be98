"""A recording: times and named channels of one run of a machine, checked when it is built."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowfit.errors import RecordingError, UnknownNameError, nearest
from shadowfit.magnitudes import LARGEST
from shadowfit.records import record

MINIMUM_SAMPLES = 3  # two intervals: the least from which an acceleration can be seen


@record(frozen=True, eq=False)
class Recording:
    """Times and channels of one run. Rows in messages are counted from 1.

    Arrays are copied, converted to float64 and made read-only.

    Raises:
        RecordingError: fewer than three samples, times that are not finite or do not increase, a channel of
            another length, with an infinite value or that is not numeric, no channels at all.
    """

    time: NDArray[np.float64]
    """Times of the samples, shape (n,) [s]; finite and strictly increasing, evenly spaced or not."""
    channels: Mapping[str, NDArray[np.float64]]
    """Name → samples, shape (n,), in SI units; NaN is a missing sample."""
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name → SI unit of the samples. A channel whose source states no unit is absent here."""
    name: str = "recording"
    """Short name, used in tables and figures."""
    source: str = ""
    """Where the samples come from, for people: a file's path or the kind of table."""
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name → heading of the column in the source, where they differ (`theta` → `theta [deg]`)."""
    warnings: tuple[str, ...] = ()
    """What the reader found remarkable, one sentence each."""

    def __post_init__(self) -> None:
        where = self.source or self.name
        time = _real_vector(self.time, f"{where}: time")
        _check_time(time, where)
        channels = {key: _real_vector(values, f"{where}: {key!r}") for key, values in self.channels.items()}
        if not channels:
            raise RecordingError(f"{where}: there are no channels besides time; at least one is needed")
        for key, values in channels.items():
            _check_channel(key, values, len(time), where)
        for label, mapping in (("units", self.units), ("columns", self.columns)):
            for key in mapping:
                if key not in channels:
                    raise RecordingError(f"{where}: {label} name channel {key!r}{nearest(key, channels)}")
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "channels", channels)
        object.__setattr__(self, "units", dict(self.units))
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "warnings", tuple(self.warnings))

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        names = ", ".join(f"{key} [{self.units.get(key, '?')}]" for key in self.channels)
        return f"Recording({self.name!r}: {len(self)} samples, {self.duration:.4g} s; {names})"

    @property
    def duration(self) -> float:
        """Last time minus first time [s]."""
        return float(self.time[-1] - self.time[0])

    @property
    def sample_interval(self) -> float:
        """Median time between samples [s]."""
        return float(np.median(np.diff(self.time)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of times, channel names, units and samples (not of name and source), in hexadecimal."""
        digest = hashlib.sha256(_little_endian(self.time))
        for key in sorted(self.channels):
            digest.update(f"\0{key}\0{self.units.get(key, '')}\0".encode())
            digest.update(_little_endian(self.channels[key]))
        return digest.hexdigest()

    def channel(self, name: str) -> NDArray[np.float64]:
        """Samples of a channel that is about to be used, shape (n,), in SI units.

        Found by its name or by the heading of its column in the source.

        Raises:
            UnknownNameError: no such channel.
            RecordingError: every sample is missing.
        """
        key = self.channel_name(name)
        values = self.channels[key]
        if np.isnan(values).all():
            raise RecordingError(
                f"{self.source or self.name}: every sample of channel {key!r} is missing; "
                "leave this channel out, or name another column for it"
            )
        return values

    def channel_name(self, name: str) -> str:
        """Key in `channels` for a channel's name or for the heading of its column."""
        if name in self.channels:
            return name
        for key, heading in self.columns.items():
            if heading == name:
                return key
        raise UnknownNameError(
            f"{self.source or self.name}: there is no channel {name!r}{nearest(name, self.channels)}"
        )

    def between(self, start: float, stop: float) -> Recording:
        """The part with start ≤ time ≤ stop [s]; times keep their values."""
        inside = (self.time >= start) & (self.time <= stop)
        if inside.sum() < MINIMUM_SAMPLES:
            raise RecordingError(
                f"{self.source or self.name}: {inside.sum()} samples lie between {start:g} and {stop:g} s, "
                f"at least {MINIMUM_SAMPLES} are needed; it spans {self.time[0]:g} to {self.time[-1]:g} s"
            )
        channels = {key: values[inside] for key, values in self.channels.items()}
        return dataclasses.replace(self, time=self.time[inside], channels=channels)


def _real_vector(values: ArrayLike, where: str) -> NDArray[np.float64]:
    """A read-only float64 copy, shape (n,)."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise RecordingError(f"{where} is no array ({error})") from error
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise RecordingError(
            f"{where} must be a one-dimensional array of real numbers, not {array.dtype} of shape {array.shape}"
        )
    vector = array.astype(np.float64)
    vector.flags.writeable = False
    return vector


def _check_time(time: NDArray[np.float64], where: str) -> None:
    if len(time) < MINIMUM_SAMPLES:
        raise RecordingError(f"{where}: {len(time)} samples, at least {MINIMUM_SAMPLES} are needed")
    finite = np.abs(time) < LARGEST
    if not finite.all():
        row = int(np.argmin(finite))
        raise RecordingError(
            f"{where}: the time in row {row + 1} is {time[row]}; every row needs a finite time, remove those "
            "without one"
        )
    step = np.diff(time)
    if (step > 0).all():
        return
    row = int(np.argmin(step > 0))
    count = int((step <= 0).sum())
    more = f" (and {count - 1} more such places)" if count > 1 else ""
    if step[row] == 0:
        raise RecordingError(
            f"{where}: rows {row + 1} and {row + 2} have the same time {time[row]:.9g} s{more}; keep one of "
            "them, or write the times with more digits"
        )
    raise RecordingError(
        f"{where}: time goes back from {time[row]:.9g} s in row {row + 1} to {time[row + 1]:.9g} s in row "
        f"{row + 2}{more}; sort the rows by time, or split the file if it holds several recordings"
    )


def _check_channel(key: str, values: NDArray[np.float64], samples: int, where: str) -> None:
    if len(values) != samples:
        raise RecordingError(f"{where}: channel {key!r} has {len(values)} samples, but there are {samples} times")
    infinite = np.abs(values) >= LARGEST
    if infinite.any():
        row = int(np.argmax(infinite))
        raise RecordingError(
            f"{where}: channel {key!r} is {values[row]} in row {row + 1}; write missing samples as NaN"
        )


def _little_endian(values: NDArray[np.float64]) -> bytes:
    # Adding zero turns −0 into 0, and one NaN stands for all: equal samples give equal bytes.
    return np.where(np.isnan(values), np.nan, values + 0.0).astype("<f8").tobytes()
