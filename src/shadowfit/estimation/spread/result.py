"""The result of a fit over many recordings."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.result import IDENTIFIABLE, Accuracy, Ended, ParameterEstimate, tabulate
from shadowfit.estimation.solve.levenberg_marquardt import Outcome
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record


@record(frozen=True)
class Spread:
    """How much a parameter scatters about its mean, from recording to recording."""

    name: str
    value: float
    """ω, in the parameter's unit."""
    std: float
    """Its standard deviation."""


@record(frozen=True)
class Individuals:
    """What belongs to each recording."""

    recordings: tuple[str, ...]
    names: tuple[str, ...]
    """Individual parameters."""
    values: Float[np.ndarray, "n q"]
    std: Float[np.ndarray, "n q"]
    chi: Float[np.ndarray, " n"]
    """Weighted squares of the residuals divided by the number of samples: large where the model does not fit."""


@record(frozen=True)
class FleetEstimate(Ended):
    """What a fit over many recordings found."""

    model: Mechanism
    """As it was given."""
    common: ParameterSet
    outcome: Outcome
    weights: Weights
    information: Float[np.ndarray, "d d"]
    """Of the common parameters, as inverse variance."""
    noise_covariance: Float[np.ndarray, "d d"]
    """Of the common parameters, by the noise of the fit."""
    disagreement: Float[np.ndarray, "d d"]
    """Of the common parameters, by how much the recordings disagree."""
    at_bound: Bool[np.ndarray, " d"]
    spreads: tuple[Spread, ...]
    individuals: Individuals
    seconds: float

    @property
    def values(self) -> dict[str, Any]:
        """Common parameters by name; means of what scatters."""
        return self.common.named(self.outcome.linearisation.point.values)

    def mechanism(self) -> Mechanism:
        """The model at the common values."""
        followers = self.common.followers(self.outcome.linearisation.point.values)
        return self.model.write({**self.values, **followers})

    @functools.cached_property
    def parameters(self) -> tuple[ParameterEstimate, ...]:
        """The table of common parameters.

        Standard deviations are the larger of those by the noise and, where there are enough recordings, of those by
        their disagreement.
        """
        values = self.outcome.linearisation.point.values
        variance = np.diagonal(self.noise_covariance)
        if len(self.individuals.recordings) > 2 * len(variance):
            variance = np.maximum(variance, np.diagonal(self.disagreement))
        std = np.where(self.at_bound, np.nan, np.sqrt(variance))
        scale = np.maximum(self.common.scales, np.abs(self.common.flat(values)))
        identifiable = self.at_bound | (std < IDENTIFIABLE * scale)
        return tabulate(self.common, values, Accuracy(std, self.at_bound, identifiable, np.full_like(std, np.inf)))
