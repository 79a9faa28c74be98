"""The result of a fit over many recordings."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.result import IDENTIFIABLE, ParameterEstimate
from shadowfit.estimation.solve.levenberg_marquardt import Iteration, Outcome, Status
from shadowfit.mechanism.mechanism import Mechanism


@dataclasses.dataclass(frozen=True)
class Spread:
    """How much a parameter scatters about its mean, from recording to recording."""

    name: str
    value: float
    """ω, in the parameter's unit."""
    std: float
    """Its standard deviation."""


@dataclasses.dataclass(frozen=True)
class Individuals:
    """What belongs to each recording."""

    recordings: tuple[str, ...]
    names: tuple[str, ...]
    """Own parameters."""
    values: Float[np.ndarray, "n q"]
    std: Float[np.ndarray, "n q"]
    chi: Float[np.ndarray, " n"]
    """Weighted squares of the residuals divided by the number of samples: large where the model does not fit."""


@dataclasses.dataclass(frozen=True)
class FleetEstimate:
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
    def status(self) -> Status:
        """How the fit ended."""
        return self.outcome.status

    @property
    def converged(self) -> bool:
        """Whether a minimum was reached."""
        return self.status.converged

    @property
    def log(self) -> tuple[Iteration, ...]:
        """One entry for each iteration."""
        return self.outcome.log

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
        spread = self.common.spread
        variance = np.diagonal(self.noise_covariance)
        if len(self.individuals.recordings) > 2 * len(variance):
            variance = np.maximum(variance, np.diagonal(self.disagreement))
        std = np.where(self.at_bound, np.nan, np.sqrt(variance))
        units = [p.unit for p in self.common.parameters for _ in range(p.size)]
        vector, starts = self.common.vector(values), self.common.vector(self.common.start())
        scale = np.maximum(spread(lambda p: p.scale), np.abs(self.common.flat(values)))
        lower, upper = spread(lambda p: p.lower), spread(lambda p: p.upper)
        return tuple(
            ParameterEstimate(
                label,
                float(vector[i]),
                float(std[i]),
                units[i],
                float(starts[i]),
                float(lower[i]),
                float(upper[i]),
                bool(self.at_bound[i]),
                bool(self.at_bound[i] or std[i] < IDENTIFIABLE * scale[i]),
            )
            for i, label in enumerate(self.common.labels())
        )
