"""Which residual stands where among the rows of a time step."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sticking import told
from shadowfit.estimation.problem.weights import Weights
from shadowfit.records import record


@record(frozen=True)
class Group:
    """Residuals of one kind in the rows of a step: the dynamics, or one sensor's samples."""

    name: str
    first: int
    """Place of the group's first row among the rows of a step."""
    repeats: int
    """Samples in a step; 1 for the dynamics."""
    size: int
    """Components of one residual."""
    stride: int = 1
    """Rows from one sample to the next: each sample has the residuals of all sensors side by side."""

    def samples(self) -> list[slice]:
        """Rows of each sample."""
        begins = (self.first + i * self.stride for i in range(self.repeats))
        return [slice(begin, begin + self.size) for begin in begins]


DYNAMICS = "dynamics"


def groups(problem: Problem, recording: int = 0) -> tuple[Group, ...]:
    """Layout of a step's rows."""
    size = problem.plan.node_size
    listed = [Group(DYNAMICS, 0, 1, size)]
    samples = problem.tracks[recording].fraction.shape[1]
    sizes = problem.error_sizes
    begins = size + np.cumsum([0, *sizes])
    for name, begin, components in zip(problem.mechanism.sensors, begins.tolist(), sizes, strict=False):
        listed.append(Group(name, begin, samples, components, sum(sizes)))
    return tuple(listed)


def present(problem: Problem, point: Point, weights: Weights, recording: int = 0) -> Float[np.ndarray, "n m"]:
    """How far the variance of each row of each step is that of its group's level.

    That is zero for missing samples, and ``c²`` for equations that leave friction open (:mod:`sticking`).
    """
    track = problem.tracks[recording]
    dynamics, *sensors = groups(problem, recording)
    seen = zip(track.present, sensors, strict=True)
    columns = [np.repeat(here[..., None], group.size, axis=2) for here, group in seen]
    observed = np.concatenate(columns, axis=2).reshape(track.steps, -1)
    counted = told(problem, point, weights, recording)
    moving = np.ones((track.steps, dynamics.size)) if counted is None else counted**2
    return np.concatenate([moving, observed], axis=1)
