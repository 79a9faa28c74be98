"""A step corrected for what its linear model leaves of the equations of motion.

Equations of motion with a large weight are next to constraints. Parameters and states meet in them as products: where
both move, the linear model leaves ``d = r(x ⊞ δ) − (r + J δ)``, and its square, with that weight, may cost more than
the step promised. The step is refused then though it leads to where the cost is lower (Maratos' effect). One more solve
with the factor that is there anyway,

    δ' = argmin ‖J δ' + r + d‖² + δ'ᵀ D δ',        Jᵀd from rows that were kept,

leaves only what is of third order (Fletcher, Second order corrections for non-differentiable optimization, 1982; in
least squares also: geodesic acceleration, Transtrum and Sethna, 2012). It takes residuals without derivatives, a small
part of what it takes to linearise. So these are evaluated first, and the step is corrected, more than once if need be,
before anything is linearised where it leads.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.chunks import sum_of_squares
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.proposal import INSIGNIFICANT, Proposal, parameter_step, share_of, whole_diagonal
from shadowfit.records import record

# A step is left as it is if it lacks no more than so much of the decrease of χ² that it promised, and so large a part;
# or no more than matters.
LACK, PART = 0.1, 0.25
# Most corrections of one step: each takes less than half of what it takes to linearise.
CORRECTIONS = 3


def destination(problem: Problem, weights: Weights, here: Linearisation, proposal: Proposal) -> Point:
    """Where a step leads, corrected where it can be and lacks some of what it promised."""
    point = objective.plus(problem, here.point, proposal.states, proposal.parameters)
    if not proposal.factors:
        return point
    trial, step = _Trial.at(problem, point, weights, here), proposal
    share = share_of(problem.sample_count(), here)
    lacks = max(min(LACK * share, PART * -proposal.change), INSIGNIFICANT * share)
    promised = here.cost.total + proposal.change + lacks
    for _ in range(CORRECTIONS):
        if not promised < trial.cost < np.inf:
            break
        again = corrected(problem, here, step, trial.dynamics)
        if again is None:
            break
        moved = objective.plus(problem, here.point, again.states, again.parameters)
        next_trial = _Trial.at(problem, moved, weights, here)
        if not next_trial.cost < trial.cost:
            break
        point, trial, step = moved, next_trial, again
    return point


@record(frozen=True)
class _Trial:
    """A point without derivatives."""

    cost: float
    dynamics: tuple[Float[np.ndarray, "steps r"], ...]
    """Weighted residuals of the dynamics of each recording."""

    @classmethod
    def at(cls, problem: Problem, point: Point, weights: Weights, here: Linearisation) -> _Trial:
        """The residuals at a point; those of initial states are taken as they are ``here``."""
        size = problem.plan.node_size
        found = [objective.residuals(problem, point, weights, i) for i in range(len(problem.tracks))]
        prior = objective.prior(problem.parameters, point.values, weights)[2]
        cost = sum(map(sum_of_squares, found)) + sum(here.cost.start) + prior
        return cls(cost, tuple(part[:, :size] for part in found))


def corrected(
    problem: Problem, here: Linearisation, step: Proposal, residuals: tuple[Float[np.ndarray, "steps r"], ...]
) -> Proposal | None:
    """The step that the linear model proposes beside what it left out of the dynamics; None if none is.

    ``residuals`` are those of the dynamics where the step leads. What is promised stays as it was.
    """
    assert step.restraint is not None
    parameters = problem.parameters
    places = [parameters.places(index) for index in range(len(here.normals))]
    halves, parts = [], []
    for index, (factor, place) in enumerate(zip(step.factors, places, strict=True)):
        local = step.parameters[place]
        by_states, by_parameters = left_out(here.dynamics[index], residuals[index], step.states[index], local)
        half = factor.halfway(by_states[:, :, None])
        reduced = factor.reduced()
        tail = factor.right[:, :, factor.block : -1].reshape(half.size, len(local))
        halves.append(half)
        parts.append(dataclasses.replace(reduced, gradient=reduced.gradient + by_parameters - half.ravel() @ tail))
    joined = front.join(parts, places, parameters.size)
    box = parameter_step(parameters, here, joined, whole_diagonal(problem, here), step.restraint, step.box)
    if box is None:
        return None
    states = tuple(
        factor.states(box.step[place]) - factor.onwards(half)[:, :, 0]
        for factor, half, place in zip(step.factors, halves, places, strict=True)
    )
    return dataclasses.replace(step, states=states, parameters=box.step, box=box)


def left_out(
    tables: tuple[front.RowTable, ...],
    residuals: Float[np.ndarray, "steps r"],
    states: Float[np.ndarray, "N b"],
    parameters: Float[np.ndarray, " p"],
) -> tuple[Float[np.ndarray, "N b"], Float[np.ndarray, " p"]]:
    """``Jᵀd`` of the states and of the parameters for a step and the residuals where it leads, of one recording."""
    by_states, by_parameters, begin = np.zeros_like(states), np.zeros_like(parameters), 0
    for table in tables:
        end, size = begin + len(table.wide), table.node_size
        moved = [states[begin + node : end + node] for node in range(table.first, table.first + table.window)]
        rest = np.broadcast_to(np.append(parameters, 1.0), (end - begin, len(parameters) + 1))
        linear = np.matmul(table.wide, np.concatenate([*moved, rest], axis=1)[:, :, None])[:, :, 0]
        products = np.matmul((residuals[begin:end] - linear)[:, None], table.wide)[:, 0]
        for place in range(table.window):
            node = begin + table.first + place
            by_states[node : node + end - begin] += products[:, place * size : (place + 1) * size]
        by_parameters += products[:, table.window * size : -1].sum(axis=0)
        begin = end
    return by_states, by_parameters
