"""Smoothing, resampling and averaging of recorded signals, on times that need be neither even nor complete.

Only NumPy is used: importing SciPy's signal and interpolation packages takes about a second, and the filter is a
product in the frequency domain anyway.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowfit.errors import RecordingError
from shadowfit.held_signals import Hold, held, integrated_twice

Vector = NDArray[np.float64]

_LONGEST_GRID = 50  # even grids hold at most so many points per sample; beyond, gaps dominate
_EVEN = 1e-6  # largest deviation of even times [intervals]
_SPLINE_SWEEPS = 50  # each halves the error of the slopes


def lowpass(
    time: ArrayLike, values: ArrayLike, cutoff_hz: float = 10.0, order: int = 2, *, wraps: bool = False
) -> Vector:
    """Signal at the same times, shape (n,), after a Butterworth low-pass run forwards and backwards.

    That leaves no shift of phase. The gain is that of the digital (bilinear) filter, squared,

        |H(f)|² = 1 / (1 + (tan(π f/f_s) / tan(π f_c/f_s))^(2 order)),

    1 at rest and 1/2 at the cut-off f_c. The ends are continued by point reflection, which keeps straight
    lines straight and the first and last value as they are; within a period 1/f_c of the ends the error is up
    to |ẍ|/(3 (2π f_c)²). Uneven or missing samples are first brought to an even grid of the median interval
    1/f_s by monotone interpolation; before the first and after the last present sample the signal is held.

    A cut-off at or above the Nyquist frequency f_s/2 leaves the signal as it is (missing samples filled): the
    samples hold nothing that the filter would remove.

    Args:
        time: times, shape (n,) [s], increasing.
        values: samples, shape (n,); NaN is missing.
        cutoff_hz: cut-off frequency f_c [Hz].
        order: order of the Butterworth filter.
        wraps: the samples are angles [rad] that jump by 2π; the result is continuous.
    """
    if not cutoff_hz > 0.0 or order < 1:
        raise RecordingError(
            f"a low-pass needs a cut-off above 0 Hz and an order of 1 or more, not {cutoff_hz}, {order}"
        )
    time = np.asarray(time, dtype=np.float64)
    known_time, known = _present(time, values, wraps)
    if len(known) < 2:
        return np.full(len(time), known[0])
    grid = _even_grid(known_time)
    interval = grid[1] - grid[0]
    if len(grid) != len(known) or np.abs(grid - known_time).max() > _EVEN * interval:
        known = resample(known_time, known, grid, kind="pchip")
    smooth = _butterworth_squared(known, cutoff_hz * interval, order)
    is_grid = len(grid) == len(time) and np.abs(grid - time).max() <= _EVEN * interval
    return smooth if is_grid else resample(grid, smooth, time)


def resample(
    time: ArrayLike,
    values: ArrayLike,
    new_time: ArrayLike,
    *,
    kind: Literal["cubic", "pchip"] = "cubic",
    wraps: bool = False,
) -> Vector:
    """Signal at other times, shape (m,): piecewise cubic between the samples that are present.

    `cubic` is the spline with continuous curvature (fourth order; for smooth signals), `pchip` keeps monotone
    pieces monotone (never overshoots; for raw ones). Outside of the samples the signal is held at its end
    values, never extrapolated.

    Args:
        time: times, shape (n,) [s], increasing.
        values: samples, shape (n,); NaN is missing.
        new_time: times wanted, shape (m,) [s].
        kind: the rule for the slopes at the samples.
        wraps: the samples are angles [rad] that jump by 2π; the result is continuous.
    """
    known_time, known = _present(np.asarray(time, dtype=np.float64), values, wraps)
    inside = np.clip(np.asarray(new_time, dtype=np.float64), known_time[0], known_time[-1])
    if len(known) < 2:
        return np.full(inside.shape, known[0])
    slopes = {"cubic": _spline_slopes, "pchip": _monotone_slopes}
    if kind not in slopes:
        raise RecordingError(f"unknown kind of interpolation {kind!r}; there are: cubic, pchip")
    return _hermite(known_time, known, slopes[kind](known_time, known), inside)


def unwrap(values: ArrayLike) -> Vector:
    """Angles without jumps of 2π [rad], shape (n,); missing samples stay missing and are bridged."""
    values = np.array(values, dtype=np.float64)
    finite = np.isfinite(values)
    values[finite] = np.unwrap(values[finite])
    return values


def held_input_average(
    time: ArrayLike,
    values: ArrayLike,
    start: ArrayLike,
    stop: ArrayLike,
    hold: Hold = "zero",
    delay: float = 0.0,
) -> Vector:
    """Mean of a held, delayed input over each interval, exactly, shape (m,).

        ū_i = 1/(b_i − a_i) ∫_{a_i}^{b_i} u(t − d) dt = (U(b_i − d) − U(a_i − d)) / (b_i − a_i)

    with the antiderivative U of the held signal (:func:`shadowfit.held_signals.held`). Missing samples are skipped, so
    that the hold bridges them. An interval of length zero gives u itself (at a jump the later value).

    Args:
        time: times t_k, shape (n,) [s], increasing.
        values: samples u_k, shape (n,); NaN is missing.
        start: starts a_i, shape (m,) [s].
        stop: ends b_i ≥ a_i, shape (m,) [s].
        hold: how the signal goes on between samples.
        delay: d, time from the sample to its effect [s].
    """
    time, values = _present(np.asarray(time, dtype=np.float64), values, wraps=False)
    start, stop = np.asarray(start, dtype=np.float64), np.asarray(stop, dtype=np.float64)
    if hold not in ("zero", "linear"):
        raise RecordingError(f"unknown hold {hold!r}; there are: zero, linear")
    if not (stop >= start).all():
        raise RecordingError("intervals to average over must not end before they start")
    (value, lower), (_, upper) = (held(np, time, values, ends - delay, hold) for ends in (start, stop))
    length = stop - start
    return np.where(length > 0.0, (upper - lower) / np.where(length > 0.0, length, 1.0), value)


def held_input_hat(
    time: ArrayLike, values: ArrayLike, centre: ArrayLike, reach: float, hold: Hold = "zero", delay: float = 0.0
) -> Vector:
    """Mean of a held, delayed input around each time with the weights of a hat, exactly, shape (m,).

        û_i = 1/h ∫ (1 − |t − c_i|/h) u(t − d) dt = (W(c_i + h − d) − 2 W(c_i − d) + W(c_i − h − d)) / h²

    over ``|t − c_i| < h``, with the second antiderivative W of the held signal. That is what an acceleration u does to
    the second difference of a motion over steps h. Arguments are as for :func:`held_input_average`; ``centre``: c_i
    [s], ``reach``: h > 0 [s].
    """
    time, values = _present(np.asarray(time, dtype=np.float64), values, wraps=False)
    # About its mean the signal's second integral stays small, and loses no digits in the difference.
    middle = float(np.mean(values))
    late = np.asarray(centre, dtype=np.float64) - delay
    around = np.concatenate([late - reach, late, late + reach])
    before, now, after = np.split(integrated_twice(time, values - middle, around, hold), 3)
    return np.asarray(middle + (after - 2.0 * now + before) / reach**2)


def _present(time: Vector, values: ArrayLike, wraps: bool) -> tuple[Vector, Vector]:
    """Times and values of the samples that are not missing."""
    samples = np.asarray(values, dtype=np.float64)
    if samples.shape != time.shape or time.ndim != 1:
        raise RecordingError(f"a signal needs one value per time, not {samples.shape} for {time.shape}")
    finite = np.isfinite(samples)
    if not finite.any():
        raise RecordingError("every sample of the signal is missing")
    known = samples[finite]
    return time[finite], np.unwrap(known) if wraps else known


def _even_grid(time: Vector) -> Vector:
    """Even times from the first to the last, at about the median interval."""
    span = time[-1] - time[0]
    points = span / np.median(np.diff(time))
    if not points <= _LONGEST_GRID * len(time):
        raise RecordingError(
            f"gaps fill most of the time: {len(time)} samples, usually {np.median(np.diff(time)):.3g} s "
            f"apart, over {span:.3g} s; split the recording at its gaps"
        )
    return np.linspace(time[0], time[-1], max(round(points), 1) + 1)


def _butterworth_squared(values: Vector, cutoff: float, order: int) -> Vector:
    """Even samples, shape (n,), times |H|² in the frequency domain; cut-off in cycles per sample.

    Point reflection at both ends, again and again, makes the signal a straight line through its end values
    plus a function of period 2 (n − 1): the line passes the filter as it is, and one period of the rest is
    filtered exactly.
    """
    if cutoff >= 0.5:
        return values
    line = np.linspace(values[0], values[-1], len(values))
    rest = values - line
    period = np.concatenate((rest, -rest[-2:0:-1]))
    frequency = np.fft.rfftfreq(len(period))
    # Written with sine and cosine, because the tangent has a pole at the Nyquist frequency.
    low = (np.sin(np.pi * cutoff) * np.cos(np.pi * frequency)) ** (2 * order)
    high = (np.cos(np.pi * cutoff) * np.sin(np.pi * frequency)) ** (2 * order)
    return line + np.fft.irfft(low / (low + high) * np.fft.rfft(period), len(period))[: len(values)]


def _hermite(time: Vector, values: Vector, slopes: Vector, new_time: Vector) -> Vector:
    """Cubic with given values and slopes at the samples, shape (m,)."""
    k = np.clip(np.searchsorted(time, new_time, side="right") - 1, 0, len(time) - 2)
    interval = time[k + 1] - time[k]
    s = (new_time - time[k]) / interval
    rise = values[k + 1] - values[k]
    left, right = slopes[k] * interval, slopes[k + 1] * interval
    return values[k] + s * (left + s * ((3.0 * rise - 2.0 * left - right) + s * (left + right - 2.0 * rise)))


def _monotone_slopes(time: Vector, values: Vector) -> Vector:
    """Slopes of Fritsch and Butland: zero at extremes, else a weighted harmonic mean of both secants."""
    interval, secant = np.diff(time), np.diff(values) / np.diff(time)
    slopes = np.empty_like(values)
    before, after = secant[:-1], secant[1:]
    wide, narrow = 2.0 * interval[1:] + interval[:-1], interval[1:] + 2.0 * interval[:-1]
    same = before * after > 0.0
    denominator = np.where(same, wide * after + narrow * before, 1.0)
    slopes[1:-1] = np.where(same, (wide + narrow) * before * after / denominator, 0.0)
    slopes[0], slopes[-1] = secant[0], secant[-1]
    return slopes


def _spline_slopes(time: Vector, values: Vector) -> Vector:
    """Slopes m of the cubic spline with continuous curvature,

        Δ_k m_{k−1} + 2 (Δ_{k−1} + Δ_k) m_k + Δ_{k−1} m_{k+1} = 3 (Δ_k σ_{k−1} + Δ_{k−1} σ_k),

    with secants σ, and at both ends those of the cubic through the four outermost samples. Off the diagonal
    the coefficients add up to half of it, so that each sweep of Jacobi's iteration halves the error.
    """
    interval, secant = np.diff(time), np.diff(values) / np.diff(time)
    slopes = np.gradient(values, time)
    slopes[0], slopes[-1] = _end_slope(time[:4], values[:4]), _end_slope(time[:-5:-1], values[:-5:-1])
    if len(values) < 3:
        return slopes
    before = interval[1:] / (interval[1:] + interval[:-1])
    after = 1.0 - before
    target = 1.5 * (before * secant[:-1] + after * secant[1:])
    for _ in range(_SPLINE_SWEEPS):
        slopes[1:-1] = target - 0.5 * (before * slopes[:-2] + after * slopes[2:])
    return slopes


def _end_slope(time: Vector, values: Vector) -> float:
    """Slope at the first of up to four samples of the polynomial through them all."""
    s = (time - time[0]) / (time[-1] - time[0])
    return float(np.linalg.solve(np.vander(s, increasing=True), values)[1] / (time[-1] - time[0]))
