"""A damped step of the quadratic model, within the bounds of the parameters.

With the states eliminated, wherever they are, a small system of the parameters is left; their damped step within their
bounds (:func:`parameter_step`) is the same for a problem whose states are here and for one whose states are with many
workers (:mod:`system`).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np

from shadowfit.estimation.linear import front
from shadowfit.estimation.linear.box_step import BoxStep
from shadowfit.estimation.linear.cone_step import cone_step
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.settling import NOT_HELD, Expectation
from shadowfit.records import record

Damping = Literal["scaled", "identity"]

# Scaled damping of the states, relative to that of the parameters.
STATE_SHARE = 0.1
# A decrease of χ² below this is not worth more iterations: no parameter moves by more than a third of its standard
# deviation. Along the kinks of dry friction the cost would creep on for long.
INSIGNIFICANT = 0.01


def share_of(samples: int, here: Any) -> float:
    """One degree of freedom's share of the cost: a decrease of χ² by one."""
    share: float = here.cost.total / max(samples, 1)
    return share


@record(frozen=True)
class Proposal:
    """A step of the quadratic model."""

    states: tuple[Any, ...]
    """Steps of the nodes of each recording, or where they are."""
    parameters: np.ndarray
    change: float
    """Change of the quadratic model's cost (negative), without damping."""
    size: float
    """Largest relative step of a parameter, or step of a state."""
    box: BoxStep
    curvature: np.ndarray
    """Of the cost in the parameters, the states eliminated, undamped but for these."""
    expected: Expectation = NOT_HELD
    """What each recording is held to (:mod:`settling`)."""
    factors: tuple[front.Factor, ...] = ()
    """The eliminated states of each recording, where the step can be corrected (:mod:`second_order`)."""
    restraint: Restraint | None = None
    """How it was held back."""

    @property
    def worth(self) -> float:
        """What the step of the parameters is worth: a change of χ² by one is a standard deviation of one of them."""
        return worth(self.curvature, self.parameters)


def worth(curvature: np.ndarray, step: np.ndarray) -> float:
    """``δᵀHδ``."""
    return float(step @ curvature @ step)


def propose(
    problem: Problem,
    here: Linearisation,
    alpha: float,
    damping: Damping,
    guess: BoxStep | None = None,
    near: bool = False,
) -> Proposal | None:
    """The damped step; None if the damped model is not positive definite.

    Near the minimum parameters that the data do not tell are held.
    """
    parameters = problem.parameters
    factors = [front.factorise(normal, state_damping(normal, alpha, damping)) for normal in here.normals]
    places = [parameters.places(i) for i in range(len(here.normals))]
    reduced = front.join([factor.reduced() for factor in factors], places, parameters.size)
    if not reduced.ok:
        return None
    restraint = restraint_of(problem.sample_count(), here, alpha, damping, near)
    box = parameter_step(parameters, here, reduced, whole_diagonal(problem, here), restraint, guess)
    if box is None:
        return None
    states = tuple(factor.states(box.step[place]) for factor, place in zip(factors, places, strict=True))
    changes = [
        normal.change(steps, box.step[place]) for normal, steps, place in zip(here.normals, states, places, strict=True)
    ]
    # The paper's method takes its steps as they are; and to damp the step of all is to damp that of a single one.
    several = damping == "scaled" and len(changes) > 1
    costs = tuple(normal.cost + change for normal, change in zip(here.normals, changes, strict=True))
    expected = Expectation(costs, here.point.nodes) if several else NOT_HELD
    change = sum(changes) + float(2.0 * here.prior_gradient @ box.step + box.step @ here.prior_matrix @ box.step)
    largest = [float(np.max(np.abs(steps))) for steps in states]
    size = max(float(np.max(np.abs(box.step) / typical_sizes(parameters, here), initial=0.0)), *largest)
    kept = tuple(factors) if here.dynamics and damping == "scaled" else ()
    curvature = reduced.matrix + here.prior_matrix
    return Proposal(states, box.step, change, size, box, curvature, expected, kept, restraint)


@record(frozen=True)
class Restraint:
    """How a step is held back, wherever its unknowns are."""

    alpha: float
    damping: Damping
    cost: float
    """The present one."""
    share: float
    """What holds parameters that the data do not tell, in units of one over their squared sizes; zero: they are not."""


def restraint_of(samples: int, here: Any, alpha: float, damping: Damping, near: bool) -> Restraint:
    """The restraint of a step from a linearisation; near the minimum what the data do not tell is held."""
    return Restraint(alpha, damping, here.cost.total, INSIGNIFICANT * share_of(samples, here) if near else 0.0)


def parameter_step(
    parameters: ParameterSet,
    here: Any,
    reduced: front.Reduced,
    diagonal: np.ndarray,
    restraint: Restraint,
    guess: BoxStep | None,
) -> BoxStep | None:
    """The damped step of the parameters within their box, found in the coordinates of their chart; None if none is.

    ``diagonal`` is that of the normal matrix of the parameters, priors included, before the states were eliminated.
    """
    chart = parameters.chart(here.point.values)
    matrix, gradient = reduced.matrix + here.prior_matrix, reduced.gradient + here.prior_gradient
    if chart.tangent is not None:
        # What the states took from the diagonal goes along, as a diagonal.
        apart = np.diag(np.maximum(diagonal - np.diagonal(matrix), 0.0))
        diagonal = np.diagonal(chart.tangent.T @ (matrix + apart) @ chart.tangent)
        matrix, gradient = chart.tangent.T @ matrix @ chart.tangent, chart.tangent.T @ gradient
    added = parameter_damping(restraint, diagonal, chart.scale, chart.sizes)
    box = cone_step(matrix + np.diag(added), gradient, chart.bounds, chart.cones, guess)
    if not box.ok:
        return None
    return box if chart.tangent is None else dataclasses.replace(box, step=chart.tangent @ box.step)


def typical_sizes(parameters: ParameterSet, here: Any) -> np.ndarray:
    """Typical size of each parameter: its start, or its value where that is larger."""
    return np.maximum(parameters.scales, np.abs(parameters.flat(here.point.values)))


def parameter_damping(restraint: Restraint, diagonal: np.ndarray, scale: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """What is added to the diagonal of parameters of given scales and present sizes."""
    held = restraint.share / sizes**2
    if restraint.damping == "identity":
        return restraint.alpha + held
    return restraint.alpha * (diagonal + restraint.cost / scale**2) + held


def state_damping(normal: front.Normal, alpha: float, damping: Damping) -> np.ndarray:
    """What is added to the diagonal of the states of a recording."""
    return objective.unseen(normal) + alpha * (1.0 if damping == "identity" else STATE_SHARE * normal.diagonal())


def whole_diagonal(problem: Problem, here: Linearisation) -> np.ndarray:
    """Diagonal of the normal matrix of the parameters, priors included, before the states are eliminated."""
    total = np.diagonal(here.prior_matrix).copy()
    for index, normal in enumerate(here.normals):
        np.add.at(total, problem.parameters.places(index), normal.parameter_diagonal())
    return total
