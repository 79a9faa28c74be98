"""Quadratic model of a recording, from which its individual parameters are eliminated as its states are.

With the states gone, a recording leaves a quadratic model of its parameters. Those that scatter about a mean μ with
variance ω² add ``λ (θ + δθ − μ − δμ)²``, ``λ = σ₀²/ω²``, which ties them to the common unknowns c. In these and in the
recording's individual unknowns o,

    value + 2 gᵀδ + δᵀHδ,    δ = (δ_c, δ_o),    H = [A  B; Bᵀ  K],

and what is minimised over δ_o leaves ``A − B K⁻¹ Bᵀ`` for the common ones. Individual parameters that a bound holds
stay where they are in this; given δ_c, their step is found within their box.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.linear.box_step import box_step, solve_on
from shadowfit.estimation.linear.front import Reduced
from shadowfit.estimation.spread.roles import Roles
from shadowfit.records import record


@record(frozen=True)
class Pull:
    """What draws a recording's individual parameters: their priors, and the means that they scatter about."""

    prior: Float[np.ndarray, " q"]
    """Weights of the priors."""
    prior_gradient: Float[np.ndarray, " q"]
    weight: Float[np.ndarray, " q"]
    """λ; zero where there is no mean."""
    distance: Float[np.ndarray, " q"]
    """θ − μ."""

    @property
    def cost(self) -> float:
        """What it adds to the cost."""
        priors = np.divide(self.prior_gradient**2, self.prior, where=self.prior > 0.0, out=np.zeros_like(self.prior))
        return float(np.sum(priors) + np.sum(self.weight * self.distance**2))

    def change(self, individual: Float[np.ndarray, " q"], mean: Float[np.ndarray, " q"]) -> float:
        """How that changes with steps of the individual parameters and of their means."""
        step = individual - mean
        prior = 2.0 * self.prior_gradient @ individual + individual @ (self.prior * individual)
        return float(prior + np.sum(self.weight * step * (2.0 * self.distance + step)))


@record(frozen=True)
class Model:
    """Quadratic model of a recording in the common unknowns and its own."""

    common: Float[np.ndarray, "d d"]
    across: Float[np.ndarray, "d q"]
    individual: Float[np.ndarray, "q q"]
    common_gradient: Float[np.ndarray, " d"]
    individual_gradient: Float[np.ndarray, " q"]

    def eliminated(
        self, free: Bool[np.ndarray, " q"]
    ) -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, " d"], float, Float[np.ndarray, "q d"]] | None:
        """Matrix and gradient that are left for the common unknowns, how much the value falls, and ``∂o/∂c``.

        None if the model is not positive definite in the individual unknowns that are free.
        """
        if not len(self.individual):
            return self.common, self.common_gradient, 0.0, np.zeros((0, len(self.common)))
        right = np.column_stack([self.across.T, self.individual_gradient])
        solved = solve_on(self.individual, free, np.where(free[:, None], right, 0.0))
        if solved is None:
            return None
        follow = -solved[:, :-1]
        matrix = self.common + self.across @ follow
        gradient = self.common_gradient - self.across @ solved[:, -1]
        return 0.5 * (matrix + matrix.T), gradient, float(self.individual_gradient @ solved[:, -1]), follow

    def step(
        self, common: Float[np.ndarray, " d"], lower: Float[np.ndarray, " q"], upper: Float[np.ndarray, " q"]
    ) -> Float[np.ndarray, " q"]:
        """Best step of the individual unknowns in their box for a step of the common ones; none if there is no best."""
        if not len(self.individual):
            return np.zeros(0)
        return box_step(self.individual, self.individual_gradient + self.across.T @ common, lower, upper).step


def model(
    roles: Roles,
    matrix: Float[np.ndarray, "p p"],
    gradient: Float[np.ndarray, " p"],
    pull: Pull,
    damping: Float[np.ndarray, " q"] | float = 0.0,
) -> Model:
    """The model of a recording from what its states have left; ``damping`` is added for its individual parameters."""
    common, across = np.zeros((roles.size, roles.size)), np.zeros((roles.size, len(roles.individual)))
    common_gradient = np.zeros(roles.size)
    common[np.ix_(roles.common, roles.common)] = matrix[np.ix_(roles.shared, roles.shared)]
    across[roles.common] = matrix[np.ix_(roles.shared, roles.individual)]
    common_gradient[roles.common] = gradient[roles.shared]
    individual = matrix[np.ix_(roles.individual, roles.individual)] + np.diag(pull.prior + pull.weight + damping)
    individual_gradient = gradient[roles.individual] + pull.prior_gradient + pull.weight * pull.distance
    tied = roles.scattering
    means = roles.mean[tied]
    common[means, means] += pull.weight[tied]
    across[means, tied] -= pull.weight[tied]
    common_gradient[means] -= pull.weight[tied] * pull.distance[tied]
    return Model(common, across, individual, common_gradient, individual_gradient)


def held(
    gradient: Float[np.ndarray, " q"], lower: Float[np.ndarray, " q"], upper: Float[np.ndarray, " q"]
) -> Bool[np.ndarray, " q"]:
    """Individual parameters that sit on a bound and are pushed against it."""
    return ((lower >= 0.0) & (gradient > 0.0)) | ((upper <= 0.0) & (gradient < 0.0))


def failed(size: int) -> Reduced:
    """In place of a reduced system that does not exist."""
    return Reduced(np.full((size, size), np.nan), np.full(size, np.nan), np.nan, 0.0)
