"""The objective at a point: residuals of all recordings linearised, condensed into normal equations.

    Σ_recordings [ κ Σ ‖Δp‖² + Σ ‖Δy‖²_{R⁻¹} ] + priors

in the paper's scaling: a sensor with the reference standard deviation ``σ₀`` (the geometric mean of the sensors'
ones) has weight one, so that κ means the same as in the paper whatever the units of the noise are, and costs are
squared readings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Float

from shadowfit.estimation import front
from shadowfit.estimation.linearise import Costs, Nodes, Prepared, linearise_chunk, prepare, start_rows
from shadowfit.estimation.parameters import Values
from shadowfit.estimation.problem import CHUNK, Problem, chunk_data, chunk_starts
from shadowfit.geometry import Pose, rotations


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights of the residuals."""

    dynamics: Float[np.ndarray, "r r"]
    """Square root of the inverse covariance of the impulse residual, in the paper's scaling: ``√κ I``."""
    std: tuple[float, ...]
    """Standard deviation of each sensor, relative to ``σ₀``."""
    reference: float
    """σ₀."""


@dataclasses.dataclass(frozen=True)
class Point:
    """Values of all unknowns: parameters, and the states of every recording (on the host)."""

    values: Values
    nodes: tuple[Nodes, ...]


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
    """``κ I`` for the dynamics, the sensors' standard deviations for the observations."""
    std = np.array([float(sensor.std) for sensor in problem.mechanism.sensors.values])
    reference = float(np.exp(np.mean(np.log(std))))
    size = 6 * len(problem.mechanism.bodies)
    return Weights(np.sqrt(state_weight) * np.eye(size), tuple(std / reference), reference)


def linearise(problem: Problem, point: Point, weights: Weights) -> Linearisation:
    """Evaluate and condense; the Jacobian of one chunk at a time exists."""
    normals, dynamics, sensors, start_cost = [], [], [], 0.0
    for index, track in enumerate(problem.tracks):
        nodes = point.nodes[index]
        numbers, turns = problem.current(point.values, index)
        prepared = prepare(problem.plan, problem.mechanism, numbers, turns)
        table = problem.commands_at(point.values, index)
        start = start_rows(
            problem.plan,
            prepared,
            _cut(nodes, 0, problem.plan.window - 1),
            weights.dynamics,
            problem.timestep,
        )
        costs: list[Costs] = []

        def chunks(
            index: int = index,
            nodes: Nodes = nodes,
            prepared: Prepared = prepared,
            table: tuple[np.ndarray, np.ndarray] = table,
            costs: list[Costs] = costs,
        ) -> Iterator[front.Rows]:
            for begin in chunk_starts(len(nodes.pose.position)):
                rows, cost = _rows(problem, point, index, nodes, prepared, table, weights, begin)
                costs.append(cost)
                yield rows

        normals.append(front.assemble(chunks(), problem.node_count(index), start))
        dynamics.append(sum(float(cost.dynamics) for cost in costs))
        sensors.append(tuple(np.sum([np.asarray(cost.sensors) for cost in costs], axis=0).tolist()))
        start_cost += float(np.sum(np.asarray(start.residual) ** 2))
    matrix, gradient, prior = _prior(problem, point.values, weights.reference)
    cost = Cost(tuple(dynamics), tuple(sensors), start_cost, prior)
    return Linearisation(point, tuple(normals), cost, matrix, gradient)


def _rows(
    problem: Problem,
    point: Point,
    index: int,
    nodes: Nodes,
    prepared: Prepared,
    table: tuple[np.ndarray, np.ndarray],
    weights: Weights,
    begin: int,
) -> tuple[front.Rows, Costs]:
    """Rows of one chunk of one recording: by compiled kernels, or by XLA where a mechanism is too large for them."""
    track, plan = problem.tracks[index], problem.plan
    padded = _padded(nodes, begin, CHUNK + plan.window - 1)
    data = chunk_data(track, table, weights.std, begin)
    live = track.steps - begin
    compiled = problem.kernels(data, weights.dynamics)
    if compiled is None:
        return linearise_chunk(
            plan, prepared, padded, data, weights.dynamics, problem.timestep, live, weights.reference
        )
    numbers, turns = problem.current(point.values, index)
    return compiled.rows(
        numbers, turns, padded, data, weights.dynamics, problem.timestep, live, weights.reference
    )


def unseen(normal: front.Normal) -> list[np.ndarray]:
    """Damping for unknowns that no residual depends on: one, so that they stay where they are, and zero for all others.

    The last node of a window of four is such a one when no sample lies behind the last step.
    """
    return [(np.asarray(diagonal) == 0.0).astype(float) for diagonal in normal.diagonals()]


def _prior(problem: Problem, values: Values, reference: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Gaussian priors around the start values: diagonal, gradient and cost."""
    parameters = problem.parameters
    weight = parameters.spread(lambda p: 0.0 if p.prior is None else (reference / p.prior) ** 2)
    difference = parameters.minus(values, parameters.start())
    return weight, weight * difference, float(np.sum(weight * difference**2))


def _cut(nodes: Nodes, begin: int, length: int) -> Nodes:
    return jax.tree.map(lambda x: x[begin : begin + length], nodes)


def _padded(nodes: Nodes, begin: int, length: int) -> Nodes:
    """Nodes from ``begin`` on, the last one repeated behind the end."""

    def fill(values: np.ndarray) -> np.ndarray:
        part = values[begin : begin + length]
        if len(part) == length:
            return part
        return np.concatenate([part, np.repeat(values[-1:], length - len(part), axis=0)])

    return jax.tree.map(fill, nodes)


def plus(problem: Problem, point: Point, states: tuple[front.ByChunks, ...], increments: np.ndarray) -> Point:
    """``x ⊞ δ`` of all unknowns."""
    nodes = tuple(_retract(own, steps) for own, steps in zip(point.nodes, states, strict=True))
    return Point(problem.parameters.plus(point.values, increments), nodes)


def _retract(nodes: Nodes, steps: front.ByChunks) -> Nodes:
    count = len(nodes.pose.position)
    parts = [
        _retract_chunk(_padded(nodes, begin, CHUNK), step)
        for begin, step in zip(chunk_starts(count), steps, strict=True)
    ]
    return jax.tree.map(lambda *x: np.concatenate([np.asarray(part) for part in x])[:count], *parts)


@jax.jit
def _retract_chunk(nodes: Nodes, step: Float[Array, "n b"]) -> Nodes:
    count, bodies = nodes.pose.position.shape[:2]
    if nodes.velocity is None:
        return Nodes(_renormalised(nodes.pose.plus(step.reshape(count, bodies, 6))), None)
    parts = step.reshape(count, bodies, 12)
    return Nodes(_renormalised(nodes.pose.plus(parts[..., :6])), nodes.velocity + parts[..., 6:])


def _renormalised(pose: Pose) -> Pose:
    return Pose(pose.position, rotations.normalise(pose.orientation))
