"""Levels of the errors of the dynamics before any fit: from the equations linearised along the first trajectory.

They tell how much of the impulses the parameters can explain: the squares that are left by the step that they ask for,
and the determinant, are those of a fit to a linear problem. A machine that is led along a path (an arm in its position
loop) has gravity and friction many times its inertial impulses, and errors of some per cent of those. A first fit that
believed the equations more than that would leave the readings, and crawl.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sensor_limits import SMALLEST_ERROR, shown_ratio, stated_std
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.first_weights import FIRST_ERROR
from shadowfit.estimation.solve.levenberg_marquardt import WARM_DAMPING
from shadowfit.estimation.solve.proposal import propose
from shadowfit.estimation.uncertainty.evidence import gather
from shadowfit.estimation.uncertainty.file_prior import LEAST_SPREAD
from shadowfit.estimation.uncertainty.levels import LEAST_DEGREES
from shadowfit.estimation.uncertainty.likelihood import stepped_deviance

# Factor between neighbouring values of κ in the scan. It ends where errors would be as large as the impulses
# themselves, or as small as rounding, and says so.
STRIDE = 100.0
LARGEST_ERROR = 10.0
# It goes on while −2 log L falls by more than this.
EVIDENCE = 2.0
# A spread at which nothing is taken from the model file; it has to explain forces by this factor better.
WIDEST_SPREAD, EXPLAINS = 1000.0 * LEAST_SPREAD, 1.3
# Most times that levels of single joints are found anew, until none changes by more than the factor.
ROUNDS, SETTLED = 4, 2.0


def levels_at_start(problem: Problem, start: Point, first: Weights, led: bool) -> Weights:
    """Weights for the first fit, from the first weights.

    The model file's bodies are believed as far as that explains forces: a first fit that believed placeholders would
    take all that the bodies lack for errors. One that believed nothing would send bodies far away, from where some do
    not come back.
    """
    believed = _from_spread(problem, start, first, led, LEAST_SPREAD)
    if not len(problem.parameters.unknown_bodies):
        return believed
    wide = _from_spread(problem, start, first, led, WIDEST_SPREAD)
    explains = np.mean(np.log(believed.unexplained / wide.unexplained)) > np.log(EXPLAINS)
    return wide if explains else believed


def _from_spread(problem: Problem, start: Point, first: Weights, led: bool, spread: float) -> Weights:
    """The levels that belong to a distance of the bodies from the model file's."""
    likely = likely_at_start(problem, start, dataclasses.replace(first, file_spread=spread))
    return of_each_joint(problem, start, likely) if led else likely


def likely_at_start(problem: Problem, start: Point, first: Weights) -> Weights:
    """The first weights, divided by as many strides as the data ask for."""
    lowest, chosen, weights = np.inf, first, first
    while True:
        value = stepped_deviance(problem, start, weights)
        if not lowest - value > EVIDENCE:
            return chosen
        lowest, chosen = value, weights
        if not within(weights, first, 1.0 / STRIDE):
            return chosen
        weights = weights.scaled(1.0 / STRIDE)


def of_each_joint(problem: Problem, start: Point, weights: Weights) -> Weights:
    """The same with a level for each of several joints, where the force of every joint is known.

    The first weights go by the inertial impulses that readings show, which tell little about errors of the torque: a
    slow joint of an arm may have a thousand times what its equation is off by. What the step leaves of its equations,
    ``√(S/D)``, is what least squares on the torques would leave. Sensors begin halfway (in decades) between what their
    readings show and what is stated: at either end they would tell nothing about their own level. Of a loose joint no
    torque was read wrongly: its equation is believed at first, or what it leaves would be the noise of its encoder.
    """
    if len(weights.dynamics) == 1:
        return weights
    shown = shown_ratio(problem)
    now = np.array(weights.std) * weights.reference / stated_std(problem)
    weights = weights.with_levels(np.ones(len(weights.dynamics)), np.sqrt(shown) / now)
    loose = weights.proportion.measured if weights.proportion else np.zeros(len(weights.dynamics), bool)
    for _ in range(ROUNDS):
        step = propose(problem, objective.linearise(problem, start, weights), WARM_DAMPING, "scaled")
        if step is None:
            return weights
        point = objective.plus(problem, start, step.states, step.parameters)
        dynamics = gather(problem, objective.linearise(problem, point, weights), weights).noise[0]
        squares, degrees = np.diagonal(dynamics.squares) / weights.reference**2, np.diagonal(dynamics.freedom)
        known = (degrees > LEAST_DEGREES) & (squares > 0.0) & ~loose
        ratio = np.sqrt(np.where(known, squares / np.where(known, degrees, 1.0), 1.0))
        weights = weights.with_levels(ratio, np.ones(len(weights.std)))
        if np.all(np.abs(np.log(ratio)) < np.log(SETTLED)):
            break
    return weights


def within(weights: Weights, start: Weights, factor: float) -> bool:
    """Whether weights that are ``factor`` times as large still mean errors between a joint's impulses and rounding."""
    # In units of the impulses: the first weights stand for FIRST_ERROR of them.
    error = FIRST_ERROR * np.sqrt(start.state_weight / weights.state_weight / factor)
    error *= weights.reference / start.reference
    return bool(SMALLEST_ERROR <= error <= LARGEST_ERROR)
