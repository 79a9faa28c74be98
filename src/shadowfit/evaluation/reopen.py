"""A saved result as a fit again: its folder holds the samples, the model and the settings."""

from __future__ import annotations

import numpy as np

from shadowfit.estimation import Estimate, Free, fit
from shadowfit.estimation.solve.levenberg_marquardt import Progress
from shadowfit.evaluation.store import SavedResult
from shadowfit.evaluation.validation import given_options
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording


def recordings_of(saved: SavedResult) -> list[Recording]:
    """The samples that a result was fitted to."""
    mechanism = saved.mechanism()
    return [_recording(mechanism, name, table) for name, table in saved.tables.items()]


def _recording(mechanism: Mechanism, name: str, table: dict[str, np.ndarray]) -> Recording:
    headings = {
        channel: f"{channel}.measured [{sensor.unit()}]"
        for key, sensor in mechanism.sensors.items()
        for channel in sensor.channels(key)
    }
    headings |= {key: f"{key} [{part.unit}]" for key, part in mechanism.inputs.items()}
    channels = {key: table[heading] for key, heading in headings.items() if not np.all(np.isnan(table[heading]))}
    return Recording(table["time [s]"], channels, name=name)


def refitted(saved: SavedResult, progress: Progress | None = None) -> Estimate:
    """The fit of a result once more, from the values that it found, with its settings.

    Priors are not part of a result, and are left out.
    """
    mechanism = saved.mechanism()
    return fit(
        mechanism, recordings_of(saved), _free(saved, mechanism), options=given_options(saved), progress=progress
    )


def _free(saved: SavedResult, mechanism: Mechanism) -> dict[str, Free]:
    """Parameters of a result's table, with the value of the first recording for those that each has of its own."""
    found: dict[str, Free] = {}
    for label, row in saved.summary["parameters"].items():
        name, _, copy = label.partition("@")
        if name not in mechanism.leaves():  # a component of a rotation
            found.setdefault(name.rpartition(".")[0], Free(per_recording=bool(copy)))
        else:
            found.setdefault(name, Free(row["value"], row["lower"], row["upper"], per_recording=bool(copy)))
    return found
