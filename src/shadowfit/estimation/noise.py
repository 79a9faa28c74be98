"""Noise levels from the data: the state weight κ and the sensors' noise by (approximate) maximum likelihood.

With impulse noise of variance ``σ_p²`` and sensor noise ``σ_i²`` the Laplace approximation of the marginal likelihood,
states and parameters integrated out, is

    −2 log L = Σ_k S_k/σ_k² + log det H − Σ_k N_k log(1/σ_k²) + const,     H = Σ_k J_kᵀJ_k/σ_k²,

for the groups k of residuals (dynamics, each sensor) with sums of squares ``S_k`` and ``N_k`` residuals. For given κ
it is stationary in the sensors' levels where

    σ_i² = S_i/(N_i − γ_i),     γ_i = ∂ log det H/∂ log(1/σ_i²),

γ_i being the number of unknowns that the sensor determines. κ itself is scanned upwards by decades, from a value that
allows errors of a hundredth of the impulses that the motion shows (100 for a machine like the paper's, more for a
smaller one). Each fit starts from the last one, which is also how a large κ is reached without crawling; downwards
only if the first step up is worse. (Iterating the same condition for κ instead of scanning converges slowly, and from a
small κ, where the states follow the noise, to a wrong solution.)
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation import front, objective
from shadowfit.estimation.evidence import gather
from shadowfit.estimation.levenberg_marquardt import LevenbergMarquardt, Outcome, Progress, Status, minimise
from shadowfit.estimation.objective import Linearisation, Point, Weights
from shadowfit.estimation.problem import Problem
from shadowfit.geometry.differences import differences

# Errors of the dynamics at the first κ, as a fraction of the impulses of a time step.
FIRST_ERROR = 0.01
# Bodies that move less than this, relative to the others, are at rest: their impulses are noise.
REST = 1e-6
# Factor between neighbouring values of κ in the scan, and its limits.
STEP = 10.0
LARGEST, SMALLEST = 1e10, 1e-2
# The scan goes on while −2 log L falls by more than this: a smaller gain is no evidence.
EVIDENCE = 2.0
# Largest factor by which a sensor's standard deviation may change at once.
LARGEST_CHANGE = 10.0
# Most iterations at each κ of the scan. A fit that is not finished is less likely than it could be: with three
# iterations the scan ended four decades too low on recordings without process noise (docs/benchmarks.md).
SCAN_ITERATIONS = 12
# Damping to start from the solution of the κ before.
WARM_DAMPING = 1e-6


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A fit at one κ, with the sensors' noise adapted to it."""

    outcome: Outcome
    weights: Weights
    state_weight: float
    deviance: float
    """−2 log L up to a constant."""


def estimate_noise(
    problem: Problem, start: Point, settings: LevenbergMarquardt, progress: Progress | None = None
) -> tuple[Outcome, Weights]:
    """Scan κ and adapt the sensors' noise; the fit at the most likely values, and its weights."""
    first = first_state_weight(problem, start)
    weights = objective.default_weights(problem, first)
    outcome = minimise(problem, start, weights, settings, progress)
    log = list(outcome.log)
    if not outcome.status.converged:
        return outcome, weights

    def go_on(outcome: Outcome, weights: Weights, iterations: int) -> Outcome:
        warm = dataclasses.replace(settings, start_damping=WARM_DAMPING, max_iterations=iterations)
        following = minimise(problem, outcome.linearisation.point, weights, warm, progress, first_number=log[-1].number)
        log.extend(following.log[1:])
        return following

    def adapted(outcome: Outcome, weights: Weights, state_weight: float) -> _Candidate:
        outcome = go_on(outcome, weights, SCAN_ITERATIONS)
        weights = _with_sensors(weights, sensor_levels(problem, outcome.linearisation, weights), state_weight)
        outcome = go_on(outcome, weights, SCAN_ITERATIONS)
        return _Candidate(outcome, weights, state_weight, deviance(problem, outcome.linearisation, weights))

    best = adapted(outcome, weights, first)
    for factor in (STEP, 1.0 / STEP):
        current, moved = best, False
        while SMALLEST <= current.state_weight * factor <= LARGEST and _usable(current.outcome):
            state_weight = current.state_weight * factor
            current = adapted(current.outcome, _with_state_weight(current.weights, state_weight), state_weight)
            if not current.deviance < best.deviance - EVIDENCE:
                break
            best, moved = current, True
        if moved:
            break
    final = go_on(best.outcome, best.weights, settings.max_iterations)
    chosen = final if _usable(final) else best.outcome
    return dataclasses.replace(chosen, log=tuple(log)), best.weights


