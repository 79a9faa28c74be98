"""Seeking the best motion: usual and random ones first, then the search from the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.constraints import SMALLEST, broken, largest_factors, moving_violations, violations
from shadowfit.designs.criteria import Identifiable, identifiable
from shadowfit.designs.drives import Drive, JointMotion
from shadowfit.designs.errors import DesignError
from shadowfit.designs.experiment import Experiment, typical_force_noise
from shadowfit.designs.information import exactly, informations
from shadowfit.designs.motions import Motions
from shadowfit.designs.search import Candidate, Competition, compete
from shadowfit.designs.settings import DesignSettings
from shadowfit.designs.setup import Setup
from shadowfit.records import record

# Usual and random motions from which the search may start.
DRAWN = 24
# Room that the search leaves to the limits, relative to them: steps of the full rate lie between those it looks at.
MARGIN = 0.003
# Motions whose information together says what can be told.
POOLED = 4

Progress = Callable[[str], None]
Coefficients = Float[np.ndarray, "count n"]


@record(frozen=True)
class Seeker:
    """Motions of a drive within limits, and what they tell."""

    experiment: Experiment
    setup: Setup
    settings: DesignSettings
    fine: Experiment | None = None
    """At the full rate, for limits of the joints' motions, where the experiment has longer steps."""

    @property
    def drive(self) -> Drive:
        """What is varied."""
        return self.setup.drive

    def excess(self, coefficients: Coefficients) -> Float[np.ndarray, " count"]:
        """How far the limit that is broken most is broken; not positive where all hold.

        Where joints are led, their motion is looked at first: what breaks limits by itself needs no forces.
        """
        worst = np.zeros(len(coefficients))
        if isinstance(self.drive, JointMotion):
            worst = np.max(self._moving(self.drive, coefficients), axis=1, initial=-1.0)
        left = worst <= 0.0
        if left.any():
            some = coefficients[left]
            worst[left] = np.max(self._broken(some, self.drive.motions(self.experiment, some)), axis=1)
        return worst

    def _broken(self, coefficients: Coefficients, motions: Motions) -> Float[np.ndarray, "count k"]:
        excess = violations(self.experiment, self.setup.limits, motions)
        if self.fine is None or not isinstance(self.drive, JointMotion):
            return excess
        # Between long steps a fast motion would go unseen.
        return np.hstack([excess, self._moving(self.drive, coefficients)])

    def _moving(self, drive: JointMotion, coefficients: Coefficients) -> Float[np.ndarray, "count k"]:
        """The same of limits of the joints' motions alone, at the full rate."""
        full = self.fine or self.experiment
        return moving_violations(full, self.setup.limits, drive.coordinates(full, coefficients))

    def largest(self, coefficients: Coefficients) -> Coefficients:
        """Motions as large as the limits allow; zero where they allow none."""
        return largest_factors(self.excess, coefficients)[:, None] * coefficients

    def shrunk(self, coefficients: Coefficients) -> Coefficients:
        """Motions that are smaller where limits would be broken, and as they are elsewhere."""
        broken = self.excess(coefficients) > 0.0
        shrunk = np.array(coefficients)
        if broken.any():
            shrunk[broken] *= largest_factors(self.excess, shrunk[broken], 1.0)[:, None]
        return shrunk

    def force_noise(self, given: Mapping[str, float]) -> dict[str, float]:
        """Errors of all joints' forces: a hundredth of what a usual motion needs, unless given."""
        usual = self.largest(np.array(list(self.drive.usual().values())))
        allowed = np.any(usual != 0.0, axis=1)
        if not allowed.any():
            self.refuse()
        motions = self.drive.motions(self.experiment, usual[allowed][:1])
        return {**typical_force_noise(self.experiment, motions), **given}

    def refuse(self) -> NoReturn:
        """Raise, with the reason why there is no motion."""
        still = self._names(np.zeros((1, self.drive.size)))
        if still:
            why = f"already at rest, at the start, {still} is broken"
        else:
            little = SMALLEST * np.array(list(self.drive.usual().values()))
            why = f"even the smallest of the usual motions breaks {self._names(little) or 'one of them'}"
        raise DesignError(f"the limits allow no motion: {why}; widen them, or choose another start")

    def _names(self, coefficients: Coefficients) -> str:
        """Limits that motions break, in words."""
        motions = self.drive.motions(self.experiment, coefficients)
        return " and ".join(broken(self.experiment, self.setup.limits, motions))

    def identifiable(self, halved: Experiment, given: Float[np.ndarray, "p p"]) -> Identifiable:
        """What motions can tell, from some usual and random ones; ``halved`` has half the time-step."""
        some = self.largest(self._tried(POOLED))
        some = some[np.any(some != 0.0, axis=1)]
        if not len(some):
            self.refuse()
        together = tuple(exactly(e, self.drive.motions(e, some)).sum(axis=0) for e in (self.experiment, halved))
        return identifiable(self.experiment.labels, self.experiment.scale, (together[0], together[1]), given)

    def survey(self, known: Identifiable) -> list[Float[np.ndarray, " n"]]:
        """Starts of the search, the best first."""
        starts = self.largest(self._tried(DRAWN))
        starts = starts[np.any(starts != 0.0, axis=1)]
        if not len(starts):
            self.refuse()
        told_by = informations(self.experiment, self.drive.motions(self.experiment, starts))
        objectives = known.objectives(told_by, self.settings.criterion)
        return [starts[i] for i in np.argsort(objectives.max(axis=1))]

    def _tried(self, count: int) -> Coefficients:
        """The usual motions, and random ones up to a number."""
        random = np.random.default_rng(self.settings.seed)
        usual = list(self.drive.usual().values())
        return np.array([*usual, *(self.drive.drawn(random) for _ in range(count - len(usual)))])

    def refine(self, known: Identifiable, ranked: Sequence[Float[np.ndarray, " n"]], say: Progress) -> Competition:
        """The search from the best starts."""

        def evaluate(coefficients: Coefficients) -> tuple[np.ndarray, np.ndarray]:
            motions = self.drive.motions(self.experiment, coefficients)
            objectives = known.objectives(informations(self.experiment, motions), self.settings.criterion)
            return objectives, self._broken(coefficients, motions) + MARGIN

        starts = ranked[: self.settings.starts]

        def report(number: int, best: Candidate) -> None:
            bar = 100.0 * np.exp(best.objective)
            say(f"start {number + 1} of {len(starts)}: {self.settings.criterion} {bar:.3g} %")

        return compete(evaluate, starts, self.settings.evaluations, self.settings.seconds, report)
