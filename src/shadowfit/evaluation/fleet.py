"""A fit over many recordings on disk: its result, and what it needs to go on after a kill.

``fleet.json`` holds the common parameters and the spreads, ``recordings.csv`` a row for each recording, ``model.toml``
the model at the common values. While the fit runs, ``unfinished-fleet.json`` keeps the levels of the noise, the last
values and spreads, and the iterations so far: the same fit begins there when it is started again, and finds the states
anew.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import WriteError
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.levenberg_marquardt import Iteration
from shadowfit.estimation.spread.pilot import PILOTS, Pilot
from shadowfit.estimation.spread.result import FleetEstimate
from shadowfit.evaluation.exchange import replacing
from shadowfit.evaluation.summary import as_json
from shadowfit.models.atomic import write_text
from shadowfit.models.writer import write_model

UNFINISHED = "unfinished-fleet.json"
SCHEMA = "shadowfit-fleet/1"
# Of a result, and the last one to appear where they are moved one by one.
FILES = ("fleet.json", "recordings.csv", "model.toml", UNFINISHED)
LAST = "fleet.json"


class FleetMemory:
    """Keeps the course of a fit in a folder; ``key`` tells whether it is that of the same fit."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path, self._key = folder / UNFINISHED, key

    def recall(self) -> Pilot | None:
        """Where an earlier run of the same fit was, if it did not end."""
        try:
            kept = json.loads(self._path.read_text("utf-8"))
            if kept["key"] != self._key:
                return None
            weights = kept["weights"]
            impulses = weights["impulse_std"]
            believed = Weights(
                np.array(weights["dynamics"], float),
                tuple(weights["std"]),
                weights["reference"],
                None if impulses is None else tuple(impulses),
                file_spread=weights["file_spread"],
            )
            values = {
                name: np.array(value) if isinstance(value, list) else value for name, value in kept["values"].items()
            }
            log = tuple(Iteration(**entry) for entry in kept["log"])
            return Pilot(believed, values, kept["spread"], kept["near"], log)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, pilot: Pilot) -> None:
        """Write down where the fit is; a full disk does not stop it."""
        weights = dataclasses.asdict(pilot.weights) | {"dynamics": pilot.weights.dynamics.tolist()}
        values = {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in pilot.values.items()
        }
        log = [dataclasses.asdict(entry) for entry in pilot.log]
        record = {
            "key": self._key,
            "weights": weights,
            "values": values,
            "spread": pilot.spread,
            "near": pilot.near,
            "log": log,
        }
        try:
            write_text(self._path, json.dumps(record, indent=1) + "\n")
        except WriteError:
            return


def fleet_summary(estimate: FleetEstimate) -> dict[str, Any]:
    """What ``fleet.json`` holds."""
    names = [row.name for row in estimate.parameters]
    noise, apart = (np.sqrt(np.diagonal(spread)) for spread in (estimate.noise_covariance, estimate.disagreement))
    parameters = {
        row.name: {key: value for key, value in dataclasses.asdict(row).items() if key != "name"}
        | {"std_noise": noise[i], "std_disagreement": apart[i]}
        for i, row in enumerate(estimate.parameters)
    }
    covariance = {
        a: dict(zip(names, row, strict=True)) for a, row in zip(names, estimate.noise_covariance, strict=True)
    }
    fields: dict[str, Any] = as_json(
        {
            "schema": SCHEMA,
            "status": estimate.status.value,
            "converged": estimate.converged,
            "recordings": len(estimate.individuals.recordings),
            "iterations": max(len(estimate.log) - 1, 0),
            "cost": estimate.outcome.linearisation.cost.total,
            "seconds": estimate.seconds,
            "parameters": parameters,
            "spreads": {spread.name: {"value": spread.value, "std": spread.std} for spread in estimate.spreads},
            "covariance": covariance,
            "noise": dict(
                zip(
                    estimate.model.sensors.names,
                    (np.array(estimate.weights.std) * estimate.weights.reference).tolist(),
                    strict=True,
                )
            ),
            "noise_from_recordings": min(PILOTS, len(estimate.individuals.recordings)),
            "state_weight": estimate.weights.state_weight,
            "log": [dataclasses.asdict(entry) for entry in estimate.log],
        }
    )
    return fields


def save_fleet(estimate: FleetEstimate, folder: Path) -> dict[str, Any]:
    """Write the result, which takes the place of an earlier one at once; returns what ``fleet.json`` holds.

    Raises:
        WriteError: the file system refuses; an earlier result, and where the fit was, are still there.
    """
    summary = fleet_summary(estimate)
    with replacing(folder, FILES.__contains__, LAST) as target:
        _write_files(estimate, summary, target)
    return summary


def _write_files(estimate: FleetEstimate, summary: dict[str, Any], folder: Path) -> None:
    individuals = estimate.individuals
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["recording", "chi2", *(column for name in individuals.names for column in (name, f"{name}.std"))])
    for name, chi, values, std in zip(
        individuals.recordings, individuals.chi, individuals.values, individuals.std, strict=True
    ):
        writer.writerow([name, repr(float(chi)), *np.column_stack([values, std]).ravel().tolist()])
    write_text(folder / "recordings.csv", text.getvalue())
    write_model(estimate.mechanism(), folder / "model.toml", comment="Common values of a fit over many recordings.")
    write_text(folder / LAST, json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
