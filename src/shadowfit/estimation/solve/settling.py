"""Recordings that go astray in a step of all are set right one by one.

A step of all unknowns is accepted if it lowers the sum of the costs of all recordings. Of hundreds there is nearly
always one in which it leads across a reversal of dry friction: its cost rises by more than the others' fall, the step
is refused for all of them, and again with more damping. Such a recording is instead led back by itself, in damped
steps of its own states at the new values of the parameters, until it has the cost that the quadratic model promised,
or the least one. Where that does not succeed, it begins again from where its states were before the step: a step that
hardly moves the parameters does not raise its cost then. That costs evaluations of this recording only; the others keep
their step.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.objective import Cost, Linearisation
from shadowfit.records import record

# A recording has gone astray if its cost lies above the promised one by this part of what the step promises for one
# recording on average, or by this much of χ² if that is more. With all of them at that limit the step still keeps three
# quarters of its promise.
ASTRAY, LEAST = 0.25, 0.0025
# It is set right when another step of its states promises less than this part of it.
REST = 0.25
# Most evaluations of a recording by itself.
TRIALS = 10
# Damping of its first step, relative to the diagonal, and after a refused one at least.
FIRST, REFUSED = 1e-14, 1e-6


@record(frozen=True)
class Expectation:
    """What a step promises of each recording, in order; empty: they are not held to it."""

    costs: tuple[float, ...] = ()
    """By the quadratic model."""
    before: tuple[Nodes, ...] = ()
    """The states that the step began from."""


NOT_HELD = Expectation()


def slack(promised: float, recordings: int, degree: float) -> float:
    """By how much a recording may miss the cost that it was promised.

    Args:
        promised: decrease of the cost of all recordings.
        recordings: their number.
        degree: one degree of freedom's share of the cost, a change of χ² by one.
    """
    return max(ASTRAY * promised / recordings, LEAST * degree)


def settled(
    problem: Problem, there: Linearisation, weights: Weights, expected: Expectation, slack: float
) -> Linearisation:
    """The same with all recordings set right whose costs are above the expected ones."""
    for index, (cost, nodes) in enumerate(zip(expected.costs, expected.before, strict=True)):
        limit, rest = cost + slack, REST * slack
        if limit < there.normals[index].cost < np.inf:
            there = _set_right(problem, there, weights, index, limit, rest)
        if limit < there.normals[index].cost < np.inf:
            stayed = _evaluated(problem, there, weights, index, nodes)
            if stayed.normals[index].cost < there.normals[index].cost:
                there = _set_right(problem, stayed, weights, index, limit, rest)
    return there


def _set_right(
    problem: Problem, there: Linearisation, weights: Weights, index: int, limit: float, rest: float
) -> Linearisation:
    """The same with the states of one recording led downhill, parameters held."""
    alpha, grow = FIRST, 2.0
    for _ in range(TRIALS):
        normal = there.normals[index]
        if normal.cost <= limit:
            break
        damping = objective.unseen(normal) + alpha * normal.diagonal()
        factor, held = front.factorise(normal, damping), np.zeros(len(normal.corner) - 1)
        states = factor.states(held)
        if factor.reduced().ok and -normal.change(states, held) <= rest:
            break  # the rest is for the parameters to explain
        moved = problem.kernels.retract(there.point.nodes[index], states)
        trial = _evaluated(problem, there, weights, index, moved)
        if trial.normals[index].cost < normal.cost:
            there = trial
            alpha, grow = 0.1 * alpha, 2.0
        else:
            alpha, grow = max(alpha * grow, REFUSED), 2.0 * grow
    return there


def _evaluated(problem: Problem, there: Linearisation, weights: Weights, index: int, states: Nodes) -> Linearisation:
    """The linearisation with other states of one recording."""
    normals, cost = list(there.normals), there.cost
    point = objective.with_states(problem, there.point, index, states)
    (part,) = objective.condensed(problem, point, weights, [index])
    dynamics, sensors, start = list(cost.dynamics), list(cost.sensors), list(cost.start)
    normals[index], dynamics[index], sensors[index], start[index] = (
        part.normal,
        part.dynamics,
        part.sensors,
        part.start,
    )
    renewed = Cost(tuple(dynamics), tuple(sensors), tuple(start), cost.prior)
    rows = tuple(part.rows if i == index else kept for i, kept in enumerate(there.dynamics))
    return dataclasses.replace(there, point=point, normals=tuple(normals), cost=renewed, dynamics=rows)