def first_state_weight(problem: Problem, start: Point) -> float:
    """A decade of κ at which errors of the dynamics are a hundredth of the typical impulse of a step [N s, N m s]."""
    sizes = []
    for nodes in start.nodes:
        velocity = differences(nodes.pose[1:], nodes.pose[:-1]) / problem.timestep
        change = np.sqrt(np.mean(np.diff(velocity, axis=0).reshape(len(velocity) - 1, -1, 2, 3) ** 2, axis=(0, 3)))
        for body, (straight, turning) in zip(problem.mechanism.bodies.values, change, strict=True):
            inertia = float(np.trace(np.asarray(body.inertia.matrix()))) / 3.0
            sizes += [float(body.mass) * straight, inertia * turning]
    moving = [size for size in sizes if size > REST * max(sizes)]
    typical = np.exp(np.mean(np.log(moving))) if moving else 1.0
    reference = objective.default_weights(problem, 1.0).reference
    return float(np.clip(10.0 ** np.round(2.0 * np.log10(reference / (FIRST_ERROR * typical))), SMALLEST, LARGEST))


def _usable(outcome: Outcome) -> bool:
    return outcome.status not in (Status.NUMERICS, Status.STUCK, Status.INTERRUPTED)


def sensor_levels(problem: Problem, here: Linearisation, weights: Weights) -> np.ndarray:
    """Ratio of each sensor's most likely standard deviation to the one assumed, at the present κ.

    ``N_i − γ_i`` are the sensor's degrees of freedom, from the leverages of its residuals.
    """
    found = [noise.level() / weights.reference for noise in gather(problem, here, weights).noise[1:]]
    levels = [level if np.isfinite(level) and level > 0.0 else 1.0 for level in found]
    return np.clip(levels, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)


def deviance(problem: Problem, here: Linearisation, weights: Weights) -> float:
    """−2 log L of the noise levels, up to a constant."""
    reference = weights.reference
    unknowns = sum(6 * len(problem.mechanism.bodies) * problem.node_count(i) for i in range(len(problem.tracks)))
    unknowns *= 2 if problem.plan.unknowns == "full" else 1
    total = here.cost.total / reference**2
    total += log_determinant(problem, here) - 2.0 * (unknowns + _free(problem, here).sum()) * np.log(reference)
    state_weight = weights.state_weight
    total -= _dynamics_count(problem) * np.log(state_weight / reference**2)
    for std, count in zip(weights.std, _sample_counts(problem), strict=True):
        total += 2.0 * count * np.log(std * reference)
    return float(total)


def _sample_counts(problem: Problem) -> list[int]:
    sizes = [sensor.error_size() for sensor in problem.mechanism.sensors.values]
    return [sum(int(t.present[i].sum()) for t in problem.tracks) * size for i, size in enumerate(sizes)]


def _dynamics_count(problem: Problem) -> int:
    """Residuals weighted by κ: the dynamics, and the gap rows of the first two states."""
    size = 6 * len(problem.mechanism.bodies)
    rows = sum(track.steps for track in problem.tracks) * size * (2 if problem.plan.unknowns == "full" else 1)
    gaps = sum(joint.kind.row_count() for joint in problem.mechanism.joints.values)
    return rows + 2 * min(gaps, size) * len(problem.tracks)


def _with_state_weight(weights: Weights, state_weight: float) -> Weights:
    return dataclasses.replace(weights, dynamics=np.sqrt(state_weight / weights.state_weight) * weights.dynamics)


def _with_sensors(weights: Weights, levels: np.ndarray, state_weight: float) -> Weights:
    std = np.array(weights.std) * weights.reference * levels
    reference = float(np.exp(np.mean(np.log(std))))
    changed = Weights(weights.dynamics, tuple((std / reference).tolist()), reference)
    return _with_state_weight(changed, state_weight)


def _free(problem: Problem, here: Linearisation) -> np.ndarray:
    lower, upper = problem.parameters.bounds(here.point.values)
    return (lower < 0.0) & (upper > 0.0)


def log_determinant(problem: Problem, here: Linearisation) -> float:
    """log det of the normal matrix of all states and of the parameters that are not on a bound."""
    parameters = problem.parameters
    factors = [front.factorise(normal, objective.unseen(normal)) for normal in here.normals]
    places = [parameters.places(i) for i in range(len(factors))]
    reduced = front.join([factor.reduced() for factor in factors], places, parameters.size)
    free = _free(problem, here)
    matrix = (reduced.matrix + np.diag(here.prior_matrix))[np.ix_(free, free)]
    scale = parameters.spread(lambda p: p.scale)[free]
    values = np.linalg.eigvalsh(matrix * np.outer(scale, scale))
    # Directions without information are no unknowns of the data: a floor keeps them from counting.
    floor = np.finfo(float).eps * values.max(initial=1e-300) * max(len(values), 1)
    total = float(np.sum(np.log(np.maximum(values, floor)) - 2.0 * np.log(scale)))
    return total + sum(factor.log_determinant() for factor in factors)
