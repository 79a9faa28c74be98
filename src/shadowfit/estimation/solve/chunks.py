"""Rows of one recording at a point, in chunks of time, so that the Jacobian never exists as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float, Shaped

from shadowfit.arrays import Array
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.axis_noise import shaping
from shadowfit.estimation.problem.chunk import Chunk, ChunkData
from shadowfit.estimation.problem.point import Point, Truncation
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.track import Track
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.fading import PRESENT

# Most steps in one call of the compiled functions; a multiple of 6 so that windows of 2, 3 and 4 nodes divide it.
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
        self.shaping = shaping(point, weights, index)
        self.starts = chunk_starts(self.track.steps)

    def chunk(self, begin: int, end: int | None = None) -> Chunk:
        """The steps from the given one on, up to ``end`` or to that of the recording, but not more than a chunk has."""
        end = min(begin + CHUNK, self.track.steps if end is None else end)
        last_node = end + self.problem.plan.window - 1
        return Chunk(
            self.values,
            jax.tree.map(lambda x: x[begin:last_node], self.nodes),
            _chunk_data(self.track, self.commands, self.weights.std, self.known, slice(begin, end)),
            self.weights.dynamics,
            self.problem.timestep,
            self.weights.reference,
            self.fading.between(begin, end),
            None if self.shaping is None else self.shaping.between(begin, end),
        )

    def tables(self, begin: int, end: int | None = None) -> tuple[front.RowTable, front.RowTable]:
        """Rows of the dynamics and of the observations of such a chunk."""
        return self.problem.kernels.rows(self.chunk(begin, end))

    def dynamics(self, begin: int) -> front.Rows:
        """Rows of the dynamics alone."""
        return self.problem.kernels.dynamics_rows(self.chunk(begin)).rows

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


def chunk_starts(steps: int) -> range:
    """First step of each chunk."""
    return range(0, steps, CHUNK)


def no_truncation(problem: Problem, recording: int) -> Truncation:
    """Zeros in place of the errors of the discretisation."""
    track = problem.tracks[recording]
    readings = tuple(np.zeros((*track.fraction.shape, size)) for size in problem.error_sizes)
    return Truncation(np.zeros((track.steps, problem.plan.node_size)), readings)


def _chunk_data(
    track: Track, table: tuple[np.ndarray, np.ndarray], std: Sequence[float], known: Truncation, part: slice
) -> ChunkData:
    """Data of some steps."""

    def cut(values: Array) -> Shaped[np.ndarray, "steps ..."]:
        return np.asarray(values[part])

    return ChunkData(
        cut(table[0]),
        cut(table[1]),
        tuple(cut(values) for values in track.measured),
        tuple(cut(here) / s for here, s in zip(track.present, std, strict=True)),
        cut(track.fraction),
        cut(known.dynamics),
        tuple(cut(values) for values in known.readings),
    )
