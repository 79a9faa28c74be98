"""The speeds that widths of dry friction follow from (:mod:`stopping`), along the motions of a point."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from shadowfit.dynamics.sliding import widest
from shadowfit.estimation.linear.threads import in_threads
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.residuals.stopping import Braked, Stopping, alike

# Steps that are evaluated in one call.
PART = 4032


def is_regularised(problem: Problem) -> bool:
    """Whether rows have widths of dry friction that are held."""
    return len(problem.kernels.stick_times) > 0


def stopping_along(problem: Problem, point: Point, recording: int) -> Stopping:
    """Those of the motion of one recording, without limits to the widths, as in a simulation."""
    return Stopping(_braked(problem, point, recording).stopped)


def with_stopping(problem: Problem, point: Point, part: float = 0.0) -> Point:
    """The point with stopping speeds of its own motion; the same point where none differs by more than a part.

    Limits to the widths stay those of the first trajectory, which the sensors show: estimated states may be rough.
    """
    if not is_regularised(problem):
        return point
    found: Sequence[Stopping]
    if point.stopping is None:
        found = [_limited(problem, _braked(problem, point, index)) for index in range(len(point.nodes))]
    else:
        found = [
            stopping_along(problem, point, index).limited(before.most)
            for index, before in enumerate(point.stopping)
            if before.most is not None
        ]
        if all(alike(own, before, part) for own, before in zip(found, point.stopping, strict=True)):
            return point
    return dataclasses.replace(point, stopping=tuple(found))


def _limited(problem: Problem, braked: Braked) -> Stopping:
    fastest = np.max(np.abs(braked.speeds), axis=0)
    return Stopping(braked.stopped).limited(widest(fastest, problem.options.correction != "none"))


def _braked(problem: Problem, point: Point, recording: int) -> Braked:
    """What stopping speeds follow from, and the speeds of the axes."""
    poses, steps = point.nodes[recording].pose, problem.tracks[recording].steps
    if not is_regularised(problem):
        return Braked(*np.zeros((2, steps, 0)))
    values = problem.parameters.of_recording(point.values, recording)
    command, _ = problem.commands_at(point.values, recording)

    def some(begin: int) -> Braked:
        end = min(begin + PART, steps)
        return problem.kernels.braked(values, poses[begin : end + 2], command[begin:end], problem.timestep)

    return Braked(*map(np.concatenate, zip(*in_threads(some, range(0, steps, PART)), strict=True)))
