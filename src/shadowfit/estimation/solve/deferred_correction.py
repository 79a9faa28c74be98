"""A fit whose discretisation errors are taken off: minimise, compute them anew, minimise again, until they stand."""

from __future__ import annotations

import dataclasses
from typing import Any

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.levenberg_marquardt import (
    LevenbergMarquardt,
    Outcome,
    Progress,
    descend,
)
from shadowfit.estimation.solve.system import LocalSystem, System

# Most rounds. What is left of an error falls by a factor of ten or more in each, except where dry friction reverses.
ROUNDS = 6
# Rounds end when χ² changes by less than this.
SETTLED = 0.1


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
    log = list(outcome.log)
    for _ in range(ROUNDS - 1):
        if not outcome.status.converged:
            break
        before = outcome.linearisation.cost.total
        again = system.renewed(outcome.linearisation.point)
        outcome = descend(system, again, settings.warm(log[-1].number - first_number), progress, log[-1].number)
        log.extend(outcome.log[1:])
        change = abs(outcome.linearisation.cost.total - before)
        if change <= SETTLED / max(system.samples, 1) * before:
            break
    return dataclasses.replace(outcome, log=tuple(log))
