"""Error bars of the common parameters and of spreads, from what the recordings say (:mod:`evidence`)."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.box_step import solve_on
from shadowfit.estimation.solve.levenberg_marquardt import Outcome
from shadowfit.estimation.spread import evidence
from shadowfit.estimation.spread.evidence import Scatter, Sums
from shadowfit.estimation.spread.system import SpreadSystem
from shadowfit.estimation.uncertainty.evidence import AT_BOUND
from shadowfit.records import record


@record(frozen=True)
class Judgement:
    """What all recordings say about the common parameters, about their own, and how much these scatter."""

    information: Float[np.ndarray, "d d"]
    covariance: Float[np.ndarray, "d d"]
    """By the noise, in units of σ₀²."""
    disagreeing: Float[np.ndarray, "d d"]
    """By what the recordings disagree."""
    free: np.ndarray
    scatter: Scatter
    inverse: Float[np.ndarray, "d d"]
    """H⁻¹, in units of σ₀²."""
    each: list[evidence.Individual]
    reference: float

    def spreads(self, count: int, spread: np.ndarray, least: np.ndarray) -> np.ndarray:
        """The spreads that the recordings make more likely."""
        # Individual parameters scatter about a mean that was estimated from them: of one recording nothing is told.
        degrees = np.maximum(count - self.scatter.variances * self.reference**2 / spread**2, 1e-3 * count)
        return np.maximum(np.sqrt(self.scatter.squares / degrees), least)

    def spread_std(self, spread: np.ndarray) -> np.ndarray:
        """Standard deviations of spreads."""
        if not len(spread):
            return spread
        information = self.scatter.information(self.inverse) / self.reference**4
        inverse = solve_on(information, np.ones(len(spread), bool), np.eye(len(spread)))
        if inverse is None:
            return np.full(len(spread), np.nan)
        return np.sqrt(np.diagonal(inverse)) / (2.0 * spread)


def judged(system: SpreadSystem, outcome: Outcome) -> Judgement:
    """What the recordings say at the end of a descent."""
    here, engine, reference = outcome.linearisation, system.engine, system.task.reference
    witnesses = engine.each(evidence.testify, system.problems, here.linears, shared=(system.placed, system.weights))
    total: Sums = engine.total(evidence.sums, witnesses)
    prior = here.prior_matrix
    lower, upper = system.parameters.bounds(here.point.values)
    slack = AT_BOUND * system.parameters.scales
    free = ~((lower >= -slack) | (upper <= slack))
    information = total.information + prior
    inverse = _inverse(information, free, system)
    covariance = inverse @ (total.noise + prior) @ inverse
    disagreeing = inverse @ total.scores @ inverse / reference**2
    by_shard = engine.gather(evidence.individuals, witnesses, shared=(system.placed, inverse, covariance))
    scatter = by_shard[0][1]
    for _, part in by_shard[1:]:
        scatter = scatter + part
    each = [one for some, _ in by_shard for one in some]
    return Judgement(information, covariance, disagreeing, free, scatter, inverse, each, reference)


def _inverse(information: np.ndarray, free: np.ndarray, system: SpreadSystem) -> np.ndarray:
    """H⁻¹ on the free parameters; those that the data do not tell have a weak information of their own."""
    scale = system.parameters.scales
    least = evidence.LEAST_INFORMATION * system.weights.reference**2 / scale**2
    inverse = solve_on(information + np.diag(least), free, np.eye(len(free)))
    return np.zeros_like(information) if inverse is None else inverse
