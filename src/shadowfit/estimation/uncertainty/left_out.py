"""How well a model predicts pieces of the data that it was not fitted to, for the price of one linearisation.

A fit whose weights let it follow the whole of a recording predicts that recording best, because that is what it was
fitted to. Whether it has learned the machine shows on data that were left out. The data are cut into pieces, each with
states of its own, whose rows leave an information H_b and a gradient g_b (:mod:`blocks`). Without piece b the
estimate moves by

    δ_b = −(Σ_{a≠b} H_a)⁻¹ Σ_{a≠b} g_a,

and b is predicted with parameters χ + δ_b, over windows from a few steps to all of the piece
(:mod:`shadowfit.estimation.solve.prediction`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.prediction import Motion, Prediction, horizons, linearised, window_errors
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.uncertainty.blocks import HOLD, Cut, estimate_alone, partitions, statements

# About so many pieces: each is predicted by a fit to most of the data.
PIECES = 4


def predict_left_out(problem: Problem, along: Point, fitted: Point, weights: Weights) -> Prediction | None:
    """Predictions of each piece by a fit to the others, around states that follow the samples.

    None where the data are too short to be cut.
    """
    cuts = _cuts(problem)
    if cuts is None:
        return None
    changes = list(_changes(problem, fitted, weights, cuts))
    point = renewed(problem, problem.revalued(along, fitted.values))
    motions = [linearised(problem, point, index) for index in range(len(problem.tracks))]

    def pieces() -> Iterator[tuple[Motion, Float[np.ndarray, "n d+m 1"]]]:
        for cut, change in zip(cuts, changes, strict=True):
            motion = motions[cut.recording].between(cut.first, cut.last)
            moved = motion.parameters @ change[problem.parameters.places(cut.recording)]
            yield motion, (motion.residual + moved)[..., None]

    return window_errors(problem, pieces(), horizons(max(cut.last - cut.first for cut in cuts)))[0]


def _cuts(problem: Problem) -> list[Cut] | None:
    """The partition into about as many pieces as are wanted."""
    cuttings = [cuts for cuts in partitions(problem) if len(cuts) > 1]
    return min(cuttings, key=lambda cuts: abs(len(cuts) - PIECES), default=None)


def _changes(problem: Problem, fitted: Point, weights: Weights, cuts: list[Cut]) -> Iterator[Float[np.ndarray, " p"]]:
    """δ_b of each piece, within the bounds; parameters on a bound stay there."""
    told = statements(problem, fitted, weights, cuts, weights.impulse_ratio)
    information = np.sum([told[cut].information for cut in cuts], axis=0)
    gradient = np.sum([told[cut].gradient for cut in cuts], axis=0)
    lower, upper = problem.parameters.bounds(fitted.values)
    free: Bool[np.ndarray, " p"] = (lower < 0.0) & (upper > 0.0)
    for cut in cuts:
        one = told[cut]
        others = information - one.information + HOLD * information
        change = estimate_alone(others, gradient - one.gradient, information, free, problem.parameters.scales)[0]
        yield np.clip(change, lower, upper)
