"""Which residual stands where among the rows of a time step."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation.problem import Problem


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
