"""Signals with times of their own on one axis of time: every sample stays where it is, NaN stands in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.records import record

# Times this near to each other, in median intervals, are one time: rounding of time stamps.
SAME = 1e-3


@record(frozen=True)
class Series:
    """Signals that were sampled together."""

    time: Float[np.ndarray, " n"]
    """[s], increasing."""
    columns: Mapping[str, Float[np.ndarray, " n"]]


def merge(parts: Sequence[Series]) -> Series:
    """All signals on the union of their times; NaN where a signal has no sample."""
    if len(parts) == 1:
        return parts[0]
    interval = min(float(np.median(np.diff(part.time))) for part in parts if len(part.time) > 1)
    times = np.sort(np.concatenate([part.time for part in parts]))
    times = times[np.concatenate([[True], np.diff(times) > SAME * interval])]
    columns = {}
    for part in parts:
        place = np.searchsorted(times, part.time + 0.5 * SAME * interval) - 1
        for name, values in part.columns.items():
            columns[name] = np.full(len(times), np.nan)
            columns[name][place] = values
    return Series(times, columns)


def shifted(time: Float[np.ndarray, " n"], columns: Mapping[str, np.ndarray], delays: Mapping[str, float]) -> Series:
    """Signals that came late, by ``delays`` [s], at the times at which they happened."""
    groups: dict[float, dict[str, np.ndarray]] = {}
    for name, values in columns.items():
        groups.setdefault(delays.get(name, 0.0), {})[name] = values
    return merge([Series(time - delay, group) for delay, group in groups.items()])
