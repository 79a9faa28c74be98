"""Samples that were read twice: a logger that asks more often than its source has something new to say.

Such a logger writes the source's last message again, all channels to the last digit, under a new time. The motion seems
to stand still for a sample, and jumps (or, where the source is slower than the logger, goes on late: every message
between two repeats has a time that is wrong by a little more, up to a whole interval). Three explanations are compared:

    as it is          the readings were those
    left out          messages were lost: the others are in time
    source's clock    the messages are those of an even clock, t_n = a + b n, read later by less than an interval

by how smooth the readings are in them around the repeats. A motion is smooth from sample to sample: with c the weights
of the polynomial through the four neighbours of a sample, at their times, ``(x_k − Σ c_i x_i)/√(1 + Σ c_i²)`` has the
standard deviation of white noise, and far more where times are wrong. Readings of an encoder at rest repeat as well;
nothing becomes smoother if those are left out.

A machine that rests repeats its readings by right, and how it stops and starts would be hidden in the gap. What tells
both apart is that no machine stands still between two steps in the same direction, far longer than noise and curvature
make them: so only repeats are looked at that come in runs no longer than the longest one between two such steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.recordings.recording import MINIMUM_SAMPLES, Recording

# Fewer repeats are not worth a change.
LEAST_REPEATS = 3
# How much smoother readings must become, in the product over all channels: noisy ones do not become rougher by it.
SMOOTHER = 5.0
# Samples on each side that tell how smooth a sample is.
REACH = 2


def without_repeats(recording: Recording) -> tuple[Recording, tuple[str, ...]]:
    """The recording without samples that were read twice, at the source's times, and a sentence about it.

    The recording itself, and nothing to say, where its readings are not far smoother so.
    """
    repeated = _repeated(recording)
    if repeated.sum() < LEAST_REPEATS:
        return recording, ()
    repeated = _without_rests(recording, repeated)
    count = int(repeated.sum())
    kept = ~repeated
    if count < LEAST_REPEATS or kept.sum() < max(MINIMUM_SAMPLES, 2 * REACH + 1):
        return recording, ()
    times = {"left out": recording.time[kept]}
    clock = _even_clock(recording.time[kept], float(np.median(np.diff(recording.time))))
    if clock is not None:
        times["source's clock"] = clock
    channels = {key: values[kept] for key, values in recording.channels.items()}
    before = _roughness(recording.time, recording.channels, repeated)
    # Samples on both sides of a repeat.
    beside = np.diff(np.cumsum(repeated)[kept], prepend=0) > 0
    gain = {key: _gain(before, _roughness(clock, channels, beside)) for key, clock in times.items()}
    best = max(gain, key=lambda key: gain[key])
    if gain[best] < np.log(SMOOTHER):
        return recording, ()
    sentence = f"{count} of {len(repeated)} samples repeat the one before in all channels and were left out"
    if best == "source's clock":
        interval = (times[best][-1] - times[best][0]) / (len(times[best]) - 1)
        sentence += (
            f": they were written more often than they were measured. The others got the times of an even clock of "
            f"{1e3 * interval:.5g} ms, in which the motion is smooth"
        )
    else:
        sentence += ": without them the motion is smooth"
    return dataclasses.replace(recording, time=times[best], channels=channels), (
        f'{sentence} (repeats = "keep" in a table of channels leaves it as it was)',
    )


def _repeated(recording: Recording) -> Bool[np.ndarray, " n"]:
    """Samples that equal the one before in all channels that vary."""
    same = np.ones(len(recording) - 1, bool)
    moving = False
    for values in recording.channels.values():
        equal = values[1:] == values[:-1]
        if equal.all():
            continue
        moving = True
        same &= equal
        if not same.any():
            break
    return np.concatenate([[False], same & moving])


def _without_rests(recording: Recording, repeated: Bool[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Repeats in runs no longer than the longest one that lies between two steps in the same direction."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], repeated, [False]]).astype(int)))
    first, after = edges[::2], edges[1::2]
    fresh = np.flatnonzero(~repeated)
    place = np.searchsorted(fresh, first)  # of the first sample behind a run, among those that are no repeats
    inside = (place > 1) & (place < len(fresh))
    place = place[inside]
    odds = np.zeros(len(place))
    for values in recording.channels.values():
        new = values[fresh]
        steps, rough = np.diff(new), np.diff(new, 2) ** 2
        sizes = np.abs(steps[steps != 0.0])
        if np.isfinite(sizes).any() and np.isfinite(rough).any():
            # Noise and curvature make steps that mean nothing, and so does the rounding of an encoder.
            scale = np.nanmean(rough) + np.nanmin(sizes) ** 2
            odds += np.nan_to_num(steps[place - 2] * steps[place - 1] / scale)
    longest = max((after - first)[inside][odds > SMOOTHER], default=0)
    kept = repeated.copy()
    for start, stop in zip(first, after, strict=True):
        if stop - start > longest:
            kept[start:stop] = False
    return kept


def _even_clock(time: Float[np.ndarray, " n"], interval: float) -> Float[np.ndarray, " n"] | None:
    """Times of an even clock of which these are readings, each late by less than an interval; None if there is none."""
    number = np.arange(len(time))
    slope, _ = np.polyfit(number, time, 1)
    late = time - slope * number
    if np.ptp(late) > 1.5 * interval:
        return None
    return slope * number + float(np.median(late))


def _roughness(
    time: np.ndarray, channels: Mapping[str, np.ndarray], near: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " c"]:
    """Root mean square of what channels lack of smoothness at samples within reach of those that are marked."""
    offsets = [i for i in range(-REACH, REACH + 1) if i != 0]
    marked = np.flatnonzero(near)
    at = np.unique(np.concatenate([marked + i for i in range(-REACH, REACH + 1)]))
    at = at[(at >= REACH) & (at < len(time) - REACH)]
    apart = np.stack([time[at + i] - time[at] for i in offsets])
    # Weights of Lagrange's polynomial at zero.
    weights = np.stack(
        [
            np.prod([-apart[j] / (apart[i] - apart[j]) for j in range(len(offsets)) if j != i], axis=0)
            for i in range(len(offsets))
        ]
    )
    size = np.sqrt(1.0 + np.sum(weights**2, axis=0))
    errors = []
    for values in channels.values():
        error = (values[at] - sum(w * values[at + i] for w, i in zip(weights, offsets, strict=True))) / size
        error = error[np.isfinite(error)]
        errors.append(np.sqrt(np.mean(error**2)) if error.size else 0.0)
    return np.array(errors)


def _gain(before: Float[np.ndarray, " c"], after: Float[np.ndarray, " c"]) -> float:
    """Logarithm of how much smoother all channels have become; those that are flat have no say."""
    moving = (before > 0.0) & (after > 0.0)
    return float(np.sum(np.log(before[moving] / after[moving])))
