"""Noise levels from the data: the state weight κ and the sensors' noise by (approximate) maximum likelihood.

With impulse noise of variance ``σ_p²`` and sensor noise ``σ_i²`` the Laplace approximation of the marginal likelihood,
states and parameters integrated out, is

    −2 log L = Σ_k S_k/σ_k² + log det H − Σ_k N_k log(1/σ_k²) + const,     H = Σ_k J_kᵀJ_k/σ_k²,

for the groups k of residuals (dynamics, each sensor) with sums of squares ``S_k`` and ``N_k`` residuals. It is
stationary where

    σ_k² = S_k/(N_k − γ_k),     γ_k = ∂ log det H/∂ log(1/σ_k²),

γ_k being the number of unknowns that the group determines; Σ γ_k is the number n of all unknowns, so that a scale s
common to all levels, at a fixed κ, is known without γ:

    s² = Σ_k S_k/σ_k² / ν,     ν = Σ_k N_k − n.

κ is scanned upwards in strides of a hundred, from a value that allows errors of a hundredth of the impulses that the
motion shows (100 for a machine like the paper's, more for a smaller one). Each fit starts from the last one, which is
also how a large κ is reached without crawling, and only goes as far as the likelihood can tell. The scan ends where
the likelihood no longer rises by evidence. On recordings without errors of the dynamics it rises to a plateau: where
it is indifferent, the larger κ leaves fewer unknowns. To a peak lead a parabola and cubics with values and slopes
``∂(−2 log L)/∂ log κ = κ S_p/σ₀² − (N_p − γ_p)``. Downwards the scan goes only if the first
stride up is worse. (Iterating the stationary condition for κ converges slowly, and from a small κ, where the
states follow the noise, to a wrong solution.)
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights, default_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.deferred_correction import WARM_DAMPING, minimise_corrected, renewed
from shadowfit.estimation.solve.levenberg_marquardt import (
    Iteration,
    LevenbergMarquardt,
    Outcome,
    Progress,
    Status,
    minimise,
)
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.uncertainty.evidence import Evidence, gather
from shadowfit.geometry.differences import differences

# Errors of the dynamics at the first κ, as a fraction of the impulses of a time step.
FIRST_ERROR = 0.01
# Bodies that move less than this, relative to the others, are at rest: their impulses are noise.
REST = 1e-6
# Factor between neighbouring values of κ in the scan, and its limits.
STRIDE = 100.0
LARGEST, SMALLEST = 1e10, 1e-2
# The scan goes on while −2 log L falls by more than this. Of two values that differ by less than the second number the
# larger κ is preferred: it leaves fewer unknowns.
EVIDENCE, INDIFFERENCE = 2.0, 0.5
# A fit of the scan stops when χ² would fall by less than this, or after so many iterations. (Unfinished fits are less
# likely than they could be: cut off earlier, the scan ended decades too low on recordings without process noise.)
UNFINISHED = 1.0
SCAN_ITERATIONS = 6
# Most steps towards the most likely κ, behind the scan.
REFINEMENTS = 3
# Largest factor by which a sensor's standard deviation may change at once, and the one beyond which a fit is repeated.
LARGEST_CHANGE, NOTABLE_CHANGE = 10.0, 1.2


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A fit at one κ, with the common scale of the noise adapted to it."""

    outcome: Outcome
    weights: Weights
    deviance: float
    """−2 log L up to a constant."""

    @property
    def state_weight(self) -> float:
        return self.weights.state_weight


@dataclasses.dataclass
class _Scan:
    """Fits at one κ after another."""

    problem: Problem
    settings: LevenbergMarquardt
    progress: Progress | None
    log: list[Iteration] = dataclasses.field(default_factory=list)
    stopped: Outcome | None = None
    """A fit that Ctrl-C ended."""

    def fitted(self, point: Point, weights: Weights, first: bool = False) -> _Candidate:
        """A fit as far as the likelihood can tell, with the discretisation errors of where it starts."""
        loose = max(self.settings.decrease_tolerance, UNFINISHED / max(self.problem.sample_count(), 1))
        settings = dataclasses.replace(self.settings, decrease_tolerance=loose)
        if not first:
            settings = dataclasses.replace(settings, start_damping=WARM_DAMPING, max_iterations=SCAN_ITERATIONS)
        # The errors along the first states, which follow the noise, are not worth computing.
        start = point if first else renewed(self.problem, point)
        number = self.log[-1].number if self.log else 0
        outcome = minimise(self.problem, start, weights, settings, self.progress, number)
        self.log.extend(outcome.log[0 if first else 1 :])
        if outcome.status is Status.INTERRUPTED:
            self.stopped = outcome
        if not _usable(outcome):
            return _Candidate(outcome, weights, np.inf)
        value, scale = deviance(self.problem, outcome.linearisation, weights)
        return _Candidate(outcome, _with_sensors(weights, np.full(len(weights.std), scale)), value)

    def finished(self, point: Point, weights: Weights) -> Outcome:
        """The fit at the final levels, to its end."""
        warm = dataclasses.replace(self.settings, start_damping=WARM_DAMPING)
        outcome = minimise_corrected(self.problem, point, weights, warm, self.progress, self.log[-1].number)
        self.log.extend(outcome.log[1:])
        return outcome


