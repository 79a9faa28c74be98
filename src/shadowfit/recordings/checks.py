"""Checks at the door: what about a recording would spoil a fit, said before the fit starts.

Errors stop (a channel that does not exist, is missing throughout or has a unit of another kind); warnings are
sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowfit.errors import RecordingError
from shadowfit.recordings.grid import quantisation, quantisation_std
from shadowfit.recordings.headings import parse_heading
from shadowfit.recordings.recording import Recording

GAP = 5.0  # a gap is longer than so many median intervals
JITTER = 0.05  # relative standard deviation of the intervals, gaps not counted
MISSING = 0.01  # fraction of missing samples
# A standard deviation this close to that of the grid allows for it.
ALLOWED_FOR = 0.99
COARSE_GRID = 1e-6  # step over range; finer grids are those of the floating point numbers
COARSE_DECIMALS = 1e-3  # step over range for steps 0.1, 0.01, ...; finer ones are the digits of a text file
STRAY = 10.0  # bend at an end over that of the inner samples
DEGREE_RANGE = 50.0  # eight turns if these were radians
LONG_INTERVAL = 0.5  # [s]; no mechanism is recorded so slowly

UNIT_OF_KIND = {
    "angle": "rad",
    "angular_velocity": "rad/s",
    "length": "m",
    "position": "m",
    "velocity": "m/s",
    "acceleration": "m/s^2",
    "force": "N",
    "torque": "N m",
    "voltage": "V",
    "current": "A",
}
"""SI unit of each kind of sensor; kinds that are not listed are not checked for their unit."""


def check_recording(
    recording: Recording,
    sensors: Mapping[str, str] | None = None,
    inputs: Iterable[str] | None = None,
    assumed_std: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """Warnings about the times and about the channels that are used; all that matters for a fit.

    Args:
        recording: the recording.
        sensors: channel → kind (`angle`, `length`, `angular_velocity`, ...), for all channels that are
            compared with the model. Without sensors and inputs, every channel is looked at, as far as that
            goes without its kind.
        inputs: channels that drive the model.
        assumed_std: channel → standard deviation that the model assumes; where it allows for the channel's
            resolution, that is not worth a warning.

    Raises:
        UnknownNameError: a sensor's or input's channel does not exist.
        RecordingError: all samples of a used channel are missing, or its unit does not fit the sensor's kind.
    """
    warnings = _time_warnings(recording.time)
    if sensors is None and inputs is None:
        return (
            *warnings,
            *(text for key in recording.channels for text in _channel_warnings(recording, key)),
        )
    kinds = {**dict.fromkeys(inputs or ()), **(sensors or {})}
    for name, kind in kinds.items():
        key = recording.channel_name(name)
        recording.channel(key)  # raises where every sample is missing
        warnings += _channel_warnings(recording, key)
        if kind is not None:
            _check_unit(recording, key, kind)
            warnings += _sensor_warnings(recording, key, kind, (assumed_std or {}).get(name, 0.0))
    return tuple(warnings)


def looks_like_degrees(time: ArrayLike, values: ArrayLike) -> bool:
    """Whether an angle of unknown unit is more likely in degrees than in radians.

    True for a range above 50 (eight turns, in radians) unless it is one steady turn at a possible speed: path
    at most 1.5 × range and 95 % of the speeds below 200 per second.
    """
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    change = np.abs(np.diff(values[finite]))
    if change.size == 0 or np.ptp(values[finite]) <= DEGREE_RANGE:
        return False
    speed = change / np.diff(np.asarray(time, dtype=np.float64)[finite])
    steady = change.sum() <= 1.5 * np.ptp(values[finite])
    return not (steady and np.quantile(speed, 0.95) < 200.0)


def clipped(values: ArrayLike, step: float = 0.0) -> float | None:
    """The largest or smallest value if the signal runs into it at speed and stays there exactly, else None.

    At a turning point a signal slows down; at the end of a sensor's range it stops at once: three or more
    equal samples at the extreme, entered by a jump of at least half the typical one and of more than two
    steps of the grid.

    Args:
        values: samples, shape (n,); NaN is ignored.
        step: step of the grid if the samples are quantised, in their unit.
    """
    samples = np.asarray(values, dtype=np.float64)
    samples = samples[np.isfinite(samples)]
    change = np.abs(np.diff(samples))
    if not change.any():
        return None
    entry = max(0.5 * float(np.median(change[change > 0.0])), 2.5 * step)
    for extreme in (samples.max(), samples.min()):
        at = samples == extreme
        stays = at[1:-2] & at[2:-1] & at[3:]
        if (stays & ~at[:-3] & (change[:-2] >= entry)).any():
            return float(extreme)
    return None


def _time_warnings(time: NDArray[np.float64]) -> list[str]:
    interval = np.diff(time)
    typical = float(np.median(interval))
    gaps = np.flatnonzero(interval > GAP * typical)
    warnings = []
    if gaps.size:
        longest = int(np.argmax(interval))
        warnings.append(
            f"{gaps.size} gap{'s' if gaps.size > 1 else ''} in the times: the longest lasts "
            f"{interval[longest]:.4g} s after row {longest + 1} at {time[longest]:.6g} s, while the usual "
            f"interval is {typical:.4g} s"
        )
    regular = np.delete(interval, gaps)
    jitter = float(regular.std() / regular.mean())
    if jitter > JITTER:
        warnings.append(
            f"uneven sampling: intervals vary by {jitter:.0%}, from {regular.min():.4g} to "
            f"{regular.max():.4g} s; the times are used as they are, so they must be those of the "
            "measurements"
        )
    if typical >= LONG_INTERVAL:
        unit = "ms" if typical < 1e3 * LONG_INTERVAL else "us"
        warnings.append(
            f"samples are {typical:.4g} s apart, which looks like {unit} instead of s; if so, call the "
            f"column 'time [{unit}]'"
        )
    return warnings


def _channel_warnings(recording: Recording, key: str) -> list[str]:
    values = recording.channels[key]
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return [f"channel {key!r}: every sample is missing"]
    note = parse_heading(recording.columns.get(key, key)).note
    warnings = [note] if note else []
    if finite.min() == finite.max():
        warnings.append(f"channel {key!r} is constant at {finite[0]:.6g}: it tells nothing about motion")
    missing = 1.0 - finite.size / values.size
    if missing > MISSING:
        warnings.append(f"channel {key!r}: {missing:.1%} of the samples are missing")
    return warnings


def _sensor_warnings(recording: Recording, key: str, kind: str, assumed_std: float) -> list[str]:
    values = recording.channels[key]
    warnings = []
    if kind == "angle" and key not in recording.units and looks_like_degrees(recording.time, values):
        warnings.append(
            f"channel {key!r} has no unit and is taken as radians, but looks like degrees (from "
            f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g}); if so, call the column '{key} [deg]', or "
            'write unit = "deg" in a file for --channels'
        )
    step = quantisation(values) or 0.0
    limit = clipped(values, step)
    if limit is not None:
        warnings.append(f"channel {key!r} runs into {limit:.6g} and stays there: a clipped sensor or an end stop?")
    decimal = step > 0.0 and abs(np.log10(step) - np.rint(np.log10(step))) < 1e-6
    outliers = _outliers(values)
    if outliers:
        rows = ", ".join(str(row) for row, _ in outliers[:5]) + (", …" if len(outliers) > 5 else "")
        row, deviation = max(outliers, key=lambda outlier: outlier[1])
        warnings.append(
            f"channel {key!r}: {len(outliers)} outlier{'s' if len(outliers) > 1 else ''} in row {rows}; row {row} is "
            f"off its neighbours by {deviation:.3g}. Empty the cells, or fit with a robust loss (--huber 3)"
        )
    for row, deviation in _stray_ends(values):
        warnings.append(
            f"channel {key!r}: row {row} is off its neighbours by {deviation:.3g}; leave it out if the "
            "machine did not jump there"
        )
    coarse = step > (COARSE_DECIMALS if decimal else COARSE_GRID) * (np.nanmax(values) - np.nanmin(values))
    if coarse and assumed_std < ALLOWED_FOR * quantisation_std(step):
        warnings.append(
            f"channel {key!r} lies on a grid of {step:.6g}: its standard deviation is at least "
            f"{quantisation_std(step):.3g}"
        )
    return warnings


def _stray_ends(values: NDArray[np.float64]) -> list[tuple[int, float]]:
    """Rows and deviations of a first or last sample that is far off the line through its two neighbours.

    Loggers start and stop between two states of a machine. Far means ten times what all but one per cent of the
    inner samples show.
    """
    present = np.flatnonzero(np.isfinite(values))
    bend = np.abs(np.diff(values[present], n=2))
    if bend.size < 10:
        return []
    limit = STRAY * float(np.quantile(bend[1:-1], 0.99))
    ends = ((present[0] + 1, bend[0]), (present[-1] + 1, bend[-1]))
    return [(int(row), float(deviation)) for row, deviation in ends if deviation > limit > 0.0]


def _outliers(values: NDArray[np.float64]) -> list[tuple[int, float]]:
    """Rows and deviations of single samples that lie far off the line through their neighbours, which lie on one.

    Seen in the bends d of the signal, s at the outlier and −s/2 beside it; a jump of the signal or of its speed has
    another pattern. Far means ten times what all but a tenth of the samples show.
    """
    present = np.flatnonzero(np.isfinite(values))
    readings = values[present]
    bend = readings[1:-1] - 0.5 * (readings[:-2] + readings[2:])
    if bend.size < 10:
        return []
    size, beside = bend[1:-1], np.stack([bend[:-2], bend[2:]])
    limit = STRAY * float(np.quantile(np.abs(bend), 0.9))
    pattern = np.all((beside / np.where(size == 0.0, np.inf, size) < -0.3), axis=0)
    at = np.flatnonzero(pattern & (np.abs(size) > limit) & (limit > 0.0))
    return [(int(present[i + 2]) + 1, float(abs(size[i]))) for i in at]


def _check_unit(recording: Recording, key: str, kind: str) -> None:
    unit, expected = recording.units.get(key), UNIT_OF_KIND.get(kind)
    if unit is not None and expected is not None and unit != expected:
        column = recording.columns.get(key, key)
        raise RecordingError(
            f"{recording.source or recording.name}: sensor {key!r} measures in {expected}, but column "
            f"{column!r} is in {unit}; name another column for it"
        )
