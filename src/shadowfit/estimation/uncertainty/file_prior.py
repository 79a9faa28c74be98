"""How far a model file's bodies are from the machine's: a prior whose size the data tell.

Of the ten inertial numbers of each link of an arm a motion tells some forty combinations in all. The rest would wander
wherever the errors of the model push it, to masses of a thousand kilograms, without a change of any torque. Files come
from drawings, and are seldom absurd. So bodies whose ten numbers are all free, and of which the user says nothing, have
an entropic prior (:mod:`problem.priors`) about the file's values, of one spread σ relative to themselves for all. It is
found from how far the data pull those combinations that they tell (MacKay, Bayesian interpolation, 1992):

    σ² = dᵀA d/γ,        γ = n − tr(A C)/σ²,

with d the increments from the file's values, A their information for a spread of one, C their covariance, and γ how
many of the n numbers the data tell. Where a file has placeholders (moments of 1e-3 for every link) the data say so, σ
becomes large, and the prior is none; but no file is believed to better than its own sizes, for a spread that follows
from a few numbers would be too sure of the rest.
"""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.uncertainty.evidence import Evidence

# No file is believed to better than this.
LEAST_SPREAD = 1.0
# Numbers that the data must tell for a spread to follow from them.
LEAST_TOLD = 1.0
# A spread that changes by less than this factor has settled.
SETTLED = 1.2


def file_spread(problem: Problem, point: Point, weights: Weights, evidence: Evidence) -> float:
    """The spread that follows from a fit; the present one where the data tell next to nothing."""
    bodies = problem.parameters.unknown_bodies
    if not len(bodies) or not np.isfinite(weights.file_spread):
        return weights.file_spread
    untold = float(np.sum(evidence.file_prior * evidence.bread(~evidence.at_bound)))
    told = bodies.places.size - untold
    if told < LEAST_TOLD:
        return weights.file_spread
    difference = problem.parameters.from_start(point.values)[0]
    squares = difference @ problem.parameters.file_information @ difference
    return max(float(np.sqrt(squares / told)), LEAST_SPREAD)


def settled(before: float, after: float) -> bool:
    """Whether a spread has not changed by much."""
    return before == after or max(before / after, after / before) < SETTLED