def estimate_noise(
    problem: Problem, start: Point, settings: LevenbergMarquardt, progress: Progress | None = None
) -> tuple[Outcome, Weights]:
    """Scan κ and adapt the sensors' noise; the fit at the most likely values, and its weights."""
    scan = _Scan(problem, settings, progress)
    weights = default_weights(problem, first_state_weight(problem, start))
    best = scan.fitted(start, weights, first=True)
    if not best.outcome.status.converged:
        return dataclasses.replace(best.outcome, log=tuple(scan.log)), weights
    found = _told(problem, _climb(scan, best))
    if scan.stopped is None and np.max(np.abs(np.log(found.levels))) > np.log(NOTABLE_CHANGE):
        best = scan.fitted(found.point, _with_sensors(found.weights, found.levels))
        found = _told(problem, _climb(scan, best))
    if scan.stopped is None:
        found = _refined(scan, found)
    weights = _with_sensors(found.weights, found.levels)
    outcome = scan.stopped or scan.finished(found.point, weights)
    if not _usable(outcome):
        status = outcome.status if outcome.status is Status.INTERRUPTED else found.best.outcome.status
        outcome, weights = dataclasses.replace(found.best.outcome, status=status), found.weights
    return dataclasses.replace(outcome, log=tuple(scan.log)), weights


def _climb(scan: _Scan, first: _Candidate) -> list[_Candidate]:
    """Fits at larger and larger κ until the data speak against it or do not care; else at smaller ones."""
    tried = [first]
    for factor in (STRIDE, 1.0 / STRIDE):
        current = first
        while SMALLEST <= current.state_weight * factor <= LARGEST and _usable(current.outcome) and not scan.stopped:
            weights = _with_state_weight(current.weights, current.state_weight * factor)
            current = scan.fitted(current.outcome.linearisation.point, weights)
            gain = min(one.deviance for one in tried) - current.deviance
            tried.append(current)
            if not gain > EVIDENCE:
                break
        if _preferred(tried).state_weight > first.state_weight:
            break
    return tried


def _preferred(tried: list[_Candidate]) -> _Candidate:
    """The fit with the largest κ among those that the data do not speak against."""
    usable = [one for one in tried if _usable(one.outcome)] or tried
    lowest = min(one.deviance for one in usable)
    return max((one for one in usable if one.deviance <= lowest + INDIFFERENCE), key=lambda one: one.state_weight)


@dataclasses.dataclass(frozen=True)
class _Told:
    """What the residuals of the preferred fit tell about the noise."""

    tried: list[_Candidate]
    best: _Candidate
    levels: np.ndarray
    """Standard deviation of each sensor relative to the one assumed."""
    slope: float
    """``∂(−2 log L)/∂ log κ``."""

    @property
    def weights(self) -> Weights:
        return self.best.weights

    @property
    def point(self) -> Point:
        return self.best.outcome.linearisation.point


def _told(problem: Problem, tried: list[_Candidate]) -> _Told:
    best = _preferred(tried)
    evidence = gather(problem, best.outcome.linearisation, best.weights)
    dynamics = evidence.noise[0]
    slope = float(np.trace(dynamics.squares)) / evidence.reference**2 - dynamics.degrees
    return _Told(tried, best, _levels(evidence, best.weights), slope)


def _refined(scan: _Scan, found: _Told) -> _Told:
    """The scan's result moved towards the lowest −2 log L, as far as it makes a difference."""
    move = _parabola(found)
    for _ in range(REFINEMENTS):
        gain = 0.5 * abs(found.slope * move)
        if not gain > INDIFFERENCE:
            break
        state_weight = float(np.clip(found.best.state_weight * np.exp(move), SMALLEST, LARGEST))
        moved = scan.fitted(found.point, _with_state_weight(found.weights, state_weight))
        if not _usable(moved.outcome):
            break
        before, found = found, _told(scan.problem, [moved])
        move = _cubic(before, found)
    return found


def _parabola(found: _Told) -> float:
    """Step of log κ: from the best fit, with the slope there, along a parabola through the next one downhill."""
    best, slope = found.best, found.slope
    others = [one for one in found.tried if (one.state_weight - best.state_weight) * slope < 0.0]
    if not others:
        return 0.0
    beside = min(others, key=lambda one: abs(np.log(one.state_weight / best.state_weight)))
    distance = np.log(beside.state_weight / best.state_weight)
    curvature = 2.0 * (beside.deviance - best.deviance - slope * distance) / distance**2
    return _limited(-slope / curvature) if curvature > 0.0 else 0.0


