"""The objective at a point: residuals of all recordings linearised, condensed into normal equations.

    Σ_recordings [ κ Σ ‖Δp‖² + Σ ‖Δy‖²_{R⁻¹} ] + priors

in the paper's scaling: a sensor with the reference standard deviation ``σ₀`` (the geometric mean of the sensors'
ones) has weight one, so that κ means the same as in the paper whatever the units of the noise are, and costs are
squared readings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Float

from shadowfit.estimation import front
from shadowfit.estimation.linearise import Nodes, Truncation
from shadowfit.estimation.parameters import Values
from shadowfit.estimation.problem import CHUNK, Problem, chunk_data, chunk_starts, no_truncation
from shadowfit.estimation.start_state import start_rows
from shadowfit.estimation.step_kernels import Chunk
from shadowfit.estimation.threads import in_threads
from shadowfit.geometry import Pose

Found = TypeVar("Found")

# Diagonal entries this small, relative to the largest, are rounding errors of zero.
ROUNDING = 1e-25
# Relative damping of a solve that is called undamped.
TRACE = 1e-12


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights of the residuals."""

    dynamics: Float[np.ndarray, "r r"]
    """Square root of the inverse covariance of the impulse residual, in the paper's scaling: ``√κ I``."""
    std: tuple[float, ...]
    """Standard deviation of each sensor, relative to ``σ₀``."""
    reference: float
    """σ₀."""

    @property
    def state_weight(self) -> float:
        """κ: the mean weight of an impulse."""
        return float(np.sum(self.dynamics**2) / len(self.dynamics))


@dataclasses.dataclass(frozen=True)
class Point:
    """Values of all unknowns: parameters, and the states of every recording (on the host)."""

    values: Values
    nodes: tuple[Nodes, ...]
    truncation: tuple[Truncation, ...] | None = None
    """Errors of the discretisation that are taken off the residuals of each recording; None: none are known."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """The objective and its parts, in the paper's scaling."""

    dynamics: tuple[float, ...]
    """For each recording."""
    sensors: tuple[tuple[float, ...], ...]
    """For each recording and sensor."""
    start: float
    """Initial states."""
    prior: float
    """Priors of the parameters."""

    @property
    def total(self) -> float:
        """The objective."""
        return sum(self.dynamics) + self.observation + self.start + self.prior

    @property
    def observation(self) -> float:
        """Observations of all recordings."""
        return sum(sum(parts) for parts in self.sensors)


@dataclasses.dataclass(frozen=True)
class Linearisation:
    """Normal equations at a point."""

    point: Point
    normals: tuple[front.Normal, ...]
    cost: Cost
    prior_matrix: Float[np.ndarray, " p"]
    prior_gradient: Float[np.ndarray, " p"]


def default_weights(problem: Problem, state_weight: float) -> Weights:
    """``κ Ω⁻¹`` for the dynamics (``κ I`` if no Ω is given), the sensors' standard deviations for the observations."""
    std = np.array([float(sensor.std) for sensor in problem.mechanism.sensors.values])
    reference = float(np.exp(np.mean(np.log(std))))
    size = 6 * len(problem.mechanism.bodies)
    root = np.eye(size)
    if problem.options.impulse_covariance is not None:
        covariance = np.asarray(problem.options.impulse_covariance, float)
        inverse = np.linalg.inv(np.diag(covariance) if covariance.ndim == 1 else covariance)
        root = np.linalg.cholesky(inverse * size / np.trace(inverse)).T
    return Weights(np.sqrt(state_weight) * root, tuple(std / reference), reference)


def prepare(problem: Problem, values: Values, weights: Weights) -> None:
    """Have the code of the rows made in the background, while the states to start from are found."""
    length = CHUNK + problem.plan.window - 1
    bodies = len(problem.mechanism.bodies)
    velocity = np.zeros((length, bodies, 6)) if problem.plan.unknowns == "full" else None
    blank = Nodes(Pose(np.zeros((length, bodies, 3)), np.zeros((length, bodies, 4))), velocity)
    point = Point(values, (blank,) * len(problem.tracks))
    for index in range(len(problem.tracks)):
        problem.kernels.prepare_rows(_Rows(problem, point, weights, index).chunk(0))


def linearise(problem: Problem, point: Point, weights: Weights) -> Linearisation:
    """Evaluate and condense, in threads; the Jacobian of a few chunks at a time exists."""
    recordings = [_Rows(problem, point, weights, index) for index in range(len(problem.tracks))]
    assemblies = [own.assembly() for own in recordings]

    def condense(place: tuple[int, int]) -> tuple[float, np.ndarray]:
        recording, begin = place
        tables = recordings[recording].tables(begin)
        assemblies[recording].add(tables, begin)
        return recordings[recording].costs(tables, begin)

    places = [(index, begin) for index, own in enumerate(recordings) for begin in own.starts]
    costs = list(in_threads(condense, places))
    normals, dynamics, sensors, start_cost = [], [], [], 0.0
    for index, assembly in enumerate(assemblies):
        start = start_rows_of(problem, point, weights, index)
        normals.append(assembly.normal(start))
        own = [cost for cost, (recording, _) in zip(costs, places, strict=True) if recording == index]
        dynamics.append(sum(cost for cost, _ in own))
        sensors.append(tuple(np.sum([parts for _, parts in own], axis=0).tolist()))
        start_cost += _sum_of_squares(start.residual)
    matrix, gradient, prior = _prior(problem, point.values, weights.reference)
    cost = Cost(tuple(dynamics), tuple(sensors), start_cost, prior)
    return Linearisation(point, tuple(normals), cost, matrix, gradient)


