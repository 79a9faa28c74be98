"""Which residual stands where among the rows of a time step."""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.problem.problem import Problem
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


def present(problem: Problem, weights: Weights, recording: int = 0) -> np.ndarray:
    """Which rows of each step hold a residual, shape (steps, m): samples may be missing, joints may rest."""
    track = problem.tracks[recording]
    dynamics, *sensors = groups(problem, recording)
    seen = zip(track.present, sensors, strict=True)
    columns = [np.repeat(here[..., None], group.size, axis=2) for here, group in seen]
    observed = np.concatenate(columns, axis=2).reshape(track.steps, -1)
    moving = np.ones((track.steps, dynamics.size), bool) if weights.resting is None else ~weights.resting[recording]
    return np.concatenate([moving, observed], axis=1)
