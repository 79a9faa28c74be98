"""What a saved result says about which machines are possible: the same as its estimate did."""

from __future__ import annotations

import numpy as np

from shadowfit.estimation import Free
from shadowfit.estimation.posterior import DrawError, Posterior
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.evaluation.store import ResultError, SavedResult
from shadowfit.mechanism import Mechanism


def posterior(saved: SavedResult) -> Posterior:
    """The distribution that a result was saved with.

    Raises:
        DrawError: it is of a version that did not save any.
        ResultError: its files contradict each other.
    """
    if saved.spread is None:
        raise DrawError(f"{saved.folder} is of an earlier version, which did not keep what draws need; fit again")
    base = saved.mechanism()
    parameters = parameter_set(base, _free(saved, base), len(saved.summary["recordings"]))
    rows = saved.summary["parameters"]
    if not tuple(parameters.labels()) == saved.labels == tuple(rows):
        raise ResultError(f"{saved.folder}: model.toml, result.json and state.npz have different parameters")
    values = parameters.of_vector(np.array([row["value"] for row in rows.values()], float))
    return Posterior(base, parameters, values, *saved.spread)


def _free(saved: SavedResult, mechanism: Mechanism) -> dict[str, Free]:
    """Parameters of a result's table within their bounds, and no others: those of whole bodies have none."""
    known, made = mechanism.leaves(), {}
    for label, row in saved.summary["parameters"].items():
        name, _, copy = label.partition("@")
        if name not in known:  # a component of a rotation
            made[name.rpartition(".")[0]] = Free(per_recording=bool(copy))
            continue
        lower = None if row["lower"] == known[name].lower else row["lower"]
        made.setdefault(name, Free(row["value"], lower, row["upper"], per_recording=bool(copy)))
    return made
