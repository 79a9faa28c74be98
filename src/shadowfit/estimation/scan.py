"""Fits with one set of weights after another, each from where the last one ended."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights, with_given
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.estimation.solve.levenberg_marquardt import (
    Iteration,
    LevenbergMarquardt,
    Outcome,
    Progress,
    Status,
    minimise,
)
from shadowfit.estimation.solve.prediction import simulation_errors
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.solve.undriven import proportioned
from shadowfit.estimation.uncertainty.evidence import Evidence, gather
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.records import record

# A fit of the scan stops when χ² would fall by less than this, or after so many iterations. (Unfinished fits are less
# likely than they could be: cut off earlier, the scan ended decades too low on recordings without process noise.)
UNFINISHED = 1.0
SCAN_ITERATIONS = 6
# Iterations that what only improves the weights leaves to the last fit.
LAST_ITERATIONS = 20


@record(frozen=True)
class Candidate:
    """A fit at one κ, with the common scale of the noise adapted to it."""

    problem: Problem
    outcome: Outcome
    weights: Weights
    deviance: float
    """−2 log L up to a constant."""

    @property
    def state_weight(self) -> float:
        return self.weights.state_weight

    @property
    def point(self) -> Point:
        return self.outcome.linearisation.point

    @functools.cached_property
    def evidence(self) -> Evidence:
        return gather(self.problem, self.outcome.linearisation, self.weights)

    @functools.cached_property
    def simulation_errors(self) -> Float[np.ndarray, " sensors"]:
        """Relative errors of a simulation from its own first states."""
        return simulation_errors(self.problem, self.point)


@dataclasses.dataclass
class Scan:
    """Fits at one κ after another."""

    problem: Problem
    settings: LevenbergMarquardt
    progress: Progress | None
    log: list[Iteration] = dataclasses.field(default_factory=list)
    stopped: Outcome | None = None
    """A fit that Ctrl-C ended, or the limit of all iterations."""
    _renewed: tuple[Problem, Point, Point] | None = None
    """The problem and the point that the last fit started from, and the latter with its discretisation errors."""

    @property
    def left(self) -> int:
        """Iterations that are left."""
        return max(self.settings.max_iterations - (self.log[-1].number if self.log else 0), 0)

    @property
    def has_time(self) -> bool:
        """Whether one more fit leaves enough iterations for the last one."""
        return self.stopped is None and self.left > SCAN_ITERATIONS + LAST_ITERATIONS

    def fitted(
        self,
        point: Point,
        weights: Weights,
        first: bool = False,
        adapt: bool = True,
        most: int = SCAN_ITERATIONS,
        exact: bool = False,
    ) -> Candidate:
        """A fit as far as the likelihood can tell, with the discretisation errors of where it starts.

        ``adapt``: the scale common to all levels follows from it. ``most``: iterations, but for the first fit.
        ``exact``: equations are weighed beyond what is known of their errors.
        """
        weights = weights if exact else with_given(self.problem, weights)
        loose = max(self.settings.decrease_tolerance, UNFINISHED / max(self.problem.sample_count(), 1))
        settings = dataclasses.replace(self.settings, decrease_tolerance=loose, max_iterations=self.left)
        if not first:
            settings = dataclasses.replace(settings.warm(), max_iterations=min(most, self.left))
        # The errors along the first states, which follow the noise, are not worth computing.
        start = point if first else self._with_errors(point)
        if weights.proportion is not None:
            weights = proportioned(self.problem, start, weights)
        number = self.log[-1].number if self.log else 0
        outcome = minimise(self.problem, start, weights, settings, self.progress, number)
        self.log.extend(outcome.log[0 if first else 1 :])
        spent = outcome.status is Status.ITERATIONS and self.log[-1].number >= self.settings.max_iterations
        if outcome.status is Status.INTERRUPTED or spent:
            self.stopped = outcome
        if not usable(outcome):
            return Candidate(self.problem, outcome, weights, np.inf)
        weights = weights.settled_at(self.problem.parameters, outcome.linearisation.point.values)
        value, scale = deviance(self.problem, outcome.linearisation, weights, adapt)
        weights = _rescaled(weights, scale)
        return Candidate(self.problem, outcome, weights if exact else with_given(self.problem, weights), value)

    def _with_errors(self, point: Point) -> Point:
        """The point with what its own motion says is held and taken off, of which several fits may start."""
        if self._renewed is None or self._renewed[0] is not self.problem or self._renewed[1] is not point:
            self._renewed = self.problem, point, renewed(self.problem, objective.held(self.problem, point))
        return self._renewed[2]

    def unsettled(self, candidate: Candidate) -> float:
        """Factor by which the cost of a fit grows with the discretisation errors of its own motion."""
        before = candidate.outcome.linearisation.cost.total
        again = self._with_errors(candidate.point)
        return objective.linearise(self.problem, again, candidate.weights).cost.total / before

    def finished(self, point: Point, weights: Weights) -> Outcome:
        """The fit at the final levels, to its end."""
        warm = dataclasses.replace(self.settings.warm(), max_iterations=self.left)
        outcome = minimise_corrected(self.problem, point, weights, warm, self.progress, self.log[-1].number)
        self.log.extend(outcome.log[1:])
        return outcome


def usable(outcome: Outcome) -> bool:
    """Whether a fit led anywhere."""
    return outcome.status not in (Status.NUMERICS, Status.STUCK, Status.INTERRUPTED)


def _rescaled(weights: Weights, scale: float) -> Weights:
    """All levels multiplied by a factor; κ, their ratio, stays."""
    if scale == 1.0:
        return weights
    return dataclasses.replace(weights, reference=weights.reference * scale)
