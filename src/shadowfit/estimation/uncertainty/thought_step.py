"""What equations that are linearised leave after the step that they ask for, which is only thought to be made."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import WARM_DAMPING
from shadowfit.estimation.solve.proposal import propose
from shadowfit.estimation.solve.truncation import renewed


def left_by_step(problem: Problem, point: Point, weights: Weights) -> list[Float[np.ndarray, "n m"]] | None:
    """Weighted residuals of each recording's steps, with the discretisation errors of the point; None: no step."""
    here = objective.linearise(problem, renewed(problem, point), weights)
    step = propose(problem, here, WARM_DAMPING, "scaled")
    if step is None:
        return None
    return [
        objective.residuals_after(problem, here.point, weights, index, states, step.parameters)
        for index, states in enumerate(step.states)
    ]
