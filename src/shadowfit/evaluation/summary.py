"""The result of a fit as one JSON object: the schema of ``result.json`` and of ``shadowfit fit --json``.

Documented field by field in docs/result-files.md. Numbers that are not finite (no bound, no standard deviation) are
null.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.estimation import Estimate, LevenbergMarquardt, ParameterEstimate
from shadowfit.estimation.uncertainty.covariance import Interval
from shadowfit.estimation.uncertainty.evidence import Kind
from shadowfit.evaluation import forest
from shadowfit.evaluation.choices import choices
from shadowfit.evaluation.derived import derived as derived_quantities
from shadowfit.evaluation.notices import MOST_UNKNOWN, Notice, colour
from shadowfit.evaluation.series import SensorSeries
from shadowfit.evaluation.unexplained import unexplained
from shadowfit.models.expressions import Expression
from shadowfit.records import record

# Of the intervals.
LEVEL = 0.95
SCHEMA = "shadowfit-result/1"
PACKAGES = ("shadowfit", "jax", "jaxlib", "numpy", "scipy")


@record(frozen=True)
class Details:
    """What a result tells besides the estimate, and how."""

    model_text: str | None = None
    """The model file that was fitted, whose comments and layout are to be kept."""
    optimiser: LevenbergMarquardt | None = None
    """Settings of the optimiser, for the record."""
    compile_seconds: float | None = None
    """Time spent compiling [s], where it was measured."""
    truth: Mapping[str, float] | None = None
    """True values of rows of the parameter table, where they are known."""
    warnings: Sequence[str] = ()
    """Sentences that a reader of the result should see."""
    kind: Kind = "robust"
    """Of the standard deviations and intervals."""
    derived: Mapping[str, Expression] | None = None
    """Quantities that follow from the parameters, to be reported with error bars."""


def summarise(
    estimate: Estimate,
    series: Sequence[Mapping[str, SensorSeries]],
    names: Sequence[str],
    details: Details,
    notices: Sequence[Notice] = (),
) -> dict[str, Any]:
    """Everything about a fit but its trajectories, as JSON values.

    Args:
        estimate: what the fit found.
        series: for each recording, measured and estimated readings.
        names: name of each recording in the result's files.
        details: what else is to be told.
        notices: what a reader of the result should know.
    """
    kind, optimiser = details.kind, details.optimiser
    spread = estimate.uncertainty(kind)
    problem, seconds, noise = estimate.problem, estimate.seconds, estimate.noise
    return as_json(
        {
            "schema": SCHEMA,
            "status": estimate.status.name.lower(),
            "message": estimate.status.value,
            "converged": estimate.converged,
            "iterations": estimate.iterations,
            "cost": estimate.cost,
            "cost_dynamics": estimate.cost_dynamics,
            "cost_observation": estimate.cost_observation,
            "state_weight": estimate.state_weight,
            "impulse_variances": estimate.impulse_variances,
            "errors": dataclasses.asdict(estimate.errors),
            "unexplained": estimate.unexplained,
            "unexplained_share": _shares(estimate),
            "noise_choice": _noise_choice(estimate),
            "latent_errors": _latent_errors(estimate),
            "choices": [dataclasses.asdict(choice) for choice in choices(estimate)],
            "disagreement": forest.as_fields(estimate) if kind == "robust" else None,
            "uncertainty": {
                "kind": kind,
                "level": LEVEL,
                "degrees_of_freedom": float(np.min(spread.degrees, initial=np.inf)),
            },
            "parameters": parameters(estimate, kind, details.truth),
            "derived": derived_quantities(estimate, details.derived or {}, kind, LEVEL),
            "bodies": {"on_edge": estimate.on_edge, "followers": estimate.followers()},
            "not_identifiable": [finding.text for finding in estimate.findings],
            "priors": _priors(estimate),
            "base_parameters": base_parameters(estimate),
            "seconds": {
                "total": seconds.total,
                "initial": seconds.initial,
                "compile": details.compile_seconds,
                "solve": seconds.solve,
            },
            "recordings": [
                {
                    "name": name,
                    "source": track.recording.source,
                    "fingerprint": track.recording.fingerprint,
                    "samples": len(track.recording.time),
                    "duration": track.recording.duration,
                    "steps": track.steps,
                    "sensors": {key: {"rmse": readings.rmse()} for key, readings in parts.items()},
                    "warnings": list(track.recording.warnings),
                }
                for name, track, parts in zip(names, problem.tracks, series, strict=True)
            ],
            "model": {
                "name": problem.mechanism.name,
                "sensors": {
                    name: {"unit": sensor.unit(), "std": noise[name]}
                    for name, sensor in problem.mechanism.sensors.items()
                },
                "inputs": {name: {"unit": part.unit} for name, part in problem.mechanism.inputs.items()},
            },
            "settings": {
                **dataclasses.asdict(problem.options),
                "timestep": problem.timestep,
                "optimiser": None if optimiser is None else dataclasses.asdict(optimiser),
            },
            "verdict": colour(notices),
            "notices": [notice.to_json() for notice in notices],
            "warnings": [notice.sentences() for notice in notices if notice.severity != "info"],
            "version": importlib.metadata.version("shadowfit"),
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in PACKAGES},
            },
        }
    )


def _shares(estimate: Estimate) -> dict[str, float]:
    """Part of each joint's force that its model does not explain; empty where errors are those of bodies."""
    if estimate.problem.level_names is None or not math.isfinite(estimate.cost):
        return {}
    return {force.name: force.share for force in unexplained(estimate)}


