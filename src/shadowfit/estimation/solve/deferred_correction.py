"""A fit whose discretisation errors are taken off: minimise, compute them anew, minimise again, until they stand."""

from __future__ import annotations

import dataclasses

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt, Outcome, Progress, minimise
from shadowfit.estimation.solve.truncation import truncation

# Most rounds. What is left of an error falls by a factor of ten or more in each, except where dry friction reverses.
ROUNDS = 6
# Rounds end when χ² changes by less than this.
SETTLED = 0.1
# Damping to start from a solution. Any more would hold back smooth motions: a large κ weighs them (ωh)⁴ times less than
# the others, and damping does not.
WARM_DAMPING = 1e-14


def renewed(problem: Problem, point: Point) -> Point:
    """The point with the discretisation errors of its own motion; as it is, if they are not to be corrected."""
    if problem.options.correction == "none":
        return point
    found = tuple(truncation(problem, point, recording) for recording in range(len(problem.tracks)))
    return dataclasses.replace(point, truncation=found)


def minimise_corrected(
    problem: Problem,
    start: Point,
    weights: Weights,
    settings: LevenbergMarquardt,
    progress: Progress | None = None,
    first_number: int = 0,
) -> Outcome:
    """:func:`minimise`, repeated with renewed errors of the discretisation, and widths of friction, until it stands."""
    outcome = minimise(problem, renewed(problem, start), weights, settings, progress, first_number)
    if problem.options.correction == "none" and not objective.holds(problem):
        return outcome
    log = list(outcome.log)
    warm = dataclasses.replace(settings, start_damping=WARM_DAMPING)
    for _ in range(ROUNDS - 1):
        if not outcome.status.converged:
            break
        before = outcome.linearisation.cost.total
        again = renewed(problem, outcome.linearisation.point)
        outcome = minimise(problem, again, weights, warm, progress, log[-1].number)
        log.extend(outcome.log[1:])
        change = abs(outcome.linearisation.cost.total - before)
        if change <= SETTLED / max(problem.sample_count(), 1) * before:
            break
    return dataclasses.replace(outcome, log=tuple(log))
