"""What friction at rest may be: whatever balances the other forces, up to its level.

A law that is a function of the speed has no friction at rest; the machine has any between −L and L, which depends on
how it came to rest. That is one unknown force for each rest, of variance ``L²/3`` if nothing else is known of it. As an
error of the n equations of the rest that are taken one by one, it has the variance

    s² = n p L²/3,        p = 1 − A²,        n_k = f_k + b_k − p_k,        f_k = p_k (1 + f_{k−1}),

beside the level σ² of other errors, so that the mean of the rest has ``L²/3``. A is the mean direction of friction in a
step (:mod:`shadowfit.dynamics.sliding`), whose square falls from one to zero where the axis comes to rest; f counts the
steps that it has rested for, and b those that it will. Nothing has to be decided: an axis that turns without resting is
open for a step, one that never rests has s = 0, and so has one without dry friction.

The rows of these equations are weighed by ``c = σ/√(σ² + s²)`` beside the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics.sliding import mean_direction
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.stopping import Braked


def opening(problem: Problem, braked: Braked, widths: Float[np.ndarray, "steps a"]) -> Float[np.ndarray, "steps r"]:
    """s of each equation of motion along a recording [N m s, N s]."""
    size = braked.levels.shape[1]
    before = braked.speeds[:, :size]
    after = np.concatenate([before[1:], before[-1:]])
    stuck = 1.0 - np.asarray(mean_direction(before, after, widths[:, :size], library=np)) ** 2
    lasting = _rested(stuck) + _rested(stuck[::-1])[::-1] - stuck
    spread = braked.levels * np.sqrt(np.maximum(lasting * stuck, 0.0) / 3.0)
    return spread[:, problem.plan.unknowns.level_places]


def _rested(stuck: Float[np.ndarray, "steps d"]) -> Float[np.ndarray, "steps d"]:
    """f."""
    columns = (itertools.accumulate(own, lambda f, p: p * (1.0 + f), initial=0.0) for own in stuck.T.tolist())
    return np.array([list(own)[1:] for own in columns]).reshape(stuck.shape[::-1]).T


def all_told(problem: Problem, point: Point, weights: Weights) -> list[Float[np.ndarray, "steps r"]]:
    """c of the recordings in which equations do not all count as they are."""
    counted = (told(problem, point, weights, index) for index in range(len(problem.tracks)))
    return [own for own in counted if own is not None]


def left_open(counted: Sequence[Float[np.ndarray, "steps r"]]) -> float:
    """``Σ (1 − c²)``: how many equations of motion tell nothing of the level of other errors."""
    return sum(float(np.sum(1.0 - own**2)) for own in counted)


def told(problem: Problem, point: Point, weights: Weights, recording: int) -> Float[np.ndarray, "steps r"] | None:
    """c; None where all equations count as they are."""
    stopping = None if point.stopping is None else point.stopping[recording]
    if not weights.sticks or stopping is None or stopping.open is None:
        return None
    level = np.diagonal(weights.dynamics) / weights.reference
    units = weights.units(problem.parameters, point.values, recording)
    if units is not None:
        level = level * units[0]
    return np.asarray(1.0 / np.hypot(1.0, stopping.open * level))
