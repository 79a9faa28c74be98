"""As much weight on the equations of motion as makes the fitted model predict best.

Errors of a real machine are seldom white: they are functions of its state, small, and the same in every
period. A fit that takes them for white lets the motion wander where the machine keeps its phase, and the parameters
need not explain what adds up over a long time. So the equations of motion are given more weight than their errors ask
for, in strides of a hundred, as long as the model so fitted predicts better over windows from a few steps to the whole
recording (:mod:`solve.prediction`): up to the fit of the output error where the motion is stable, and not at all where
more weight gains nothing. Where no functions are found among the errors (:mod:`uncertainty.latent_search`), or they may
be those of forces that were read at every joint, it must gain far more than it would by chance
(:mod:`uncertainty.chance`): there the likelihood is right, and knows more. Of weights whose simulations follow the data
alike the one is taken that predicts left-out pieces best (:mod:`uncertainty.left_out`). Error bars follow from the most
likely levels, not from the weights.

Where the torque of every joint is known (an arm in its position loop) a controller may have answered
to every error, so that no simulation from the torques alone would stay on the path. Weight is then added only if one
does, and short predictions gain as well; else what is asked of the model is the force along the path. Where these
torques were *measured* none is added: a simulation adds up their errors, which the machine never felt, and one with the
true parameters would leave the path, too. Friction of gears keeps it from leaving far, and parameters would pay for it.
"""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.problem.drives import is_driven, is_read
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.scan import Candidate, Scan, mean_logarithm, usable
from shadowfit.estimation.solve.prediction import Prediction, predict, predict_as_fitted
from shadowfit.estimation.uncertainty import chance
from shadowfit.estimation.uncertainty.left_out import predict_left_out
from shadowfit.estimation.uncertainty.start_levels import STRIDE, within
from shadowfit.mechanism.laws import PositionMotor
from shadowfit.records import record

# Weight is added while the mean logarithm of the prediction errors falls by more than this (by 0.3 per cent) and than
# by chance, and so often more: what adds up over the longest windows only is a small part of the mean, and may come
# late.
WORTHWHILE, PATIENCE = 0.003, 4
# Most iterations with one weight: how well an unfinished fit predicts says nothing about its weight, and it is not
# chosen. (Along a curved valley it would go on for hundreds, and end elsewhere.)
ITERATIONS = 20
# Of weights whose predictions differ by less than this (a per cent) the largest one leaves the fewest unknowns.
ALIKE = 0.01
# Fits whose simulations are off each sensor by no more than this factor times those of the best follow it alike;
# what they predict of data that were left out decides among them.
FOLLOWS_ALIKE = 1.3
# Error over the whole recording, relative to how much readings vary, below which a simulation follows the motion.
FOLLOWED = 0.3
# Equations of a machine in position loops may be stiff: a loop is faster than the time-step. If the cost of a fit grows
# by more than this with the discretisation errors of its own motion, those that it was made with had nothing to do with
# it, and with more weight the next one would chase them. (Legs with stiff gains have 20,000.)
UNSETTLED = 100.0
# Below so many degrees of freedom the equations of motion already hold exactly, and weight by prediction is not asked
# for; below so many more weight changes nothing but the digits that are lost.
RIGID, EXACT = 3.0, 0.1


@record(frozen=True)
class WeightSearch:
    """The search for as much weight on the equations of motion as makes a fit predict better."""

    chosen: Candidate
    predictions: tuple[tuple[float, Prediction], ...] = ()
    by_chance: float = 0.0


