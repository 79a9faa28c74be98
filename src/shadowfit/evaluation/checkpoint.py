"""The last state of a fit that has not ended yet, for the case that it never does: a kill, a power failure.

``unfinished.json`` stands in the result's folder from the second iteration on and disappears with the result.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shadowfit.errors import WriteError
from shadowfit.estimation.solve.levenberg_marquardt import Iteration
from shadowfit.models.atomic import write_text

UNFINISHED = "unfinished.json"
SCHEMA = "shadowfit-unfinished/1"
# Seconds between two of them: writing one takes some milliseconds.
INTERVAL = 2.0


class Checkpoint:
    """A function for ``fit(progress=...)`` that keeps the parameters and the log on disk."""

    def __init__(self, folder: str | os.PathLike[str], interval: float = INTERVAL) -> None:
        self._path = Path(folder) / UNFINISHED
        self._interval = interval
        self._log: list[Iteration] = []
        self._written = -math.inf

    def __call__(self, iteration: Iteration) -> None:
        self._log.append(iteration)
        # Not the clock of the day, which may jump.
        now = time.monotonic()
        if now - self._written >= self._interval:
            self._written = now
            with contextlib.suppress(WriteError):  # a full disk does not stop the fit
                write_text(self._path, json.dumps(_contents(self._log), indent=1, allow_nan=False) + "\n")


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
