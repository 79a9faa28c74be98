"""Gains of drives that start with the wrong sign.

In units of a reading (:mod:`read_forces`) no step leads a gain through zero, where a unit of the reading would be
nothing. Impulses can: the step that they ask for at the start tells the sign.
"""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.read_forces import read_forces
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import WARM_DAMPING
from shadowfit.estimation.solve.proposal import propose

# Part of its start that a gain has to reach on the other side: where little else is known, all forces may shrink to
# about nothing.
CLEARLY = 0.1


def turned(problem: Problem, start: Point, weights: Weights) -> Point:
    """The start with gains of the sign that impulses ask for."""
    read = read_forces(problem, start.values)
    step = (
        None if read is None else propose(problem, objective.linearise(problem, start, weights), WARM_DAMPING, "scaled")
    )
    if read is None or step is None:
        return start
    parameters, gains = problem.parameters, np.any(read.powers != 0.0, axis=0)
    flat = parameters.flat(start.values)
    places = np.concatenate([parameters.places(i)[gains] for i in range(parameters.recordings)])
    wrong = np.isin(np.arange(parameters.size), places) & ((flat + step.parameters) * flat < -CLEARLY * flat**2)
    wrong &= (parameters.lower <= -flat) & (-flat <= parameters.upper)
    if not wrong.any():
        return start
    return problem.revalued(start, parameters.plus(start.values, np.where(wrong, -2.0 * flat, 0.0)))
