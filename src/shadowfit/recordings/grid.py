"""The grid of a quantised channel: an encoder of N counts per turn reads multiples of 2π/N.

    x_i = a + s K_i + rounding of the file,   K_i integer

Rounding to a grid of step s adds an error with standard deviation s/√12 where the signal moves over many
steps.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_OFF_GRID = 0.05  # largest deviation from the grid [steps]; text files round encoder values once more
_FEW_LEVELS = 10  # below so many levels chance finds a grid, unless they repeat often and lie close together


def quantisation(values: ArrayLike) -> float | None:
    """Step of the grid that the samples lie on, in the channel's unit, or None if they lie on none.

    Args:
        values: samples, shape (n,); NaN is ignored. The grid may have an offset. Isolated samples (up to 5 %
            of the levels) may lie off it.
    """
    samples = np.asarray(values, dtype=np.float64)
    samples = samples[np.isfinite(samples)]
    # A channel is asked for its grid whenever a problem is made of its recording, to look at it and to fit it.
    name = hashlib.blake2b(samples.tobytes(), digest_size=16).digest()
    if name not in _known:
        _known[name] = _found(samples)
    return _known[name]


_known: dict[bytes, float | None] = {}
"""Steps of the channels of this process, by a fingerprint of their samples."""


def _found(samples: NDArray[np.float64]) -> float | None:
    """The step for samples that are all numbers."""
    levels = np.unique(samples)
    if levels.size < 4 or (levels.size < _FEW_LEVELS and samples.size < 4 * levels.size):
        return None
    if not levels[-1] - levels[0] > 1e-100:  # below, quotients overflow
        return None
    gaps = np.diff(levels)
    gaps = gaps[gaps > 1e-9 * (levels[-1] - levels[0])]
    starts = np.quantile(gaps, (0.5, 0.25, 0.1, 0.02, 0.0), method="lower")
    # A gap between neighbouring levels is a small multiple of the step; the coarsest grid that fits is meant.
    for start in sorted({gap / divisor for gap in starts for divisor in (1, 2, 3)}, reverse=True):
        step = _fit_grid(levels, float(start))
        if step is not None:
            return step
    return None


def quantisation_std(step: float) -> float:
    """Standard deviation of rounding to a grid, s/√12, in the unit of the step."""
    return step / math.sqrt(12.0)


def _fit_grid(levels: NDArray[np.float64], start: float) -> float | None:
    """Step near `start` of a grid that holds the sorted levels, by least squares; None if there is none."""
    gaps = np.diff(levels)
    step = start
    # Small multiples first: they are counted right even with a rough step, and make it precise enough to
    # count large ones.
    for reach in (4.0, 40.0, np.inf):
        near = gaps < reach * step
        multiples = np.rint(gaps[near] / step)
        if not multiples.any():
            return None
        step = float(np.sum(gaps[near] * multiples) / np.sum(multiples**2))
    index = np.concatenate(([0.0], np.cumsum(np.rint(gaps / step))))
    centred = index - index.mean()
    step = float(np.sum(centred * levels) / np.sum(centred**2))
    offset = levels - step * index
    on_grid = np.abs(offset - np.median(offset)) < _OFF_GRID * step
    if on_grid.mean() < 0.95 or (levels.size < _FEW_LEVELS and index[-1] >= 3 * levels.size):
        return None
    return step * float(np.gcd.reduce(np.diff(index[on_grid]).astype(np.int64)))
