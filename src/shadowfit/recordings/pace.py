"""How fast a motion is: the time after which it has half forgotten where it was.

Mean squares of differences over a lag grow from twice the noise's variance to twice the variance of the signal:

    D(lag) = mean |x(t + lag) − x(t)|² = 2 s² + 2 σ² (1 − ρ(lag))

The pace is the lag at which the correlation ρ has fallen to one half. That of a sine is a sixth of its period. It has
no scale of its own: a signal in other units, or played slower, has the same pace or one that is slower by as much. A
piece of a motion that does not come back (a fall, a part of a swing) has none: its pace would be that of the piece.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# Fewer samples than this do not show a motion, and less than a swing, or six times the pace, does not show how fast.
FEWEST, SWING = 16, 6
# Lags that are tried grow by this factor, and so many differences are enough for each.
FINER, ENOUGH = 1.2, 20_000


def pace(values: ArrayLike, interval: float, *, angle: bool = False) -> float:
    """Time [s] after which a signal has half forgotten its value.

    Infinite where it is no stronger than its noise, or does not come back.

    Args:
        values: samples at equal intervals, shape (n,); NaN is missing.
        interval: time between them [s].
        angle: the samples are angles [rad]. Whole turns do not count, as their points on a circle are compared.
    """
    signal = np.asarray(values, float)
    known = np.isfinite(signal)
    if np.count_nonzero(known) < FEWEST:
        return float("inf")
    signal = np.exp(1j * signal) if angle else signal
    variance = float(np.var(signal[known]))
    # Of a smooth motion D grows with the square of the lag: what is left for none is the noise's.
    first, second = _square(signal, 1), _square(signal, 2)
    noise = max(4.0 * first - second, 0.0) / 6.0
    if not variance > 2.0 * noise:
        return float("inf")
    before, reached = 0.0, 0.0
    for lag in _lags(len(signal)):
        share = (0.5 * _square(signal, lag) - noise) / (variance - noise)
        if share >= 0.5:
            return interval * (before + (lag - before) * (0.5 - reached) / (share - reached))
        before, reached = lag, max(share, 0.0)
    return float("inf")


def _lags(count: int) -> list[int]:
    """Whole numbers up to that part of the length, each once."""
    longest = count // SWING
    grown = FINER ** np.arange(int(np.log(longest) / np.log(FINER)) + 2)
    return [int(lag) for lag in np.unique(np.minimum(np.round(grown), longest))]


def _square(signal: np.ndarray, lag: int) -> float:
    """Mean square of the differences over a lag."""
    stride = max(len(signal) // ENOUGH, 1)
    squares = np.abs(signal[lag::stride] - signal[:-lag:stride]) ** 2
    known = np.isfinite(squares)
    return float(np.mean(squares[known])) if np.any(known) else 0.0