def _cubic(before: _Told, now: _Told) -> float:
    """The same along the cubic with the values and slopes of two fits (Nocedal and Wright 2006, equation 3.59)."""
    distance = np.log(now.best.state_weight / before.best.state_weight)
    mean = (now.best.deviance - before.best.deviance) / distance
    first = before.slope + now.slope - 3.0 * mean
    inside = first**2 - before.slope * now.slope
    if not inside > 0.0:
        return 0.0
    second = np.sign(distance) * np.sqrt(inside)
    return _limited(-distance * (now.slope + second - first) / (now.slope - before.slope + 2.0 * second))


def _limited(move: float) -> float:
    return float(np.clip(move, -np.log(STRIDE), np.log(STRIDE)))


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
    reference = default_weights(problem, 1.0).reference
    return float(np.clip(10.0 ** np.round(2.0 * np.log10(reference / (FIRST_ERROR * typical))), SMALLEST, LARGEST))


def _usable(outcome: Outcome) -> bool:
    return outcome.status not in (Status.NUMERICS, Status.STUCK, Status.INTERRUPTED)


def sensor_levels(problem: Problem, here: Linearisation, weights: Weights) -> np.ndarray:
    """Ratio of each sensor's most likely standard deviation to the one assumed, at the present κ.

    ``N_i − γ_i`` are the sensor's degrees of freedom, from the leverages of its residuals.
    """
    return _levels(gather(problem, here, weights), weights)


def _levels(evidence: Evidence, weights: Weights) -> np.ndarray:
    found = [noise.level() / weights.reference for noise in evidence.noise[1:]]
    levels = [level if np.isfinite(level) and level > 0.0 else 1.0 for level in found]
    return np.clip(levels, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)


def deviance(problem: Problem, here: Linearisation, weights: Weights) -> tuple[float, float]:
    """−2 log L of the noise levels at their most likely common scale, up to a constant, and that scale."""
    reference = weights.reference
    unknowns = sum(problem.plan.node_size * problem.node_count(i) for i in range(len(problem.tracks)))
    unknowns += int(_free(problem, here).sum())
    dynamics, samples = _dynamics_count(problem), _sample_counts(problem)
    freedom = max(dynamics + sum(samples) - unknowns, 1)
    squares = here.cost.total / reference**2
    scale = float(np.clip(np.sqrt(squares / freedom), 1.0 / LARGEST_CHANGE, LARGEST_CHANGE))
    total = squares / scale**2 + 2.0 * freedom * np.log(scale)
    total += log_determinant(problem, here) - 2.0 * unknowns * np.log(reference)
    total -= dynamics * np.log(weights.state_weight / reference**2)
    for std, count in zip(weights.std, samples, strict=True):
        total += 2.0 * count * np.log(std * reference)
    return float(total), scale


def _sample_counts(problem: Problem) -> list[int]:
    counts = (sum(int(t.present[i].sum()) for t in problem.tracks) for i in range(len(problem.error_sizes)))
    return [count * size for count, size in zip(counts, problem.error_sizes, strict=True)]


def _dynamics_count(problem: Problem) -> int:
    """Residuals weighted by κ: the dynamics, and the gap rows of the first two states."""
    rows = sum(track.steps for track in problem.tracks) * problem.plan.node_size
    return rows + problem.plan.unknowns.start_count(problem.gap_count) * len(problem.tracks)


def _with_state_weight(weights: Weights, state_weight: float) -> Weights:
    return dataclasses.replace(weights, dynamics=np.sqrt(state_weight / weights.state_weight) * weights.dynamics)


def _with_sensors(weights: Weights, levels: np.ndarray) -> Weights:
    """Other standard deviations of the sensors, at the same κ."""
    std = np.array(weights.std) * weights.reference * levels
    reference = float(np.exp(np.mean(np.log(std))))
    return Weights(weights.dynamics, tuple((std / reference).tolist()), reference)


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
    matrix = (reduced.matrix + np.diag(here.prior_matrix))[np.ix_(free, free)]
    scale = parameters.spread(lambda p: p.scale)[free]
    values = np.linalg.eigvalsh(matrix * np.outer(scale, scale))
    # Directions without information are no unknowns of the data: a floor keeps them from counting.
    floor = np.finfo(float).eps * values.max(initial=1e-300) * max(len(values), 1)
    total = float(np.sum(np.log(np.maximum(values, floor)) - 2.0 * np.log(scale)))
    return total + sum(factor.log_determinant() for factor in factors)
