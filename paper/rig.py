"""Recordings of a real rig in place of a study's twins.

A folder holds them under the names of the twins: ``pendulum-0.csv``, ``pendulum-1.csv``, … and ``furuta-release.csv``,
``furuta-pulse.csv``, ``furuta-swingup.csv``, with the columns of the built-in models (``theta``; ``theta1``,
``theta2``, ``u``). A model file describes the rig where it differs from the paper's; the pendulum's has Stribeck
friction, of which the simpler models are special cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paper.paper_twins import SAMPLE_INTERVAL
from shadowfit.errors import ShadowfitError
from shadowfit.evaluation.columns import write_csv
from shadowfit.recordings import Recording, read_recording, resample
from shadowfit.records import record
from shadowfit.sweeps.cases import Case, digest

TASK = f"{__name__}:take_recording"
STUDIES = ("pendulum", "furuta")
"""What can run without a truth."""


class RigError(ShadowfitError):
    """A folder that does not hold the recordings of a study."""


@record(frozen=True)
class Rig:
    """Where the recordings are, and the rig's model file (None: the built-in one)."""

    folder: Path
    model: Path | None = None

    def case(self, twin: Case) -> Case:
        """The case that takes a recording in place of making the twin."""
        file = self.folder / Path(twin.arguments["file"]).name
        if not file.is_file():
            raise RigError(f"{file} is not there; the study needs a recording of this name")
        arguments = {"source": str(file.resolve()), "digest": digest(file), "file": twin.arguments["file"]}
        return Case(twin.name, TASK, arguments, "recordings")

    def series(self) -> int:
        """Recordings of the pendulum, counted from ``pendulum-0.csv`` on."""
        count = 0
        while (self.folder / f"pendulum-{count}.csv").is_file():
            count += 1
        return count


def take_recording(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write a recording as the twins are written, at their sampling rate."""
    recording = read_recording(Path(arguments["source"]))
    grid = np.arange(round(recording.duration / SAMPLE_INTERVAL) + 1) * SAMPLE_INTERVAL
    columns = {"time [s]": grid}
    for name, values in recording.channels.items():
        if name.startswith("theta"):
            resampled = resample(recording.time, values, recording.time[0] + grid, wraps=True, kind="pchip")
            columns[f"{name} [rad]"] = resampled
        else:
            columns[f"{name} [V]"] = _held(recording, values, recording.time[0] + grid)
    file = folder / arguments["file"]
    write_csv(file, columns)
    return {"file": arguments["file"], "digest": digest(file)}


def _held(recording: Recording, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """An input, which stays as it is from one sample to the next."""
    finite = np.isfinite(values)
    index = np.searchsorted(recording.time[finite], at + 1e-9, side="right") - 1
    return values[finite][np.clip(index, 0, None)]
