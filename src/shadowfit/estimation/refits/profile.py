"""Profile likelihood: how the cost rises when one parameter is held elsewhere and all else is fitted again.

    deviance(c) = [min_{χ_i = c} cost − min cost]/σ₀²

The interval at a level are the values with a deviance below the quantile of χ² with one degree of freedom. It is not
symmetric where the problem is not linear, and ends at a bound where the bound is met first. Like the Gauss–Newton
interval it believes the weights of the fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import UnknownNameError, nearest
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.variation import varied
from shadowfit.estimation.refits.many import many
from shadowfit.estimation.result import Estimate
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt, minimise
from shadowfit.estimation.uncertainty.covariance import Interval
from shadowfit.estimation.uncertainty.distributions import normal_quantile
from shadowfit.records import record

# The end of an interval is found when its deviance is this close to the quantile, relatively.
TOLERANCE = 0.02
# Fits for one end.
TRIALS = 10
# An end is looked for no nearer and no further than by this factor from trial to trial.
STRETCH = 4.0
SETTINGS = LevenbergMarquardt(start_damping=1e-6, decrease_tolerance=1e-9)


@record(frozen=True)
class Profile:
    """Deviance along one parameter."""

    interval: Interval
    values: Float[np.ndarray, " n"]
    """Values that were tried, in order."""
    deviance: Float[np.ndarray, " n"]
    complete: bool
    """Whether both ends were found (or are bounds)."""


def profile(
    estimate: Estimate, name: str, level: float = 0.95, progress: Callable[[float, float], None] | None = None
) -> Profile:
    """Profile of one parameter (a number) out to the ends of its interval; ``progress(value, deviance)`` each time.

    Ctrl-C keeps what is done.
    """
    labels = estimate.problem.parameters.labels()
    if name not in labels:
        raise UnknownNameError(f"there is no free parameter {name!r}{nearest(name, labels)}")
    row = estimate.parameters[labels.index(name)]
    quantile = float(normal_quantile(0.5 + 0.5 * level)) ** 2
    tried = {row.value: 0.0}

    def note(value: float, deviance: float) -> None:
        tried[value] = deviance
        if progress is not None:
            progress(value, deviance)

    spread = estimate.uncertainty().freed_std[labels.index(name)]
    ends, complete = [], True
    for sign, bound in ((-1.0, row.lower), (1.0, row.upper)):
        end, reached = row.value, False
        try:
            reach = float(sign * np.sqrt(quantile) * spread)
            end, reached = _end(estimate, labels.index(name), reach, bound, quantile, note)
        except KeyboardInterrupt:
            pass
        ends.append(end)
        complete &= reached
    order = np.array(sorted(tried))
    interval = Interval(name, ends[0], ends[1], row.at_bound)
    return Profile(interval, order, np.array([tried[value] for value in order]), complete)


def profiles(
    estimate: Estimate,
    names: Sequence[str],
    level: float = 0.95,
    n_jobs: int | None = -1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Profile]:
    """Profiles of several parameters side by side; ``progress(done, all)`` after each. Ctrl-C keeps what is done."""
    listed, _ = many(_profile, names, (estimate, level), n_jobs, progress)
    return {one.interval.name: one for one in listed}


def _profile(name: str, estimate: Estimate, level: float) -> Profile:
    return profile(estimate, name, level)


def _end(
    estimate: Estimate,
    index: int,
    reach: float,
    bound: float,
    quantile: float,
    note: Callable[[float, float], None],
) -> tuple[float, bool]:
    """Where the deviance reaches the quantile, and whether it was found; √deviance is nearly linear in the distance."""
    centre = estimate.parameters[index].value
    point = estimate.outcome.linearisation.point
    for _ in range(TRIALS):
        value = centre + reach
        beyond = (value - bound) * np.sign(reach) >= 0.0
        value = bound if beyond else value
        if value == centre:
            return centre, True
        point, deviance = held(estimate, index, value, point)
        note(value, deviance)
        if (beyond and deviance < quantile) or abs(deviance - quantile) < TOLERANCE * quantile:
            return value, True
        ratio = np.sqrt(quantile / max(deviance, np.finfo(float).tiny))
        reach = (value - centre) * float(np.clip(ratio, 1.0 / STRETCH, STRETCH))
    return centre + reach, False


def held(estimate: Estimate, index: int, value: float, start: Point) -> tuple[Point, float]:
    """The fit with one parameter held at a value, and its deviance; infinite where no body has the value."""
    problem = _with_held(estimate.problem, index, value)
    moved = problem.parameters.possible(problem.parameters.plus(start.values, np.zeros(problem.parameters.size)))
    if moved is None:
        return start, np.inf
    outcome = minimise(problem, problem.revalued(start, moved), estimate.weights, SETTINGS).unless_interrupted()
    rise = outcome.linearisation.cost.total - estimate.outcome.linearisation.cost.total
    return outcome.linearisation.point, max(float(rise) / estimate.weights.reference**2, 0.0)


def _with_held(problem: Problem, index: int, value: float) -> Problem:
    """The problem with a box of one value for a parameter; everything compiled stays."""
    parameters = list(problem.parameters.parameters)
    place = 0
    for i, parameter in enumerate(parameters):
        if place == index and not parameter.is_rotation and not parameter.per_recording:
            parameters[i] = dataclasses.replace(parameter, lower=value, upper=value)
            return varied(problem, parameters=dataclasses.replace(problem.parameters, parameters=tuple(parameters)))
        place += parameter.size * (problem.parameters.recordings if parameter.per_recording else 1)
    raise UnknownNameError(
        f"{problem.parameters.labels()[index]} cannot be profiled; only numbers that all recordings share can"
    )
