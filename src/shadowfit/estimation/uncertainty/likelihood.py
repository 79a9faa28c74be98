"""How likely noise levels are, states and parameters integrated out (Laplace's approximation).

    −2 log L = Σ_g S_g/σ_g² + log det H − 2 Σ_k log|det A_k| + Σ_g N_g log σ_g² + const,     H = Σ_g J_gᵀJ_g/σ_g²,

for the groups g of residuals (equations of motion, sensors, and what bodies are off a model file's where that is a
prior) with sums of squares ``S_g`` and ``N_g`` residuals.

Fits at different levels have different parameters, and with them another inertia A, which H carries: ``log det H`` of
two fits differs by ``2 Σ_k log|det A_k|`` for no reason but their units. That is taken off (it is the determinant of
:mod:`uncertainty.determinant` as a whole). Without it the most likely machine is one without mass, whose readings have
no noise: every error of an encoder is then a motion that takes no force.
"""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.axis_noise import shaping
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sensor_limits import sensor_limits, stated_std
from shadowfit.estimation.problem.sticking import all_told, left_open
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import WARM_DAMPING
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.proposal import propose
from shadowfit.estimation.uncertainty.determinant import log_volume


def deviance(
    problem: Problem,
    here: Linearisation,
    weights: Weights,
    adapt: bool = True,
    change: float = 0.0,
    volume: bool = True,
) -> tuple[float, float]:
    """−2 log L of the noise levels, up to a constant, and the factor on all of them.

    The factor is the most likely one (or one, unless ``adapt``), as far as the stated noise of the sensors allows it.
    ``change``: of the cost, by a step that is thought to be made. ``volume``: with the determinants of A, which are the
    same for all levels at one point of one problem.
    """
    reference = weights.reference
    unknowns = sum(problem.plan.node_size * problem.node_count(i) for i in range(len(problem.tracks)))
    unknowns += int(_free(problem, here).sum())
    dynamics, samples = _dynamics_count(problem), _sample_counts(problem)
    counted = all_told(problem, here.point, weights)
    freedom = max(dynamics - left_open(counted) + sum(samples) - unknowns, 1.0)
    squares = (here.cost.total + change) / reference**2
    ratio = np.array(weights.std) * reference / stated_std(problem)
    least, most = sensor_limits(problem)
    limits = float(np.max(least / ratio)), float(np.min(most / ratio))
    scale = float(np.clip(np.sqrt(max(squares, 0.0) / freedom), *limits)) if adapt else 1.0
    total = squares / scale**2 + 2.0 * freedom * np.log(scale)
    total += log_determinant(problem, here) - 2.0 * unknowns * np.log(reference)
    if volume:
        total -= 2.0 * log_volume(problem, here.point)
    each = 2.0 * np.linalg.slogdet(weights.dynamics / reference)[1] / len(weights.dynamics)
    total -= dynamics * each
    total -= 2.0 * sum(float(np.sum(np.log(own))) for own in counted)
    for index in range(len(problem.tracks)):
        shaped = shaping(here.point, weights, index)
        if shaped is not None:
            total -= 2.0 * shaped.log_volume * (problem.plan.node_size // len(weights.dynamics))
    for std, count in zip(weights.std, samples, strict=True):
        total += 2.0 * count * np.log(std * reference)
    if np.isfinite(weights.file_spread):
        total += 2.0 * problem.parameters.unknown_bodies.places.size * np.log(weights.file_spread)
    return float(total), scale


def stepped_deviance(problem: Problem, point: Point, weights: Weights) -> float:
    """−2 log L where the equations are linearised at a point and the step that they ask for is thought to be made.

    Without the determinants of A: to compare levels at one point.
    """
    here = objective.linearise(problem, point, weights)
    step = propose(problem, here, WARM_DAMPING, "scaled")
    return np.inf if step is None else deviance(problem, here, weights, change=step.change, volume=False)[0]


def _sample_counts(problem: Problem) -> list[int]:
    counts = (sum(int(t.present[i].sum()) for t in problem.tracks) for i in range(len(problem.error_sizes)))
    return [count * size for count, size in zip(counts, problem.error_sizes, strict=True)]


def _dynamics_count(problem: Problem) -> int:
    """Residuals weighted by κ: the dynamics, and the gap rows of the first two states."""
    rows = sum(track.steps for track in problem.tracks) * problem.plan.node_size
    return rows + problem.start_count * len(problem.tracks)


def _free(problem: Problem, here: Linearisation) -> np.ndarray:
    lower, upper = problem.parameters.bounds(here.point.values)
    return (lower < 0.0) & (upper > 0.0)


def log_determinant(problem: Problem, here: Linearisation) -> float:
    """log det of the normal matrix of all states and of the parameters that are not on a bound."""
    parameters = problem.parameters
    factors = [objective.undamped(normal)[0] for normal in here.normals]
    places = [parameters.places(i) for i in range(len(factors))]
    reduced = front.join([factor.reduced() for factor in factors], places, parameters.size)
    free = _free(problem, here)
    matrix = (reduced.matrix + here.prior_matrix)[np.ix_(free, free)]
    scale = parameters.scales[free]
    values = np.linalg.eigvalsh(matrix * np.outer(scale, scale))
    # Directions without information are no unknowns of the data: a floor keeps them from counting.
    floor = np.finfo(float).eps * values.max(initial=1e-300) * max(len(values), 1)
    total = float(np.sum(np.log(np.maximum(values, floor)) - 2.0 * np.log(scale)))
    return total + sum(factor.log_determinant() for factor in factors)
