"""The last state of a fit that has not ended yet, for the case that it never does: a kill, a power failure.

``unfinished.json`` stands in the result's folder from the second iteration on and disappears when there is a result.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import WriteError
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.result import estimated_trajectory
from shadowfit.estimation.solve.levenberg_marquardt import Iteration
from shadowfit.evaluation.html_page import rounded
from shadowfit.evaluation.series import compare
from shadowfit.models.atomic import write_text

UNFINISHED = "unfinished.json"
SCHEMA = "shadowfit-unfinished/1"
# Seconds between two of them, and the part of a fit's time that they may take.
INTERVAL, SHARE = 2.0, 0.1
# Curves of residuals, and points of each: to be looked at while the fit goes on.
MOST_CURVES, MOST_POINTS = 12, 400


class Checkpoint:
    """A function for ``fit(progress=...)`` that keeps the parameters and the log on disk."""

    def __init__(self, folder: str | os.PathLike[str], interval: float = INTERVAL) -> None:
        self._path = Path(folder) / UNFINISHED
        self._interval = interval
        self._log: list[Iteration] = []
        self._next = -math.inf

    def __call__(self, iteration: Iteration) -> None:
        self._log.append(iteration.line)
        # Not the clock of the day, which may jump.
        began = time.monotonic()
        if began < self._next:
            return
        contents = {**_contents(self._log), "residuals": [] if iteration.where is None else residuals(*iteration.where)}
        with contextlib.suppress(WriteError):  # a full disk does not stop the fit
            _write(self._path, contents)
        ended = time.monotonic()
        self._next = ended + self._interval * max(1.0, (ended - began) / (SHARE * INTERVAL))


def write_last_values(folder: str | os.PathLike[str], log: Sequence[Iteration]) -> None:
    """Keep the parameters and the course of a fit that has ended and whose result cannot be written.

    Raises:
        WriteError: this small file cannot be written either.
    """
    _write(Path(folder) / UNFINISHED, {**_contents(log), "residuals": []})


def residuals(problem: Problem, point: Point) -> list[dict[str, Any]]:
    """What is left of the sensors' readings at a point, over time, in stated standard deviations: a few curves."""
    curves: list[dict[str, Any]] = []
    for index, track in enumerate(problem.tracks):
        if len(curves) >= MOST_CURVES:
            break
        mechanism = problem.given.write(problem.parameters.named(point.values, index))
        trajectory = estimated_trajectory(problem, point, mechanism, index)
        series = compare(mechanism, track.recording, trajectory.time, trajectory.readings)
        where = "" if len(problem.tracks) == 1 else f" in {track.recording.name}"
        for name, readings in series.items():
            worst = np.max(np.abs(readings.residual), axis=1) * np.sign(readings.residual[:, 0])
            when, left = largest_parts(track.recording.time, worst / float(mechanism.sensors[name].std))
            curves.append({"name": f"{name}{where}", "time": rounded(when), "left": rounded(left)})
    return curves[:MOST_CURVES]


def largest_parts(
    time: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """A curve in few points: the value of largest size in each stretch, so that no outlier hides between two."""
    stride = max(-(-len(values) // MOST_POINTS), 1)
    filled = np.concatenate([values, np.full(-len(values) % stride, np.nan)]).reshape(-1, stride)
    sizes = np.where(np.isfinite(filled), np.abs(filled), -1.0)
    return time[::stride], filled[np.arange(len(filled)), np.argmax(sizes, axis=1)]


def _write(path: Path, contents: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(contents, allow_nan=False) + "\n")


def _contents(log: Sequence[Iteration]) -> dict[str, Any]:
    """Parameters of the last iteration, and the course of the fit so far."""
    fields = ("number", "cost", "dynamics", "observation", "step", "seconds")
    course = [{key: _number(getattr(entry, key)) for key in fields} for entry in log]
    return {
        "schema": SCHEMA,
        "parameters": {name: _number(value) for name, value in log[-1].parameters.items()},
        "log": course,
        "traces": {name: [_number(entry.parameters[name]) for entry in log] for name in log[-1].parameters},
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
