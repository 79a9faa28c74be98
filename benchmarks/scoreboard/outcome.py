"""What a fit said, as JSON: estimates, error bars, verdict, named errors and choices, as ``result.json`` has them."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.estimation import Estimate, Free, Options, fit
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

# Machines that regions of pairs are made of.
DRAWS = 400
OF_PARAMETERS = ("value", "std", "interval", "at_bound", "identifiable", "truth")


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A fit with the processor time that it took [s]."""

    estimate: Estimate
    seconds: float


def fitted(
    mechanism: Mechanism,
    recordings: Recording | Sequence[Recording],
    free: Sequence[str] | Mapping[str, Any],
    options: Options | None = None,
) -> Fitted:
    """A fit with plain defaults, unless options are given."""
    start_jax()
    wished = (
        {name: start if isinstance(start, Free) else Free(start=start) for name, start in free.items()}
        if isinstance(free, Mapping)
        else list(free)
    )
    began = time.process_time()
    estimate = fit(mechanism, recordings, wished, options=options or Options())
    return Fitted(estimate, time.process_time() - began)


def held_pairs(estimate: Estimate, truth: Mapping[str, float]) -> list[bool]:
    """Of each pair of identified parameters whether the 95 % region of their draws, an ellipse, holds the truth."""
    held, table = [], estimate.draw(DRAWS, red=True).to_dict()
    told = [row.name for row in estimate.parameters if row.identifiable and row.name in truth]
    for pair in itertools.combinations(told, 2):
        points = np.column_stack([table[name] for name in pair])
        centre, inverse = points.mean(axis=0), np.linalg.inv(np.cov(points.T))
        steps = np.vstack([points, [truth[name] for name in pair]]) - centre
        *away, own = np.einsum("ni,ij,nj->n", steps, inverse, steps)
        held.append(bool(own <= np.quantile(away, 0.95)))
    return held


def outcome(found: Fitted, truth: Mapping[str, float] | None = None, folder: Path | None = None) -> dict[str, Any]:
    """What the scoreboard keeps of a fit; its result stays in a folder where one is given."""
    with tempfile.TemporaryDirectory() as another:
        summary = found.estimate.save(folder or another, truth=truth)
    return {
        "status": summary["status"],
        "converged": summary["converged"],
        "iterations": summary["iterations"],
        "seconds": found.seconds,
        "verdict": summary["verdict"],
        "notices": [[one["severity"], one["text"]] for one in summary["notices"]],
        "choices": {one["what"]: one["chosen"] for one in summary["choices"]},
        "errors": [[one["name"], one["kind"], one["size"]] for one in summary["latent_errors"]],
        "unexplained": summary["unexplained"],
        "noise": {name: sensor["std"] for name, sensor in summary["model"]["sensors"].items()},
        "parameters": {
            name: {key: row[key] for key in OF_PARAMETERS if key in row} for name, row in summary["parameters"].items()
        },
    }
