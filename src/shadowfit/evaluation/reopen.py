"""A saved result as a fit again: its folder holds the samples, the model and the settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

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


def _recording(mechanism: Mechanism, name: str, table: Mapping[str, np.ndarray]) -> Recording:
    units = {channel: sensor.unit() for key, sensor in mechanism.sensors.items() for channel in sensor.channels(key)}
    headings = {channel: f"{channel}.measured [{unit}]" for channel, unit in units.items()}
    headings |= {key: f"{key} [{part.unit}]" for key, part in mechanism.inputs.items()}
    channels = {key: table[heading] for key, heading in headings.items() if not np.all(np.isnan(table[heading]))}
    known = {key: unit for key, unit in units.items() if key in channels}
    return Recording(table["time [s]"], channels, name=name, units=known)


def refitted(saved: SavedResult, progress: Progress | None = None) -> Estimate:
    """The fit of a result once more, with its settings, from the values that it found.

    A parameter with a prior starts where that has its mean: priors are around the start (:class:`Free`).
    """
    mechanism = _at_prior_means(saved)
    return fit(
        mechanism, recordings_of(saved), _free(saved, mechanism), options=given_options(saved), progress=progress
    ).unless_interrupted()


def _at_prior_means(saved: SavedResult) -> Mechanism:
    means = {name: prior["around"] for name, prior in _priors(saved).items()}
    return saved.mechanism().write({name: np.asarray(mean, float) for name, mean in means.items()})


def _priors(saved: SavedResult) -> Mapping[str, Mapping[str, Any]]:
    """Name → ``std`` and ``around``; none in results of earlier versions."""
    priors: Mapping[str, Mapping[str, Any]] = saved.summary.get("priors", {})
    return {name: prior for name, prior in priors.items() if prior["around"] is not None}


def _free(saved: SavedResult, mechanism: Mechanism) -> dict[str, Free]:
    """Parameters of a result's table, with the value of the first recording for those that each has of its own."""
    parameters: dict[str, Free] = {}
    priors = _priors(saved)
    for label, row in saved.summary["parameters"].items():
        name, _, copy = label.partition("@")
        if name not in mechanism.leaves():  # a component of a rotation
            name = name.rpartition(".")[0]
            made = Free()
        else:
            made = Free(row["value"], row["lower"], row["upper"])
        if name in priors and "entropic" in priors[name]:
            made = Free(entropic=priors[name]["entropic"])
        elif name in priors:
            made = dataclasses.replace(made, start=None, prior=priors[name]["std"])
        parameters.setdefault(name, dataclasses.replace(made, per_recording=bool(copy)))
    return parameters
