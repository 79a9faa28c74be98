"""The methods that studies compare, and how a study writes down a fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from paper import paper_twins
from paper.rig import Rig
from shadowfit.estimation import LevenbergMarquardt, Options
from shadowfit.records import record
from shadowfit.sweeps import fitting
from shadowfit.sweeps.cases import Case, Outcome


@record(frozen=True)
class Size:
    """How large the studies are made: all of it, or a little for a trial."""

    duration: float = 1.0
    """Factor on the recordings' durations."""
    points: int | None = None
    """Largest number of points of a sweep; None: all."""
    series: int = 5
    """Recordings of the pendulum."""
    rig: Rig | None = None
    """Recordings in place of the twins, without a truth."""

    @property
    def machine(self) -> str:
        """What was recorded, in a word."""
        return "twin" if self.rig is None else "rig"

    def model(self, builtin: str) -> str:
        """The model of a study: the rig's, or the built-in one (or one in the study's folder)."""
        return builtin if self.rig is None or self.rig.model is None else str(self.rig.model.resolve())

    def thin(self, values: Sequence[float]) -> list[float]:
        """The points of a sweep, evenly thinned."""
        if self.points is None or len(values) <= self.points:
            return list(values)
        last = len(values) - 1
        return [values[round(i * last / max(self.points - 1, 1))] for i in range(self.points)]


@record(frozen=True)
class Method:
    """Settings of the estimation, with a name for files and one for people."""

    key: str
    label: str
    options: Mapping[str, Any]
    optimiser: Mapping[str, Any]

    def change(self, options: Mapping[str, Any] | None = None, optimiser: Mapping[str, Any] | None = None) -> Method:
        """The method with some settings changed."""
        return dataclasses.replace(
            self,
            options={**self.options, **(options or {})},
            optimiser={**self.optimiser, **(optimiser or {})},
        )


PAPER = Method(
    "paper",
    "paper's method",
    dataclasses.asdict(Options.paper()),
    dataclasses.asdict(LevenbergMarquardt.paper()),
)
# The same questions, asked with the implicit residual: the stepper's own parameters, the paper's weight.
_STEPPER = {
    "timestep": 0.01,
    "residual": "implicit",
    "unknowns": "configuration",
    "correction": "none",
    "state_weight": 100.0,
}
IMPLICIT = Method("implicit", "implicit residual, SPOOK", {**_STEPPER, "discretization": "spook"}, {})
OURS = Method("ours", "implicit residual, exact", {**_STEPPER, "discretization": "exact"}, {})
PAPER_COMPLIANCE = 1e-4  # m/N and rad/(N m), the paper's
RIGID = paper_twins.COMPLIANCE
"""Compliance for those who take the bearings for rigid: what the twins have."""


def twin_case(name: str, kind: str, duration: float, noise: float, seed: int, counts: int = 4096) -> Case:
    """The case that makes a twin."""
    arguments = {
        "kind": kind,
        "file": f"twins/{name}.csv",
        "duration": round(duration, 2),
        "noise": noise,
        "seed": seed,
        "counts": counts,
    }
    return Case(f"twin-{name}", paper_twins.TASK, arguments, f"twin-{kind}")


@record(frozen=True)
class StudyModel:
    """What a study fits: a model by name or file, numbers of it that are set, and those that are free."""

    name: str
    settings: Mapping[str, Any]
    free: Mapping[str, Mapping[str, Any]]


def fit_case(
    name: str,
    method: Method,
    model: StudyModel,
    twins: Mapping[str, Outcome],
    recordings: Sequence[str],
    *,
    validate: Sequence[str] = (),
    **more: Any,
) -> Case:
    """The case of a fit to twins; each step has a sample, and angles weigh one, as in the paper."""
    interval = method.options["timestep"]
    files = [_twin(twins, recording) for recording in (*recordings, *validate)]
    arguments = {
        "model": model.name,
        "recordings": [file["file"] for file in files[: len(recordings)]],
        "validate": [file["file"] for file in files[len(recordings) :]],
        "digests": [file["digest"] for file in files],
        "interval": interval,
        "set": dict(model.settings),
        "free": {name: dict(fields) for name, fields in model.free.items()},
        "options": dict(method.options),
        "optimiser": dict(method.optimiser),
        **more,
    }
    group = "-".join([model.name, method.key, str(len(model.free))])
    return Case(name, fitting.TASK, arguments, group)


def _twin(twins: Mapping[str, Outcome], name: str) -> Mapping[str, Any]:
    result = twins[f"twin-{name}"].result
    assert result is not None, "a study without its twins is not started"
    return result