def _sum_of_squares(values: np.ndarray) -> float:
    """Infinite where a wild start makes it overflow; the optimiser notices."""
    with np.errstate(over="ignore"):
        return float(np.sum(values**2))


def chunk_rows(problem: Problem, point: Point, weights: Weights, index: int) -> Iterator[front.Rows]:
    """Rows of one recording, chunk by chunk, those of dynamics and observations of a step together."""
    return each_chunk(problem, point, weights, index, lambda _, rows: rows)


def each_chunk(
    problem: Problem, point: Point, weights: Weights, index: int, work: Callable[[int, front.Rows], Found]
) -> Iterator[Found]:
    """``work(first step, rows)`` of each chunk of one recording, in threads; results in order."""
    own = _Rows(problem, point, weights, index)
    return in_threads(lambda begin: work(begin, front.merge(own.tables(begin), problem.plan.window)), own.starts)


class _Rows:
    """Rows of one recording at a point."""

    def __init__(self, problem: Problem, point: Point, weights: Weights, index: int) -> None:
        self.problem, self.weights = problem, weights
        self.track, self.nodes = problem.tracks[index], point.nodes[index]
        self.current = problem.current(point.values, index)
        self.commands = problem.commands_at(point.values, index)
        self.known = no_truncation(problem, index) if point.truncation is None else point.truncation[index]
        self.starts = chunk_starts(len(self.nodes.pose.position))

    def chunk(self, begin: int) -> Chunk:
        return Chunk(
            *self.current,
            _padded(self.nodes, begin, CHUNK + self.problem.plan.window - 1),
            chunk_data(self.track, self.commands, self.weights.std, self.known, begin),
            self.weights.dynamics,
            self.problem.timestep,
            self.weights.reference,
        )

    def tables(self, begin: int) -> tuple[front.Table, front.Table]:
        """Rows of the dynamics and of the observations of the chunk that begins with a step."""
        return self.problem.kernels.rows(self.chunk(begin))

    def assembly(self) -> front.Assembly:
        """Normal equations to which rows can be added."""
        plan, bodies = self.problem.plan, len(self.problem.mechanism.bodies)
        size = (12 if plan.unknowns == "full" else 6) * bodies
        return front.Assembly(self.track.steps + plan.window - 1, plan.window, size, plan.parameters)

    def costs(self, tables: tuple[front.Table, front.Table], begin: int) -> tuple[float, np.ndarray]:
        """Sums of squares of the dynamics and of each sensor."""
        live = max(self.track.steps - begin, 0)
        dynamics, observed = (table.wide[:live, :, -1] for table in tables)
        sizes = [sensor.error_size() for sensor in self.problem.mechanism.sensors.values]
        by_sample = observed.reshape(-1, sum(sizes))
        ends = np.cumsum(sizes)
        parts = [_sum_of_squares(by_sample[:, end - size : end]) for size, end in zip(sizes, ends, strict=True)]
        return _sum_of_squares(dynamics), np.array(parts)


def start_rows_of(problem: Problem, point: Point, weights: Weights, index: int) -> front.Rows:
    """Rows of the initial state of one recording."""
    numbers, turns = problem.current(point.values, index)
    first = jax.tree.map(lambda x: x[: problem.plan.window - 1], point.nodes[index])
    parts = problem.kernels.start_parts(numbers, turns, first)
    return start_rows(problem.plan, parts, weights.dynamics, problem.timestep)


def unseen(normal: front.Normal) -> np.ndarray:
    """Damping for unknowns that no residual depends on, so that they stay where they are; next to nothing for others.

    The last node of a window of four is such a one when no sample lies behind the last step. If one does, the samples
    see some directions of that node and mix others (the turn of a pole against its cart): there the trace of
    Marquardt's damping keeps the matrix from being singular.
    """
    diagonal = normal.diagonal()
    return np.where(diagonal <= ROUNDING * diagonal.max(initial=0.0), 1.0, TRACE * diagonal)


def _prior(problem: Problem, values: Values, reference: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Gaussian priors around the start values: diagonal, gradient and cost."""
    parameters = problem.parameters
    weight = parameters.spread(lambda p: 0.0 if p.prior is None else (reference / p.prior) ** 2)
    difference = parameters.minus(values, parameters.start())
    return weight, weight * difference, float(np.sum(weight * difference**2))


def _padded(nodes: Nodes, begin: int, length: int) -> Nodes:
    """Nodes from ``begin`` on, the last one repeated behind the end."""

    def fill(values: np.ndarray) -> np.ndarray:
        part = values[begin : begin + length]
        if len(part) == length:
            return part
        return np.concatenate([part, np.repeat(values[-1:], length - len(part), axis=0)])

    return jax.tree.map(fill, nodes)


def plus(problem: Problem, point: Point, states: tuple[np.ndarray, ...], increments: np.ndarray) -> Point:
    """``x ⊞ δ`` of all unknowns."""
    nodes = tuple(problem.kernels.retract(own, steps) for own, steps in zip(point.nodes, states, strict=True))
    return Point(problem.parameters.plus(point.values, increments), nodes, point.truncation)
