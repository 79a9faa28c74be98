"""Which of several models do the data ask for? Nested models, such as viscous, dry and Stribeck friction.

All fits must have been made on the same recordings. Where they found their own noise levels (``auto``), all are fitted
once more with those of the largest model, which has the least of what models lack in them; weights that were given must
be the same. Then the cost over σ₀² is twice the negative
logarithm of the likelihood up to a constant, and

    AIC = cost/σ₀² + 2 k,     BIC = cost/σ₀² + k ln N,     likelihood ratio = (cost_small − cost_large)/σ₀²

with k parameters (those on a bound are not counted: the data do not use them) and N scalar observations. The ratio of
nested models is χ² distributed if the small one is true; where the smaller model lies on a bound of the larger one (a
friction of zero) the stated probability is conservative. Costs of new recordings say more than all of these; see
:func:`shadowfit.evaluation.cross_validation.cross_validate`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate, LevenbergMarquardt
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.estimation.uncertainty.distributions import chi_square_tail
from shadowfit.records import record


class ComparisonError(ShadowfitError):
    """Fits that cannot be compared."""


@record(frozen=True)
class ComparedModel:
    """One model's row in a comparison."""

    name: str
    parameters: int
    """k."""
    cost: float
    """Per time step."""
    deviance: float
    """Cost over σ₀²."""
    aic: float
    bic: float
    ratio: float
    """Likelihood ratio to the model before (its excess deviance); NaN for the first."""
    probability: float
    """Of a ratio as large as this if the model before is true; NaN for the first."""
    converged: bool


def compare_models(fits: Mapping[str, Estimate]) -> tuple[ComparedModel, ...]:
    """Compare nested models, the smallest first."""
    names, estimates = list(fits), list(fits.values())
    for other in estimates[1:]:
        _check_data(names, estimates[0], other)
    compared = _with_common_weights(estimates)
    for other in compared[1:]:
        _check_weights(names, compared[0], other)
    rows: list[ComparedModel] = []
    for name, estimate in zip(names, compared, strict=True):
        deviance = estimate.outcome.linearisation.cost.total / estimate.weights.reference**2
        count = int(np.count_nonzero(~estimate.at_bound))
        samples = estimate.problem.sample_count()
        ratio, probability = float("nan"), float("nan")
        if rows:
            more = max(count - rows[-1].parameters, 1)
            ratio = rows[-1].deviance - deviance
            probability = chi_square_tail(more, max(ratio, 0.0))
        rows.append(
            ComparedModel(
                name,
                count,
                estimate.cost,
                deviance,
                deviance + 2.0 * count,
                deviance + count * np.log(samples),
                ratio,
                probability,
                estimate.converged,
            )
        )
    return tuple(rows)


def _with_common_weights(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The fits with the noise levels of the largest model, where each found its own."""
    if any(one.noise_choice is None for one in estimates):
        return list(estimates)
    largest = max(estimates, key=lambda one: one.problem.parameters.size)
    weights = largest.weights.likely
    settings = LevenbergMarquardt()
    with one_thread():
        outcomes = [
            minimise_corrected(one.problem, one.outcome.linearisation.point, weights, settings) for one in estimates
        ]
    return [
        dataclasses.replace(one, weights=weights, outcome=outcome.unless_interrupted(), noise_choice=None)
        for one, outcome in zip(estimates, outcomes, strict=True)
    ]


def _check_data(names: Sequence[str], first: Estimate, other: Estimate) -> None:
    """Raise unless two fits saw the same data, and have equations of the same shape."""
    seen = [[track.recording.fingerprint for track in e.problem.tracks] for e in (first, other)]
    if seen[0] != seen[1]:
        raise ComparisonError(f"the fits {', '.join(names)} saw different recordings; fit all models to the same ones")
    if first.problem.timestep != other.problem.timestep or first.problem.level_names != other.problem.level_names:
        raise ComparisonError(
            f"the fits {', '.join(names)} have different time-steps or unknowns, so their costs mean different things; "
            "give all the same timestep and unknowns"
        )


def _check_weights(names: Sequence[str], first: Estimate, other: Estimate) -> None:
    """Raise unless two fits have the same weights."""
    same = (
        first.weights.std == other.weights.std
        and first.weights.reference == other.weights.reference
        and np.array_equal(first.weights.dynamics, other.weights.dynamics)
    )
    if not same:
        raise ComparisonError(
            f"the fits {', '.join(names)} have different weights, so their costs mean different things; "
            "give all the same state_weight (a number, for example the one that `auto` found), or `auto` to all"
        )


def markdown(rows: Sequence[ComparedModel]) -> str:
    """The comparison as a table; the lowest AIC and BIC are the models to take."""
    lines = ["| model | k | cost | ΔAIC | ΔBIC | likelihood ratio | probability |", "|---|---|---|---|---|---|---|"]
    aic, bic = min(row.aic for row in rows), min(row.bic for row in rows)
    for row in rows:
        test = ("", "") if np.isnan(row.ratio) else (f"{row.ratio:.1f}", f"{row.probability:.2g}")
        numbers = f"{row.cost:.4g} | {row.aic - aic:.1f} | {row.bic - bic:.1f}"
        lines.append(f"| {row.name} | {row.parameters} | {numbers} | {test[0]} | {test[1]} |")
    return "\n".join(lines) + "\n"
