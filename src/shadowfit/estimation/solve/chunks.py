"""Rows of one recording at a point, in chunks of time of fixed size, so that the Jacobian never exists as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.chunk import Chunk, ChunkData
from shadowfit.estimation.problem.point import Point, Truncation
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.track import Track
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.fading import PRESENT
from shadowfit.estimation.residuals.nodes import Nodes

# Steps in one call of the compiled functions; a multiple of 6 so that windows of 2, 3 and 4 nodes divide it.
CHUNK = 504


class RecordingRows:
    """Rows of one recording at a point."""

    def __init__(self, problem: Problem, point: Point, weights: Weights, index: int) -> None:
        self.problem, self.weights = problem, weights
        self.track, self.nodes = problem.tracks[index], point.nodes[index]
        self.values = problem.parameters.of_recording(point.values, index)
        self.commands = problem.commands_at(point.values, index)
        self.known = no_truncation(problem, index) if point.truncation is None else point.truncation[index]
        self.fading = PRESENT if point.fading is None else point.fading[index]
        self.starts = chunk_starts(len(self.nodes.pose.position))

    def chunk(self, begin: int) -> Chunk:
        return Chunk(
            self.values,
            _padded(self.nodes, begin, CHUNK + self.problem.plan.window - 1),
            chunk_data(self.track, self.commands, self.weights.std, self.known, begin),
            self.weights.dynamics,
            self.problem.timestep,
            self.weights.reference,
            self.fading.between(begin, begin + CHUNK),
        )

    def tables(self, begin: int) -> tuple[front.RowTable, front.RowTable]:
        """Rows of the dynamics and of the observations of the chunk that begins with a step."""
        return self.problem.kernels.rows(self.chunk(begin))

    def assembly(self) -> front.Assembly:
        """Normal equations to which rows can be added."""
        plan = self.problem.plan
        return front.Assembly(self.track.steps + plan.window - 1, plan.window, plan.node_size, plan.parameters)

    def sensor_costs(self, squares: Float[np.ndarray, " m"]) -> Float[np.ndarray, " sensors"]:
        """Sums of squares of each sensor from those of the rows of a step."""
        sizes = self.problem.error_sizes
        return np.add.reduceat(squares.reshape(-1, sum(sizes)).sum(axis=0), np.cumsum([0, *sizes[:-1]]))


def sum_of_squares(values: Array) -> float:
    """Infinite where a wild start makes it overflow; the optimiser notices."""
    with np.errstate(over="ignore"):
        return float(np.sum(values**2))


def _padded(nodes: Nodes, begin: int, length: int) -> Nodes:
    """Nodes from ``begin`` on, the last one repeated behind the end."""

    def fill(values: np.ndarray) -> np.ndarray:
        part = values[begin : begin + length]
        if len(part) == length:
            return part
        return np.concatenate([part, np.repeat(values[-1:], length - len(part), axis=0)])

    return jax.tree.map(fill, nodes)


def chunk_starts(nodes: int) -> range:
    """First step of each chunk; together the chunks have at least as many steps as there are nodes."""
    return range(0, nodes, CHUNK)


def no_truncation(problem: Problem, recording: int) -> Truncation:
    """Zeros in place of the errors of the discretisation."""
    track = problem.tracks[recording]
    readings = tuple(np.zeros((*track.fraction.shape, size)) for size in problem.error_sizes)
    return Truncation(np.zeros((track.steps, problem.plan.node_size)), readings)


def chunk_data(
    track: Track, table: tuple[np.ndarray, np.ndarray], std: Sequence[float], known: Truncation, start: int
) -> ChunkData:
    """Data of the chunk that begins at step ``start``, filled up behind the recording with what does not count."""

    def cut(values: Array) -> Float[np.ndarray, "chunk ..."]:
        return filled(values, 0.0)

    def filled(values: Array, filling: Any) -> Float[np.ndarray, "chunk ..."]:
        part = np.asarray(values[start : start + CHUNK])
        if len(part) == CHUNK:
            return part
        return np.concatenate([part, np.broadcast_to(filling, (CHUNK - len(part), *values.shape[1:]))])

    weight = tuple(cut(here) / s for here, s in zip(track.present, std, strict=True))
    return ChunkData(
        cut(table[0]),
        cut(table[1]),
        tuple(filled(values, values[-1]) for values in track.measured),
        weight,
        cut(track.fraction),
        cut(known.dynamics),
        tuple(cut(values) for values in known.readings),
    )
