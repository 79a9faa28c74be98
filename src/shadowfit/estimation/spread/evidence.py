"""What the recordings say about the common parameters, about their own, and how much these scatter.

Information, its noise and scores are reckoned for each recording where it is and added up. Two covariances of the
common parameters follow: by the noise of the fit, ``H⁻¹ M H⁻¹``, and by how much the recordings disagree,
``H⁻¹ (Σ s sᵀ) H⁻¹`` with the score s of each: recordings are independent of each other, whatever the errors within
them are.

The spread ω of a parameter that scatters maximises the restricted likelihood: with the posterior variances v of
``θ − μ``, ``N ω² = Σ [(θ − μ)² + v]``, solved as ``ω² = Σ (θ − μ)²/(N − Σ v/ω²)``, which ends in fewer rounds. Its
standard deviation follows from the expected information of ω², ``½ Σ_ij p_ij²`` with ``p_ii = 1/ω² − v/ω⁴`` for each
recording. Two recordings have ``p_ij = −b_i H⁻¹ b_jᵀ`` because they share their mean, ``b = ∂(θ − μ)/∂c /ω²``: of N
values that are known exactly the spread is known to ``ω/√(2(N − 1))``.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.box_step import solve_on
from shadowfit.estimation.linear.threads import alone
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.spread import quadratic
from shadowfit.estimation.spread.shard import Linear, Task
from shadowfit.estimation.uncertainty.evidence import AT_BOUND, gather
from shadowfit.estimation.uncertainty.residual_covariance import score_variance
from shadowfit.records import record

# Information that an individual parameter is taken to have at least, in units of one over its squared typical size.
LEAST_INFORMATION = 1e-4


@record(frozen=True)
class Witness:
    """What one recording says, its states projected out."""

    model: quadratic.Model
    follow: Float[np.ndarray, "q d"]
    """∂o/∂c."""
    information: Float[np.ndarray, "d d"]
    score: Float[np.ndarray, " d"]
    noise: Float[np.ndarray, "d+q d+q"]
    """Variance of the gradient of the common and of its individual unknowns, in units of σ₀²."""
    values: Float[np.ndarray, " q"]
    free: np.ndarray
    pull: quadratic.Pull
    chi: float


@record(frozen=True)
class Sums:
    """Of many recordings."""

    information: Float[np.ndarray, "d d"]
    noise: Float[np.ndarray, "d d"]
    scores: Float[np.ndarray, "d d"]
    count: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.information + other.information,
            self.noise + other.noise,
            self.scores + other.scores,
            self.count + other.count,
        )


def testify(problem: Problem, linear: Linear, task: Task, weights: Weights) -> tuple[Witness, ...]:
    """The recordings of a shard, one by one."""
    with alone():
        evidence = gather(problem, linear.here, weights)
        witnesses = []
        for i, (layout, projection) in enumerate(zip(evidence.layouts, evidence.projections, strict=True)):
            information = projection.information
            noise = information if weights.believed else score_variance(layout, projection, weights.impulse_ratio, 1.0)
            witnesses.append(_witness(problem, linear, task, i, (information, noise, projection.gradient)))
        return tuple(witnesses)


def _witness(
    problem: Problem, linear: Linear, task: Task, recording: int, local: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> Witness:
    """From a recording's information, variance of the score and score, for its parameters as it sees them."""
    roles, here, pull = task.roles, linear.here, linear.pulls[recording]
    places = problem.parameters.places(recording)[roles.individual]
    scale = problem.parameters.scales[places]
    flat = problem.parameters.flat(here.point.values)[places]
    lower, upper = (bound[places] for bound in problem.parameters.bounds(here.point.values))
    free = ~((lower >= -AT_BOUND * scale) | (upper <= AT_BOUND * scale))
    information, noise, gradient = local
    unknown = LEAST_INFORMATION * task.reference**2 / np.maximum(scale, np.abs(flat)) ** 2
    model = quadratic.model(roles, information, gradient, pull, unknown)
    eliminated = model.eliminated(free)
    assert eliminated is not None, "information is not negative, and never zero here"
    matrix, score, _, follow = eliminated
    spread = quadratic.model(roles, noise, np.zeros_like(gradient), pull)
    sensors, samples = here.cost.sensors[recording], max(_samples(problem, recording), 1)
    return Witness(
        model,
        follow,
        matrix,
        score,
        np.block([[spread.common, spread.across], [spread.across.T, spread.individual]]),
        flat,
        free,
        pull,
        (here.cost.dynamics[recording] + sum(sensors)) / task.reference**2 / samples,
    )


