"""Noise levels from the data: the state weight κ and the sensors' standard deviations by (approximate) maximum likelihood.

With impulse noise of variance ``σ_p²`` and sensor noise ``σ_i²`` the Laplace approximation of the marginal likelihood, states and parameters integrated out, is

    −2 log L = Σ_k S_k/σ_k² + log det H − Σ_k N_k log(1/σ_k²) + const,     H = Σ_k J_kᵀJ_k/σ_k²,

for the groups k of residuals (dynamics, each sensor) with sums of squares ``S_k`` and ``N_k`` residuals. It is stationary where

    σ_k² = S_k/(N_k − γ_k),     γ_k = ∂ log det H/∂ log(1/σ_k²),

γ_k being the number of unknowns that group k determines (they sum to all unknowns). Solving and re-weighting alternate from κ = 100 on, each solve started from the last one, which is
also how a large κ is reached without crawling.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation import front, objective
from shadowfit.estimation.levenberg_marquardt import LevenbergMarquardt, Outcome, Progress, Status, minimise
from shadowfit.estimation.objective import Linearisation, Point, Weights
from shadowfit.estimation.problem import Problem

FIRST_STATE_WEIGHT = 100.0
MAX_ROUNDS = 12
# Relative change of a weight by which log det H is differentiated.
DIFFERENCE = 1e-3
# Noise levels (standard deviations) have settled when they change by less than this fraction.
SETTLED = 0.05
# Largest factor by which a standard deviation may change in one round.
LARGEST_CHANGE = 10.0
# The dynamics' noise cannot be told from zero when fewer than this many of its residuals are left undetermined.
FEWEST_RESIDUALS = 2.0
# Iterations of a round: the noise levels need no finished fit.
ROUND_ITERATIONS = 3
# Damping to start a round from the solution of the last one.
WARM_DAMPING = 1e-6


@dataclasses.dataclass(frozen=True)
class NoiseLevels:
    """Ratios of the estimated standard deviations to those assumed in the weights."""

    dynamics: float
    sensors: tuple[float, ...]
    undetermined: float
    """N − γ of the dynamics."""


def estimate_noise(
    problem: Problem, start: Point, settings: LevenbergMarquardt, progress: Progress | None = None
) -> tuple[Outcome, Weights]:
    """Alternate fits and re-weighting until the noise levels settle; the last fit and its weights."""
    weights = objective.default_weights(problem, FIRST_STATE_WEIGHT)
    outcome = minimise(problem, start, weights, settings, progress)
    log = list(outcome.log)

    def go_on(outcome: Outcome, weights: Weights, iterations: int) -> Outcome:
        warm = dataclasses.replace(settings, start_damping=WARM_DAMPING, max_iterations=iterations)
        point, number = outcome.linearisation.point, log[-1].number
        following = minimise(problem, point, weights, warm, progress, first_number=number)
        log.extend(following.log[1:])
        return following

    for _ in range(MAX_ROUNDS if outcome.status.converged else 0):
        levels = noise_levels(problem, outcome.linearisation, weights)
        changes = np.clip([levels.dynamics, *levels.sensors], 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)
        settled = bool(np.max(np.abs(np.log(changes))) < SETTLED) or levels.undetermined < FEWEST_RESIDUALS
        if not settled:
            weights = _reweighted(weights, float(changes[0]), changes[1:])
        following = go_on(outcome, weights, settings.max_iterations if settled else ROUND_ITERATIONS)
        if following.status in (Status.NUMERICS, Status.STUCK):
            break
        outcome = following
        if settled or outcome.status is Status.INTERRUPTED:
            break
    return dataclasses.replace(outcome, log=tuple(log)), weights


def noise_levels(problem: Problem, here: Linearisation, weights: Weights) -> NoiseLevels:
    """One evaluation of the stationarity conditions at a solution."""
    base = _log_determinant(problem, here)
    scale = weights.reference**2
    rates = []
    for changed in _changed_weights(weights):
        there = objective.linearise(problem, here.point, changed)
        rates.append((_log_determinant(problem, there) - base) / np.log1p(DIFFERENCE))
    sizes = [sensor.error_size() for sensor in problem.mechanism.sensors.values]
    counts = [
        sum(int(track.present[i].sum()) for track in problem.tracks) * size for i, size in enumerate(sizes)
    ]
    sums = np.sum([np.array(parts) for parts in here.cost.sensors], axis=0)
    sensors = tuple(
        float(np.sqrt(max(total, 1e-300) / scale / max(count - rate, 1.0))) if count else 1.0
        for total, count, rate in zip(sums, counts, rates[1:], strict=True)
    )
    rows = sum(track.steps for track in problem.tracks) * weights.dynamics.shape[0]
    rows *= 2 if problem.plan.unknowns == "full" else 1
    undetermined = rows + _start_rank(problem) - rates[0]
    dynamics = np.sqrt((sum(here.cost.dynamics) + here.cost.start) / scale / max(undetermined, FEWEST_RESIDUALS))
    return NoiseLevels(float(dynamics), sensors, float(undetermined))


def _start_rank(problem: Problem) -> int:
    """Rows of the initial residuals that are not redundant, counted as all gap rows of two nodes."""
    rows = sum(joint.kind.row_count() for joint in problem.mechanism.joints.values)
    return 2 * min(rows, 6 * len(problem.mechanism.bodies)) * len(problem.tracks)


def _changed_weights(weights: Weights) -> list[Weights]:
    """The weights with each group's inverse variance raised a little, the dynamics' first."""
    more = np.sqrt(1.0 + DIFFERENCE)
    changed = [dataclasses.replace(weights, dynamics=more * weights.dynamics)]
    for i in range(len(weights.std)):
        std = tuple(s / more if i == j else s for j, s in enumerate(weights.std))
        changed.append(dataclasses.replace(weights, std=std))
    return changed


def _reweighted(weights: Weights, dynamics: float, sensors: np.ndarray) -> Weights:
    std = np.array(weights.std) * weights.reference * sensors
    reference = float(np.exp(np.mean(np.log(std))))
    factor = reference / (weights.reference * dynamics)
    return Weights(factor * weights.dynamics, tuple((std / reference).tolist()), reference)


def _log_determinant(problem: Problem, here: Linearisation) -> float:
    """log det of the normal matrix of all states and of the parameters that are not on a bound."""
    parameters = problem.parameters
    factors = [front.factorise(normal, objective.unseen(normal)) for normal in here.normals]
    places = [parameters.places(i) for i in range(len(factors))]
    reduced = front.join([factor.reduced() for factor in factors], places, parameters.size)
    lower, upper = parameters.bounds(here.point.values)
    free = (lower < 0.0) & (upper > 0.0)
    matrix = (reduced.matrix + np.diag(here.prior_matrix))[np.ix_(free, free)]
    scale = parameters.spread(lambda p: p.scale)[free]
    values = np.linalg.eigvalsh(matrix * np.outer(scale, scale))
    # Directions without information drop out of the derivative, as they should: they are no unknowns of the data.
    floor = np.finfo(float).eps * values.max(initial=1e-300) * max(len(values), 1)
    total = float(np.sum(np.log(np.maximum(values, floor))))
    for factor in factors:
        for chunk in factor.chunks:
            diagonal = np.diagonal(np.asarray(chunk.lower), axis1=1, axis2=2)
            total += 2.0 * float(np.sum(np.log(diagonal)))
    return total
