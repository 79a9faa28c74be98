"""What the optimiser asks of a least squares problem, and how a step of it is damped.

With the states eliminated, wherever they are, a small system of the parameters is left; their damped step within their
bounds (:func:`parameter_step`) is the same for a problem whose states are here (:class:`LocalSystem`) and for one whose
states are with many workers.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Protocol

import numpy as np

from shadowfit.estimation.linear import front
from shadowfit.estimation.linear.box_step import BoxStep
from shadowfit.estimation.linear.cone_step import cone_step
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.mixing import mixed
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.settling import NOT_HELD, Expectation, settled, slack
from shadowfit.estimation.solve.truncation import renewed

Damping = Literal["scaled", "identity"]

# Scaled damping of the states, relative to that of the parameters.
STATE_SHARE = 0.1
# A decrease of χ² below this is not worth more iterations: no parameter moves by more than a third of its standard
# deviation. Along the kinks of dry friction the cost would creep on for long.
INSIGNIFICANT = 0.01


class System(Protocol):
    """A least squares problem as the optimiser sees it: its states may be anywhere.

    A linearisation ``here`` has a ``point`` with the ``values`` of ``parameters``, a ``cost``, and ``prior_matrix`` and
    ``prior_gradient`` of these parameters.
    """

    @property
    def parameters(self) -> ParameterSet:
        """Whose step is taken within bounds."""
        ...

    @property
    def samples(self) -> int:
        """Scalar observations."""
        ...

    @property
    def recordings(self) -> int:
        """How many there are."""
        ...

    @property
    def holds(self) -> bool:
        """Whether something is held (:meth:`held`)."""
        ...

    @property
    def corrects(self) -> bool:
        """Whether something that was held or taken off is to be found anew at the minimum."""
        ...

    def held(self, point: Any, alike: float = 0.0) -> Any:
        """The point with what is held while a descent from it goes on; the same if that is alike, relatively."""
        ...

    def renewed(self, point: Any) -> Any:
        """The point with the discretisation errors of its own motion."""
        ...

    def rows_changed(self, before: Any, after: Any) -> np.ndarray | None:
        """Change of all weighted residuals from a point to one that differs in what is held or taken off; None: they
        are elsewhere."""
        ...

    def mixed(self, now: Any, before: Any, share: float) -> Any:
        """The point ``now`` with a share of what is held and taken off at another one."""
        ...

    def linearise(self, point: Any) -> Any:
        """Normal equations at a point."""
        ...

    def propose(self, here: Any, alpha: float, damping: Damping, guess: BoxStep | None, near: bool) -> Proposal | None:
        """The damped step; None if the damped model is not positive definite."""
        ...

    def follow(self, here: Any, proposal: Proposal) -> Any:
        """Normal equations where a proposal leads; recordings that go astray in it are set right (:mod:`settling`)."""
        ...

    def seen(self, here: Any) -> Any:
        """Problem and point, for a report of progress that wants to look at the motion; None where it is elsewhere."""
        ...

    def gradient_norm(self, here: Any) -> float:
        """Of all unknowns."""
        ...

    def largest_diagonal(self, here: Any) -> float:
        """Of the normal matrix."""
        ...


def share_of(samples: int, here: Any) -> float:
    """One degree of freedom's share of the cost: a decrease of χ² by one."""
    share: float = here.cost.total / max(samples, 1)
    return share


@dataclasses.dataclass(frozen=True)
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
    box = parameter_step(parameters, here, reduced, _parameter_diagonal(problem, here), restraint, guess)
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
    return Proposal(states, box.step, change, size, box, reduced.matrix + here.prior_matrix, expected)


@dataclasses.dataclass(frozen=True)
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


def _parameter_diagonal(problem: Problem, here: Linearisation) -> np.ndarray:
    total = np.diagonal(here.prior_matrix).copy()
    for index, normal in enumerate(here.normals):
        np.add.at(total, problem.parameters.places(index), normal.parameter_diagonal())
    return total


@dataclasses.dataclass(frozen=True)
class LocalSystem:
    """A problem whose states are all here."""

    problem: Problem
    weights: Weights

    @property
    def parameters(self) -> ParameterSet:
        """All of them."""
        return self.problem.parameters

    @property
    def samples(self) -> int:
        """Scalar observations of all recordings."""
        return self.problem.sample_count()

    @property
    def recordings(self) -> int:
        """How many there are."""
        return len(self.problem.tracks)

    @property
    def holds(self) -> bool:
        """Whether widths of dry friction are held."""
        return objective.holds(self.problem)

    @property
    def corrects(self) -> bool:
        """Whether errors of the discretisation are taken off, or widths of friction held."""
        return self.problem.options.correction != "none" or self.holds

    def held(self, point: Point, alike: float = 0.0) -> Point:
        """The point with widths of dry friction from its own motion."""
        return objective.held(self.problem, point, self.weights, alike)

    def renewed(self, point: Point) -> Point:
        """The point with the discretisation errors of its own motion."""
        return renewed(self.problem, point)

    def rows_changed(self, before: Point, after: Point) -> np.ndarray:
        """Of all recordings, one after another."""

        def residuals(point: Point) -> np.ndarray:
            parts = (objective.residuals(self.problem, point, self.weights, i) for i in range(self.recordings))
            return np.concatenate([part.ravel() for part in parts])

        return residuals(after) - residuals(before)

    def mixed(self, now: Point, before: Point, share: float) -> Point:
        """Discretisation errors and mobilities between (or beyond) those of two points."""
        return mixed(now, before, share)

    def linearise(self, point: Point) -> Linearisation:
        """Normal equations of all recordings."""
        return objective.linearise(self.problem, point, self.weights)

    def propose(
        self, here: Linearisation, alpha: float, damping: Damping, guess: BoxStep | None, near: bool
    ) -> Proposal | None:
        """See :func:`propose`."""
        return propose(self.problem, here, alpha, damping, guess, near)

    def follow(self, here: Linearisation, proposal: Proposal) -> Linearisation:
        """Normal equations at ``x ⊞ δ`` of all unknowns."""
        there = self.linearise(objective.plus(self.problem, here.point, proposal.states, proposal.parameters))
        least = slack(-proposal.change, self.recordings, share_of(self.samples, here))
        return settled(self.problem, there, self.weights, proposal.expected, least)

    def seen(self, here: Linearisation) -> tuple[Problem, Point]:
        """Problem and point."""
        return self.problem, here.point

    def gradient_norm(self, here: Linearisation) -> float:
        """Of all unknowns."""
        parts = [normal.gradient().ravel() for normal in here.normals]
        parts += [normal.parameter_gradient() for normal in here.normals]
        # hypot does not overflow where a wild start would.
        return float(np.hypot.reduce(np.concatenate([*parts, here.prior_gradient])))

    def largest_diagonal(self, here: Linearisation) -> float:
        """Of the states and parameters of all recordings."""
        largest = max(float(np.max(normal.diagonal())) for normal in here.normals)
        return max([largest, *(float(np.max(n.parameter_diagonal(), initial=0.0)) for n in here.normals)])
