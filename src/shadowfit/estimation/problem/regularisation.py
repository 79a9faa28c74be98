"""What a fit holds of dry friction along the motions of a point: its widths (:mod:`stopping`), and where it rests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from shadowfit.dynamics.sliding import widest
from shadowfit.estimation.linear.threads import in_threads
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sticking import opening
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
    before: Sequence[Stopping | None] = point.stopping or [None] * len(point.nodes)
    found = [_held(problem, _braked(problem, point, index), own) for index, own in enumerate(before)]
    if all(held is not None and alike(own, held, part) for own, held in zip(found, before, strict=True)):
        return point
    return dataclasses.replace(point, stopping=tuple(found))


def _held(problem: Problem, braked: Braked, before: Stopping | None) -> Stopping:
    """What is held of a motion, with the limits to widths from before."""
    most = None if before is None else before.most
    if most is None:
        most = widest(np.max(np.abs(braked.speeds), axis=0), problem.options.correction != "none")
    held = Stopping(braked.stopped).limited(most)
    if problem.level_names is None:
        return held
    # Where a joint creeps friction is known; it rests over the speeds that a step cannot tell.
    widths = held.widths(np.zeros_like(problem.kernels.stick_times), problem.timestep)
    return Stopping(held.speeds, held.most, opening(problem, braked, widths))


def _braked(problem: Problem, point: Point, recording: int) -> Braked:
    """What stopping speeds follow from, and the speeds of the axes."""
    poses, steps = point.nodes[recording].pose, problem.tracks[recording].steps
    if not is_regularised(problem):
        return Braked(*np.zeros((3, steps, 0)))
    values = problem.parameters.of_recording(point.values, recording)
    command, _ = problem.commands_at(point.values, recording)

    def some(begin: int) -> Braked:
        end = min(begin + PART, steps)
        return problem.kernels.braked(values, poses[begin : end + 2], command[begin:end], problem.timestep)

    return Braked(*map(np.concatenate, zip(*in_threads(some, range(0, steps, PART)), strict=True)))
