"""How long a simulation from the inputs alone stays with the machine: the ``rollout`` of a result's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.notices import Notice
from shadowfit.evaluation.series import SensorSeries

# Errors of a simulation, as parts of the spread of the readings: up to here it is with them, from there it has left.
WITH, ASTRAY = 0.05, 0.2


def simulations(estimate: Estimate, rolled_out: Sequence[Mapping[str, SensorSeries]]) -> Iterator[Notice]:
    """How long simulations of the fitted model stay with the machine, where they do not to the end.

    Of a machine that is led along a path nobody asks that: a controller answered to every error.

    Args:
        estimate: what a fit found.
        rolled_out: for each recording, readings of a simulation from the first state; without sensors if there is none.
    """
    choice = estimate.noise_choice
    if choice is None or choice.led:
        return
    stays: dict[str, tuple[float, float]] = {}
    for track, run in zip(estimate.problem.tracks, rolled_out, strict=True):
        time = track.recording.time
        for name, series in run.items():
            left = leaves_at(time, series)
            if left is not None:
                stays[name] = min(stays.get(name, (np.inf, np.inf)), (left - time[0], time[-1] - time[0]))
    if not stays:
        return
    parts = [f"{name} for {left:.3g} s of {whole:.3g} s" for name, (left, whole) in stays.items()]
    yield Notice(
        "info",
        "a simulation from the estimated start and the inputs alone (`rollout` in the tables) leaves the motion: it "
        f"stays within {100.0 * WITH:.0f} % of the spread of {', of '.join(parts)}",
        "Believe simulations for that long. An unstable motion (a pendulum upright) leaves any model; else something "
        "acts slowly that this one lacks (a tilt, a constant force): `shadowfit advise` names candidates",
    )


def leaves_at(time: np.ndarray, series: SensorSeries) -> float | None:
    """Time [s] of the first sample that a simulation misses by more than ``WITH``, if it goes astray later on.

    A simulation that ended early has left where it ended.
    """
    if series.residual.shape[1] != series.measured.shape[1]:
        return None  # an orientation: its readings and its errors are different things
    known = np.isfinite(series.measured).all(axis=1)
    size = series.spread()
    if size == 0.0:
        return None
    error = np.max(np.abs(series.residual[known]), axis=1, initial=0.0) / size
    error[np.isnan(error)] = np.inf
    return float(time[known][np.argmax(error > WITH)]) if np.any(error > ASTRAY) else None