def _samples(problem: Problem, recording: int) -> int:
    present = zip(problem.tracks[recording].present, problem.error_sizes, strict=True)
    return sum(int(here.sum()) * size for here, size in present)


def sums(witnesses: tuple[Witness, ...]) -> Sums:
    """Of the recordings of a shard, in order."""
    nothing = np.zeros_like(witnesses[0].information)
    total = Sums(nothing, nothing, nothing, 0)
    for one in witnesses:
        both = np.concatenate([np.eye(len(one.information)), one.follow])
        total = total + Sums(one.information, both.T @ one.noise @ both, np.outer(one.score, one.score), 1)
    return total


@record(frozen=True)
class Individual:
    """A recording's individual parameters, and how well it is explained."""

    values: Float[np.ndarray, " q"]
    std: Float[np.ndarray, " q"]
    chi: float
    """Weighted squares of its residuals divided by the number of its samples: about one, or less."""


@record(frozen=True)
class Scatter:
    """Of those that scatter, over many recordings."""

    squares: Float[np.ndarray, " k"]
    """Σ (θ − μ)²."""
    variances: Float[np.ndarray, " k"]
    """Σ v."""
    precision: Float[np.ndarray, "k k"]
    """Σ p_ii², less what the last term has of them."""
    shared: Float[np.ndarray, "k d d"]
    """Σ bᵀb."""

    def __add__(self, other: Scatter) -> Scatter:
        return Scatter(
            self.squares + other.squares,
            self.variances + other.variances,
            self.precision + other.precision,
            self.shared + other.shared,
        )

    def information(self, inverse: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "k k"]:
        """Of the ω²: ``½ Σ_ij p_ij²``, in units of σ₀⁻⁴."""
        through = self.shared @ inverse
        return 0.5 * (self.precision + np.einsum("aij,bji->ab", through, through))


def individuals(
    witnesses: tuple[Witness, ...], task: Task, inverse: Float[np.ndarray, "d d"], covariance: Float[np.ndarray, "d d"]
) -> tuple[list[Individual], Scatter]:
    """Individual parameters of each recording of a shard, and their scatter.

    Args:
        witnesses: the recordings.
        task: of the fit.
        inverse: H⁻¹ of the common parameters.
        covariance: theirs, in units of σ₀².
    """
    tied = task.roles.scattering
    k = len(tied)
    listed, scatter = [], Scatter(np.zeros(k), np.zeros(k), np.zeros((k, k)), np.zeros((k, *inverse.shape)))
    means = np.zeros((len(task.roles.individual), task.roles.size))
    means[tied, task.roles.mean[tied]] = 1.0
    for one in witnesses:
        inverse_alone = solve_on(one.model.individual, one.free, np.eye(len(one.values)))
        assert inverse_alone is not None, "as in testify"
        d = len(one.information)
        spread = inverse_alone @ one.noise[d:, d:] @ inverse_alone + one.follow @ covariance @ one.follow.T
        std = np.where(one.free, task.reference * np.sqrt(np.maximum(np.diagonal(spread), 0.0)), np.nan)
        listed.append(Individual(one.values, std, one.chi))
        apart = one.follow - means
        # In units of σ₀²: λ⁻¹ is ω² then.
        left = (inverse_alone + apart @ inverse @ apart.T)[np.ix_(tied, tied)]
        weight = one.pull.weight[tied]
        slope = weight[:, None] * apart[tied]
        precision = (np.diag(weight) - weight[:, None] * left * weight) ** 2 - (slope @ inverse @ slope.T) ** 2
        shared = slope[:, :, None] * slope[:, None]
        scatter = scatter + Scatter(one.pull.distance[tied] ** 2, np.diagonal(left).copy(), precision, shared)
    return listed, scatter
