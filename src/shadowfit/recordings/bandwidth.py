"""Up to which frequency samples hold a motion, and not their noise.

Noise of readings (quantisation, jitter of time stamps) is about equally strong at all frequencies; a motion is not, and
sinks into it at some frequency. An acceleration that is computed from samples is useless beyond: it grows with the
square of the frequency, and so does its noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shadowfit.recordings.filtering import resample, unwrap

# Noise is what is left in this part of all frequencies, the highest; its median is that of squared normal numbers.
HIGHEST = 1.0 / 3.0
# The motion counts where it is this many times stronger than the noise.
ABOVE = 4.0
# Means of the spectrum are taken over this band [Hz], or so many lines of it.
BAND, LINES = 0.5, 3
# Fewer samples than this tell nothing about noise.
FEWEST = 32


def bandwidth(time: ArrayLike, values: ArrayLike, *, wraps: bool = False) -> float:
    """The lowest frequency [Hz] above its strongest at which a signal is no stronger than ``ABOVE`` times its noise.

    Infinite for signals that are nowhere as weak as that (without noise, or too short to tell).

    Args:
        time: times, shape (n,) [s], increasing.
        values: samples, shape (n,); NaN is missing.
        wraps: the samples are angles [rad] that jump by 2π.
    """
    time, values = np.asarray(time, float), np.asarray(values, float)
    known = np.isfinite(values)
    if known.sum() < FEWEST:
        return float("inf")
    signal = unwrap(values) if wraps else values
    grid = np.linspace(time[known][0], time[known][-1], int(known.sum()))
    even = resample(time, signal, grid)
    even = even - np.linspace(even[0], even[-1], len(even))
    power = np.abs(np.fft.rfft(even * np.hanning(len(even)))) ** 2
    frequency = np.fft.rfftfreq(len(even), grid[1] - grid[0])
    noise = float(np.median(power[frequency >= (1.0 - HIGHEST) * frequency[-1]])) / np.log(2.0)
    # Of a recording of hours with few samples the band is wider than all that they hold.
    lines = min(max(round(BAND * (grid[-1] - grid[0])), LINES), len(power))
    smooth = np.convolve(power, np.ones(lines) / lines, "same")
    strongest = int(np.argmax(smooth))
    weak = np.flatnonzero(smooth[strongest:] <= ABOVE * noise)
    return float(frequency[strongest + weak[0]]) if len(weak) else float("inf")
