"""Over which speed does dry friction turn, as far as the data tell?

Friction of an ideal joint changes its sign at rest. Gears and bearings of real machines yield first: friction grows to
its level over a speed, and a fit that lets it jump puts the difference into everything else. Where a drive leads a
machine through rest, and its force is known, that speed is seen: joints so far creep as the joint's ``stick_time`` says
(:mod:`shadowfit.dynamics.sliding`), and longer and longer times are compared by their likelihood, the equations
linearised along the present motion and the step that they ask for thought to be made.

Joints have gears of their own. With all of them at one time after another, what a step leaves of each joint's equation,
``N log S`` with its sum of squares S, says which time is the most likely for it. Without evidence friction jumps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.drives import driven
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.uncertainty.start_levels import EVIDENCE
from shadowfit.estimation.uncertainty.thought_step import left_by_step

# First time, in steps (half a step is what a step cannot tell from a jump), and the factor between neighbours. Widths
# end at a part of the largest speed (:mod:`sliding`), and so does the search.
FIRST, FACTOR, MOST = 0.5, 2.0, 8


def creeping(problem: Problem, point: Point, weights: Weights) -> Problem:
    """The problem with friction that turns over the most likely speeds; as it is, where data do not ask for others."""
    joints = _rubbing(problem)
    jumps = _deviances(problem, point, weights)
    best, times = jumps.copy(), np.zeros(len(jumps))
    for rung in range(MOST):
        time = FIRST * FACTOR**rung * problem.timestep
        tried = _deviances(problem.creeping(dict.fromkeys(joints, time)), point, weights)
        better = best - tried > EVIDENCE
        if not better.any():
            break
        best, times = np.where(better, tried, best), np.where(better, time, times)
    chosen = {name: float(times[place]) for name, place in joints.items() if times[place] > 0.0}
    if not chosen:
        return problem
    together = problem.creeping(chosen)
    # Equations share parameters: what is best for each may not be for all.
    return together if np.sum(jumps - _deviances(together, point, weights)) > EVIDENCE else problem


def _rubbing(problem: Problem) -> Mapping[str, int]:
    """Driven joints with dry friction and their places among the coordinates.

    A joint that nothing drives comes to rest where gravity and friction let it, and sticks there. One whose model says
    how long it creeps does that.
    """
    names, moved, least = problem.level_names or (), driven(problem), FIRST * problem.timestep
    joints = problem.mechanism.joints.items()
    return {
        name: names.index(name)
        for name, joint in joints
        if joint.friction is not None and name in names and name in moved and float(joint.friction.stick_time) <= least
    }


def _deviances(problem: Problem, point: Point, weights: Weights) -> Float[np.ndarray, " d"]:
    """``N log S`` of each coordinate's linearised equation after the step that they ask for."""
    left, size = left_by_step(problem, point, weights), problem.plan.node_size
    if left is None:
        return np.full(size, np.inf)
    squares = sum(np.sum(each[:, :size] ** 2, axis=0) for each in left)
    return sum(len(each) for each in left) * np.log(np.maximum(squares, np.finfo(float).tiny))
