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
from shadowfit.estimation.solve.mixing import share_of_before
from shadowfit.estimation.solve.proposal import share_of, worth
from shadowfit.estimation.solve.system import LocalSystem, System
from shadowfit.records import record

# Most rounds. What is left of an error falls by a factor of ten or more in each, except where dry friction reverses
# (:mod:`mixing`).
ROUNDS = 6
# Rounds end when χ² changes by less than this for each recording, and parameters by what is worth this much of it; or
# before a descent, when what was found anew changes residuals by less: no estimate could move by more.
SETTLED = 0.1
# The first descent ends where the next step promises less than this of χ²: what is found anew then changes it by more.
# It is never the last, for error bars that heed the residuals want those of a minimum.
NEARLY = 1.0
# They also end when the cost changes by more than this part of what it did in the round before: reversals of dry
# friction then fall into one step and the next in turn, and not even mixed rounds come to an end.
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
    if not system.corrects:
        return descend(system, _renewed(system, start), settings, progress, first_number)
    nearly = dataclasses.replace(settings, enough=NEARLY)
    outcome = descend(system, _renewed(system, start), nearly, progress, first_number)
    log, last_change, exact = list(outcome.log), np.inf, False
    last: _Round | None = None
    for _ in range(ROUNDS - 1):
        if not outcome.status.converged:
            break
        before = outcome.linearisation
        again = _renewed(system, before.point)
        changed = system.rows_changed(before.point, again)
        settled = changed is not None and changed @ changed <= SETTLED * share_of(system.samples, before)
        if settled and exact:
            break
        now = _Round(again, changed)
        begin = again if last is None else _mixed(system, now, last)
        last = now
        outcome = descend(system, begin, settings.warm(log[-1].number - first_number), progress, log[-1].number)
        log.extend(outcome.log[1:])
        change = abs(outcome.linearisation.cost.total - before.cost.total)
        if settled or _stands(system, before, outcome, exact) or change > CONTRACTS * last_change:
            break
        last_change, exact = change, True
    return dataclasses.replace(outcome, log=tuple(log))


@record(frozen=True)
class _Round:
    """What was found anew at the end of a descent."""

    point: Any
    changed: np.ndarray | None
    """What that does to the residuals."""


def _renewed(system: System, point: Any) -> Any:
    """The point with everything that is taken off and held from its own motion."""
    return system.renewed(system.held(point))


def _mixed(system: System, now: _Round, before: _Round) -> Any:
    """Where the next round begins."""
    if now.changed is None or before.changed is None:
        return now.point
    return system.mixed(now.point, before.point, share_of_before(now.changed, before.changed))


def _stands(system: System, before: Any, outcome: Outcome, exact: bool) -> bool:
    """Whether a round has changed nothing that matters; ``exact``: the one before it had gone to its end."""
    here, limit = outcome.linearisation, SETTLED * share_of(system.samples, before)
    if abs(here.cost.total - before.cost.total) > system.recordings * limit:
        return False
    if outcome.curvature is None or (exact and system.recordings == 1):
        return True
    return worth(outcome.curvature, system.parameters.minus(here.point.values, before.point.values)) <= limit
