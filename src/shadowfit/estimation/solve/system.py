"""What the optimiser asks of a least squares problem, whose states may be here or with many workers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from shadowfit.estimation.linear.box_step import BoxStep
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.mixing import mixed
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.proposal import Damping, Proposal, propose, share_of
from shadowfit.estimation.solve.second_order import destination
from shadowfit.estimation.solve.settling import settled, slack
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.records import record


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


@record(frozen=True)
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
        return objective.held(self.problem, point, alike)

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
        there = self.linearise(destination(self.problem, self.weights, here, proposal))
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
