"""A fit over many recordings as the optimiser sees it: the common parameters here, everything else with the workers.

In each iteration workers eliminate the states of their recordings, and the parameters that belong to each, and send
their share of the small system of the common parameters; the shares are added up over a fixed tree of the recordings,
the step is taken here, and sent back. A share has ``d² + d + 2`` numbers, whatever the length of the recordings.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.box_step import BoxStep
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.objective import Cost
from shadowfit.estimation.solve.proposal import (
    Damping,
    Proposal,
    parameter_step,
    restraint_of,
    share_of,
    typical_sizes,
)
from shadowfit.estimation.solve.settling import slack
from shadowfit.estimation.spread import shard
from shadowfit.estimation.spread.shard import Report, Stance, Task
from shadowfit.parallel.engine import Column, Engine, Essence, Handle
from shadowfit.records import record

# A step may not raise the model's cost; this much of the cost is rounding.
ROUNDING = 1e-12


@record(frozen=True)
class SpreadPoint:
    """Values of the common parameters, and where the motions of the shards are."""

    values: Values
    motions: Column
    """Or linearisations, which know their motions."""
    stance: Stance | None = None
    """Of linearisations: with which weights they were made."""


@record(frozen=True)
class SpreadLinearisation:
    """Normal equations at a point: what the optimiser needs of them, and where they are."""

    point: SpreadPoint
    linears: Column
    cost: Cost
    """Its parts are those of all recordings together."""
    prior_matrix: Float[np.ndarray, "d d"]
    prior_gradient: Float[np.ndarray, " d"]
    diagonal: Float[np.ndarray, " d"]
    largest: float
    gradient_norm: float


@record(frozen=True)
class SpreadSystem:
    """All shards of a fit."""

    engine: Engine
    task: Task
    placed: Handle
    """The same where the shards are."""
    problems: Column
    parameters: ParameterSet
    """The common ones."""
    samples: int
    recordings: int
    weights: Weights
    pull: Float[np.ndarray, " q"]
    """λ of the individual parameters."""
    holds: bool
    """Whether widths of dry friction are held."""

    @property
    def corrects(self) -> bool:
        """Whether errors of the discretisation are taken off, or widths of friction held."""
        return self.task.options.correction != "none" or self.holds

    def held(self, point: SpreadPoint, alike: float = 0.0) -> SpreadPoint:
        """The point with widths of dry friction from its own motion."""
        del alike  # shards would have to agree
        if not self.holds:
            return point
        motions = self.engine.each(shard.hold, self.problems, point.motions, shared=(self.weights,))
        return dataclasses.replace(point, motions=motions)

    def renewed(self, point: SpreadPoint) -> SpreadPoint:
        """The point with the discretisation errors of its own motion."""
        if self.task.options.correction == "none":
            return point
        self._keep(point)
        motions = self.engine.each(shard.corrected, self.problems, point.motions)
        return dataclasses.replace(point, motions=motions)

    def rows_changed(self, before: SpreadPoint, after: SpreadPoint) -> None:
        """Nothing: residuals stay with their workers, and rounds go without mixing."""
        del before, after

    def mixed(self, now: SpreadPoint, before: SpreadPoint, share: float) -> SpreadPoint:
        """The point as it is."""
        del before, share
        return now

    def linearise(self, point: SpreadPoint) -> SpreadLinearisation:
        """Have the shards linearised, and add up their reports."""
        return self._linearised(point, 0.0)

    def _linearised(self, point: SpreadPoint, least: float) -> SpreadLinearisation:
        """The same, with recordings set right that miss the cost they were promised by more than the least."""
        stance = Stance(point.values, self.weights, self.pull, least)
        linears = self.engine.each(shard.linearise, self.problems, point.motions, shared=(self.placed, stance))
        report = self.engine.total(shard.report, linears, shared=(self.placed,))
        matrix, gradient, prior = objective.prior(self.parameters, point.values, self.weights)
        diagonal, common = report.diagonal + np.diagonal(matrix), report.common_gradient + gradient
        return SpreadLinearisation(
            SpreadPoint(point.values, linears, stance),
            linears,
            _cost(report, prior),
            matrix,
            gradient,
            diagonal,
            max(report.largest, float(diagonal.max(initial=0.0))),
            float(np.hypot.reduce([report.gradient, *common])),
        )

    def propose(
        self, here: SpreadLinearisation, alpha: float, damping: Damping, guess: BoxStep | None, near: bool
    ) -> Proposal | None:
        """The damped step, which the shards have already tried on."""
        self._keep(here.point)
        restraint = restraint_of(self.samples, here, alpha, damping, near)
        reduced = self.engine.total(shard.reduce, self.problems, here.linears, shared=(self.placed, restraint))
        if not reduced.ok:
            return None
        box = parameter_step(self.parameters, here, reduced, here.diagonal, restraint, guess)
        if box is None:
            return None
        motions = self.engine.each(shard.move, self.problems, here.linears, shared=(self.placed, restraint, box.step))
        step = self.engine.total(shard.step_of, motions)
        change = step.change + float(2.0 * here.prior_gradient @ box.step + box.step @ here.prior_matrix @ box.step)
        if change > ROUNDING * here.cost.total:
            return None  # individual parameters met a bound that was not reckoned with
        relative = np.abs(box.step) / typical_sizes(self.parameters, here)
        largest = max(float(np.max(relative, initial=0.0)), step.largest)
        return Proposal(motions, box.step, change, largest, box, reduced.matrix + here.prior_matrix)

    def _keep(self, point: SpreadPoint) -> None:
        """What was accepted outlives its workers: one that dies costs the iteration that was under way."""
        if point.stance is not None:
            given = (self.problems,), (self.placed, point.stance)
            self.engine.keep(point.motions, Essence(shard.motion, shard.linearise, *given))

    def follow(self, here: SpreadLinearisation, proposal: Proposal) -> SpreadLinearisation:
        """Normal equations where a proposal leads."""
        there = SpreadPoint(self.parameters.plus(here.point.values, proposal.parameters), proposal.states)
        return self._linearised(there, slack(-proposal.change, self.recordings, share_of(self.samples, here)))

    def seen(self, here: SpreadLinearisation) -> None:
        """Nothing: motions stay with their workers."""
        del here

    def gradient_norm(self, here: SpreadLinearisation) -> float:
        """Of all unknowns."""
        return here.gradient_norm

    def largest_diagonal(self, here: SpreadLinearisation) -> float:
        """Of the normal matrix of all unknowns."""
        return here.largest


def _cost(report: Report, prior: float) -> Cost:
    return Cost((report.dynamics,), (tuple(report.sensors.tolist()),), (report.start,), prior + report.pulls)
