"""A fit whose discretisation errors are taken off: minimise, compute them anew, minimise again, until they stand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.levenberg_marquardt import (
    LevenbergMarquardt,
    Outcome,
    Progress,
    descend,
)
from shadowfit.estimation.solve.system import LocalSystem, System, share_of, worth

# Most rounds. What is left of an error falls by a factor of ten or more in each, except where dry friction reverses.
ROUNDS = 6
# Rounds end when χ² changes by less than this for each recording, and parameters by what is worth this much of it.
SETTLED = 0.1
# They also end when the cost changes by more than this part of what it did in the round before: reversals of dry
# friction then fall into one step and the next in turn, and further rounds go on like that.
CONTRACTS = 0.5


def minimise_corrected(
    problem: Problem,
    start: Point,
    weights: Weights,
    settings: LevenbergMarquardt,
    progress: Progress | None = None,
    first_number: int = 0,
) -> Outcome:
    """:func:`minimise`, repeated with renewed errors of the discretisation, and widths of friction, until it stands."""
    return descend_corrected(LocalSystem(problem, weights), start, settings, progress, first_number)


def descend_corrected(
    system: System, start: Any, settings: LevenbergMarquardt, progress: Progress | None = None, first_number: int = 0
) -> Outcome:
    """:func:`minimise_corrected` for any system; the limit of iterations is that of all descents."""
    outcome = descend(system, system.renewed(start), settings, progress, first_number)
    if not system.corrects:
        return outcome
    log, last_change = list(outcome.log), np.inf
    for _ in range(ROUNDS - 1):
        if not outcome.status.converged:
            break
        before = outcome.linearisation
        again = system.renewed(before.point)
        outcome = descend(system, again, settings.warm(log[-1].number - first_number), progress, log[-1].number)
        log.extend(outcome.log[1:])
        change = abs(outcome.linearisation.cost.total - before.cost.total)
        if _stands(system, before, outcome) or change > CONTRACTS * last_change:
            break
        last_change = change
    return dataclasses.replace(outcome, log=tuple(log))


def _stands(system: System, before: Any, outcome: Outcome) -> bool:
    """Whether a round has changed nothing that matters."""
    here, limit = outcome.linearisation, SETTLED * share_of(system.samples, before)
    if abs(here.cost.total - before.cost.total) > system.recordings * limit:
        return False
    if system.recordings == 1 or outcome.curvature is None:
        return True
    return worth(outcome.curvature, system.parameters.minus(here.point.values, before.point.values)) <= limit