def _latent_errors(estimate: Estimate) -> list[dict[str, Any]]:
    """Errors that are not white: kind, joint or sensor, root mean square, and how much likelier they make the data."""
    if not (estimate.parameters and math.isfinite(estimate.cost)):
        return []
    return [dataclasses.asdict(one) for one in estimate.evidence.latent.errors]


def _noise_choice(estimate: Estimate) -> dict[str, Any] | None:
    """How the weights were found, where they follow from the data."""
    choice = estimate.noise_choice
    if choice is None:
        return None
    return {
        "added_weight": choice.added_weight,
        "at_end": choice.at_end,
        "sensor_ratio": dict(zip(estimate.problem.sensors, choice.sensor_ratio, strict=True)),
        "acting": choice.acting,
        "white": not choice.explanation.smooth,
        "stick_time": choice.stick_time,
    }


def _priors(estimate: Estimate) -> dict[str, Any]:
    """What was known beforehand: standard deviations, or spreads of entropic priors, around the start."""
    parameters, spread = estimate.problem.parameters, estimate.weights.file_spread
    labels = parameters.labels()
    of_file = {labels[place] for place in parameters.unknown_bodies.places.ravel() if np.isfinite(spread)}
    spreads = {p.name: spread if p.name in of_file else p.entropic for p in parameters.parameters}
    return {
        p.name: {"std": p.prior, "around": np.asarray(p.start).tolist()}
        | ({} if spreads[p.name] is None else {"entropic": spreads[p.name]})
        for p in parameters.parameters
        if (p.prior, spreads[p.name]) != (None, None)
    }


def base_parameters(estimate: Estimate) -> dict[str, Any] | None:
    """What the motion determines of the parameters."""
    if not estimate.parameters or not np.isfinite(estimate.cost):
        return None
    base = estimate.base_parameters
    listed = [
        {"text": one.text(), "coefficients": one.coefficients, "value": one.value, "std": one.std, "unit": one.unit}
        for one in base.combinations
    ]
    return as_json({"combinations": listed, "unseen": base.unseen})


def worth_a_table(base: Mapping[str, Any]) -> bool:
    """Whether base parameters tell more than the parameters' own rows: some are combinations, or many are not seen."""
    combined = any(one["text"] not in one["coefficients"] for one in base["combinations"])
    return combined or len(base["unseen"]) > MOST_UNKNOWN


def parameters(estimate: Estimate, kind: Kind, truth: Mapping[str, float] | None = None) -> dict[str, dict[str, Any]]:
    """The parameter table of a fit, with standard deviations and intervals of a kind."""
    intervals = estimate.uncertainty(kind).intervals(LEVEL)
    rows = zip(estimate.table(kind), intervals, strict=True)
    return as_json({row.name: _parameter(row, interval, truth or {}) for row, interval in rows})


def _parameter(row: ParameterEstimate, interval: Interval, truth: Mapping[str, float]) -> dict[str, Any]:
    fields = {key: value for key, value in dataclasses.asdict(row).items() if key != "name"}
    fields |= {"from_prior": row.from_prior}
    fields |= {"interval": [interval.lower, interval.upper], "one_sided": interval.one_sided}
    return {**fields, "truth": truth[row.name]} if row.name in truth else fields


def as_json(value: Any) -> Any:
    """The same in JSON's own types; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return str(value)
