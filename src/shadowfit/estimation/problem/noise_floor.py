"""How much noise readings can have at most, by themselves: what is left of them in high differences.

A motion is smooth from sample to sample and noise is not. The m-th difference of white noise of standard deviation σ
has the variance ``σ² (2m choose m)``, and that of a smooth motion falls with m, so that the least of

    rms(Δ^m y) / √(2m choose m),        m = 2, 3, …

bounds σ from above, without a model. Steps of an encoder stay: a reading that stands still is known to a step's
``1/√12`` only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.track import Track

# Orders of the differences. Beyond, rounding of a motion far from zero counts.
ORDERS = range(2, 7)
# Fewer samples show nothing.
LEAST_SAMPLES = 50


def noise_floor(tracks: Sequence[Track], sensor: int) -> float:
    """Largest standard deviation of a sensor's noise by its readings alone, in its unit; infinite where unknown."""
    return max((_floor(series) for track in tracks for series in _series(track, sensor)), default=np.inf)


def _series(track: Track, sensor: int) -> list[Float[np.ndarray, " n"]]:
    """The readings of each component, in order."""
    readings = track.measured[sensor][track.present[sensor]]
    # A sensor that was not recorded has no readings, and still a number of components.
    return list(readings.reshape(len(readings), math.prod(readings.shape[1:])).T)


def _floor(readings: Float[np.ndarray, " n"]) -> float:
    if len(readings) < LEAST_SAMPLES:
        return np.inf
    bounds = [np.sqrt(np.mean(np.diff(readings, m) ** 2) / math.comb(2 * m, m)) for m in ORDERS]
    steps = np.abs(np.diff(readings))
    if np.all(steps > 0.0):
        return float(min(bounds))
    # Readings that repeat are those of an encoder; moving ones show its steps in their differences.
    return max(float(min(bounds)), float(np.min(steps[steps > 0.0], initial=np.inf)) / np.sqrt(12.0))
