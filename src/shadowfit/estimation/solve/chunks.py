"""Rows of one recording at a point, in chunks of time, so that the Jacobian never exists as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from shadowfit.arrays import Array, Float, Shaped
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.axis_noise import shaping
from shadowfit.estimation.problem.chunk import Chunk, ChunkData
from shadowfit.estimation.problem.point import Point, Truncation
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.regularisation import stopping_along
from shadowfit.estimation.problem.sticking import told
from shadowfit.estimation.problem.track import Track
from shadowfit.estimation.problem.weights import Weights
from shadowfit.kernels import processors
from shadowfit.trees import map_leaves

# Steps in one call of the compiled functions: as many as have about so many numbers in their rows, but not fewer than
# the least. What Python does for a call, and handing it to another thread, takes as long as the rows of some hundred
# steps of a small machine. Multiples of 6, so that windows of 2, 3 and 4 nodes divide them.
NUMBERS, LEAST = 2**18, 504
# As many of these as one call does where it gives residuals alone.
LONG = 8


class RecordingRows:
    """Rows of one recording at a point."""

    def __init__(self, problem: Problem, point: Point, weights: Weights, index: int) -> None:
        self.problem, self.weights = problem, weights
        self.track, self.nodes = problem.tracks[index], point.nodes[index]
        self.values = problem.parameters.of_recording(point.values, index)
        self.commands = problem.commands_at(point.values, index)
        self.known = no_truncation(problem, index) if point.truncation is None else point.truncation[index]
        stopping = stopping_along(problem, point, index) if point.stopping is None else point.stopping[index]
        self.widths = stopping.widths(problem.kernels.stick_times, problem.timestep)
        self.shaping = shaping(point, weights, index)
        self.dynamics_weight, self.proportion = weights.dynamics, None
        units = weights.units(problem.parameters, point.values, index)
        if units is not None:
            factor, self.proportion = units
            self.known = self._as_large(point, index, factor)
            self.dynamics_weight = factor[:, None] * weights.dynamics
        self.told = told(problem, point, weights, index)
        self.length = chunk_length(problem, index)
        self.starts = range(0, self.track.steps, self.length)
        """First step of each chunk."""

    def _as_large(self, point: Point, index: int, factor: Float[np.ndarray, " r"]) -> Truncation:
        """Errors of the discretisation in proportion to the forces, as they would be found with these parameters."""
        if point.truncated_at is None:
            return self.known
        units = self.weights.units(self.problem.parameters, point.truncated_at, index)
        assert units is not None
        there, _ = units
        return Truncation(np.asarray(self.known.dynamics) * (there / factor), self.known.readings)

    def long_chunks(self) -> Iterator[Chunk]:
        """All steps, in as few chunks as keep all threads busy: where no derivatives are asked for, and no sums."""
        steps = self.track.steps
        count = min(-(-steps // self.length), max(processors.threads(), -(-steps // (LONG * self.length))))
        edges = [steps * part // count for part in range(count + 1)]
        return (self._between(begin, end) for begin, end in itertools.pairwise(edges))

    def chunk(self, begin: int, end: int | None = None) -> Chunk:
        """The steps from the given one on, up to ``end`` or to that of the recording, but not more than a chunk has."""
        return self._between(
            begin, min(begin + self.length, self.track.steps, self.track.steps if end is None else end)
        )

    def _between(self, begin: int, end: int) -> Chunk:
        """Some of the steps."""
        last_node = end + self.problem.plan.window - 1
        return Chunk(
            self.values,
            map_leaves(lambda x: x[begin:last_node], self.nodes),
            _chunk_data(self.track, self.commands, self.weights.std, (self.widths, self.known), slice(begin, end)),
            self.dynamics_weight,
            self.problem.timestep,
            self.weights.reference,
            None if self.shaping is None else self.shaping.between(begin, end),
            self.proportion,
            None if self.told is None else self.told[begin:end],
        )

    def tables(self, begin: int, end: int | None = None) -> tuple[front.RowTable, front.RowTable]:
        """Rows of the dynamics and of the observations of such a chunk."""
        return self.problem.kernels.rows(self.chunk(begin, end))

    def dynamics(self, begin: int, end: int | None = None) -> front.Rows:
        """Rows of the dynamics alone."""
        return self.problem.kernels.dynamics_rows(self.chunk(begin, end)).rows

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


def chunk_length(problem: Problem, index: int) -> int:
    """Most steps in a chunk of a recording; the same whatever computes them, so that sums have the same digits."""
    plan, samples = problem.plan, problem.tracks[index].fraction.shape[1]
    rows = plan.node_size + samples * sum(problem.error_sizes)
    columns = plan.window * plan.node_size + plan.parameters + 1
    return max(6 * (NUMBERS // (6 * rows * columns)), LEAST)


def no_truncation(problem: Problem, recording: int) -> Truncation:
    """Zeros in place of the errors of the discretisation."""
    track = problem.tracks[recording]
    readings = tuple(np.zeros((*track.fraction.shape, size)) for size in problem.error_sizes)
    return Truncation(np.zeros((track.steps, problem.plan.node_size)), readings)


def _chunk_data(
    track: Track,
    table: tuple[np.ndarray, np.ndarray],
    std: Sequence[float],
    held: tuple[np.ndarray, Truncation],
    part: slice,
) -> ChunkData:
    """Data of some steps, with what is held."""
    widths, known = held

    def cut(values: Array) -> Shaped[np.ndarray, "steps ..."]:
        return np.asarray(values[part])

    return ChunkData(
        cut(table[0]),
        cut(table[1]),
        tuple(cut(values) for values in track.measured),
        tuple(cut(here) / s for here, s in zip(track.present, std, strict=True)),
        cut(track.fraction),
        cut(widths),
        cut(known.dynamics),
        tuple(cut(values) for values in known.readings),
    )