def predictive(scan: Scan, likely: Candidate, degrees: float, led: bool, smooth: bool) -> WeightSearch:
    """Fits with more and more weight, the best of which is chosen if it predicts better than the most likely one.

    ``smooth``: errors are known to be functions, not white ones.
    """
    problem = scan.problem
    if problem.plan.unknowns.reach != 3 or scan.stopped is not None or degrees < RIGID:
        return WeightSearch(likely)
    along = likely.point
    tried = [(1.0, predict(problem, along, along.values))]
    # In which proportion the forces of a loose joint stand to the others' is told by how well those are known. Weight
    # on all equations alike would drown that.
    if likely.weights.proportion is not None or is_read(problem):
        return WeightSearch(likely, tuple(tried))
    # Errors of forces that were read have a memory without being functions of the state.
    by_chance = not smooth or is_driven(problem)
    current, worthy = likely, [likely]
    draws: chance.Chance | None = None
    misses = 0
    while misses < PATIENCE and within(current.weights, likely.weights, STRIDE) and scan.has_time:
        current = scan.fitted(current.point, current.weights.scaled(STRIDE), adapt=False, most=ITERATIONS)
        # Beyond the digits of the numbers states are not told any more, and error bars would be rounding.
        if not usable(current.outcome) or not current.evidence.settled:
            break
        if is_driven(problem, PositionMotor) and scan.unsettled(current) > UNSETTLED:
            break
        best = min(prediction.score for _, prediction in tried)
        # With enough freedom some simulation follows any path; of a led machine one along the path itself has to.
        prediction = (
            predict(problem, along, current.point.values) if led else predict_as_fitted(problem, along, current.point)
        )
        tried.append((current.state_weight / likely.state_weight, prediction))
        if led and len(worthy) == 1 and _worse(prediction, tried[-2][1]):
            break
        misses += 1
        gain = tried[0][1].score - prediction.score
        if by_chance and gain > WORTHWHILE:
            draws = draws or chance.drawn(problem, along, likely.weights, likely.evidence)
            draws = draws.tried(current.weights, current.evidence)
        finished = current.outcome.status.converged
        follows = finished and (not led or _follows(prediction, tried[0][1]))
        if follows and (not by_chance or (draws is not None and gain > max(WORTHWHILE, draws.gain))):
            closest = min(one.simulation_error for one in worthy)
            progress = prediction.score < best - WORTHWHILE or current.simulation_error < closest - WORTHWHILE
            misses = 0 if progress else misses
            worthy.append(current)
        if current.evidence.noise[0].degrees < EXACT:
            break
    chosen = _best_left_out(problem, along, worthy)
    return WeightSearch(chosen, tuple(tried), 0.0 if draws is None else draws.gain)


def _best_left_out(problem: Problem, along: Point, worthy: list[Candidate]) -> Candidate:
    """Of the fits that follow the data they were fitted to alike, the one that predicts left-out data best.

    The weight that follows a recording best is nearly always the largest, that of the output error: this is what it
    minimises. Where a part of the machine is unpredictable (a base that sticks and slips) its parameters pay for it.
    """
    closest = min(worthy, key=lambda one: one.simulation_error).simulation_errors
    alike = [one for one in worthy if np.all(one.simulation_errors <= FOLLOWS_ALIKE * closest)]
    if len(alike) == 1:
        return alike[0]
    predictions = [predict_left_out(problem, along, one.point, one.weights) for one in alike]
    scores = [np.inf if prediction is None else prediction.score for prediction in predictions]
    # The largest of weights that are as good leaves the fewest unknowns.
    return next(one for one, score in zip(alike[::-1], scores[::-1], strict=True) if score <= min(scores) + ALIKE)


def _follows(prediction: Prediction, likely: Prediction) -> bool:
    """Whether a simulation from the inputs alone stays near the motion, and short predictions are no worse for it."""
    return mean_logarithm(prediction.errors[-1]) < np.log(FOLLOWED) and prediction.even < likely.even


def _worse(prediction: Prediction, before: Prediction) -> bool:
    """Whether neither the simulation of the whole recording nor short predictions have gained by more weight.

    Both have to, in a machine that is led; there it takes no patience to see that they do not.
    """
    whole, earlier = mean_logarithm(prediction.errors[-1]), mean_logarithm(before.errors[-1])
    return whole > earlier - WORTHWHILE and prediction.even > before.even - WORTHWHILE
