"""The linearised rows of one recording at a point, chunk by chunk: what uncertainty needs beyond normal equations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from shadowfit.estimation import front
from shadowfit.estimation.linearise import Nodes, linearise_chunk, prepare, start_rows
from shadowfit.estimation.objective import Point, Weights
from shadowfit.estimation.problem import CHUNK, Problem, chunk_data, chunk_starts


@dataclasses.dataclass(frozen=True)
class Group:
    """Residuals of one kind in the rows of a step: the dynamics, or one sensor's samples."""

    name: str
    first: int
    """Place of the group's first row among the rows of a step."""
    repeats: int
    """Samples in a step; 1 for the dynamics."""
    size: int
    """Components of one residual."""

    @property
    def stop(self) -> int:
        """Place behind the group's last row."""
        return self.first + self.repeats * self.size

    def samples(self) -> list[slice]:
        """Rows of each sample."""
        return [slice(i, i + self.size) for i in range(self.first, self.stop, self.size)]


DYNAMICS = "dynamics"


def groups(problem: Problem, recording: int = 0) -> tuple[Group, ...]:
    """Layout of a step's rows."""
    size = 6 * len(problem.mechanism.bodies) * (2 if problem.plan.unknowns == "full" else 1)
    found = [Group(DYNAMICS, 0, 1, size)]
    samples = problem.tracks[recording].fraction.shape[1]
    for name, sensor in problem.mechanism.sensors.items():
        found.append(Group(name, found[-1].stop, samples, sensor.error_size()))
    return tuple(found)


def present(problem: Problem, recording: int = 0) -> np.ndarray:
    """Which rows of each step hold a residual, shape (steps, m): samples may be missing."""
    track = problem.tracks[recording]
    dynamics, *sensors = groups(problem, recording)
    columns = [np.ones((track.steps, dynamics.size), bool)]
    columns += [np.repeat(here, group.size, axis=1) for here, group in zip(track.present, sensors, strict=True)]
    return np.concatenate(columns, axis=1)


def rows_of(problem: Problem, point: Point, weights: Weights, recording: int) -> Iterator[front.Rows]:
    """Weighted rows of the steps, in chunks; each pass evaluates them anew."""
    track, nodes = problem.tracks[recording], point.nodes[recording]
    prepared = prepare(problem.plan, problem.mechanism, *problem.current(point.values, recording))
    table = problem.commands_at(point.values, recording)
    for begin in chunk_starts(len(nodes.pose.position)):
        yield linearise_chunk(
            problem.plan,
            prepared,
            _filled(nodes, begin, CHUNK + problem.plan.window - 1),
            chunk_data(track, table, weights.std, begin),
            weights.dynamics,
            problem.timestep,
            track.steps - begin,
            weights.reference,
        )[0]


def start_of(problem: Problem, point: Point, weights: Weights, recording: int) -> front.Rows:
    """Weighted rows of the first states."""
    prepared = prepare(problem.plan, problem.mechanism, *problem.current(point.values, recording))
    first = jax.tree.map(lambda x: x[: problem.plan.window - 1], point.nodes[recording])
    return start_rows(problem.plan, prepared, first, weights.dynamics, problem.timestep)


def _filled(nodes: Nodes, begin: int, length: int) -> Nodes:
    """Nodes from ``begin`` on, the last one repeated behind the end."""

    def fill(values: np.ndarray) -> np.ndarray:
        part = values[begin : begin + length]
        return np.concatenate([part, np.repeat(values[-1:], length - len(part), axis=0)])

    return jax.tree.map(fill, nodes)
