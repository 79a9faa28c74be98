"""Equations of motion as constraints: of all fits the one whose simulations follow the recordings.

What a model lacks is seldom white noise: it is a small function of the machine's state, the same in every period. A fit
that takes it for white forces lets the motion wander where the machine keeps its phase, and its parameters need not
explain what adds up over a long time. A simulator has no such forces. So its parameters are those whose equations hold
exactly (the fit of the output error), reached from the most likely levels by more and more weight on the equations,
each fit from where the last one ended: a start for a single simulation may be far too poor where this path is not.

**What was measured has noise.** Some machines keep the most likely levels:

* one whose drives' forces were *measured* while a controller held its path: a simulation would add up errors of the
  readings that the machine never felt, and parameters would pay for them;
* one that no simulation from its inputs alone follows, because a controller answered to what the model lacks;
* one of whose forces somebody has said how well they are known;
* one whose errors *are* white forces, of which the most likely parameters heed all that the data say.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.drives import is_driven, is_led, is_read
from shadowfit.estimation.scan import Candidate, Scan, usable
from shadowfit.estimation.uncertainty.evidence import EXACT
from shadowfit.estimation.uncertainty.likelihood import stepped_deviance
from shadowfit.mechanism.laws import PositionMotor, Servo

# Factor from weight to weight (in κ): forces that were free give way by its root.
STRIDE = 1e3
# Most iterations with one weight; the last fit goes to the end.
ITERATIONS = 20
# Equations of a machine in position loops may be stiff: a loop is faster than the time-step. If the cost of a fit grows
# by more than this with the discretisation errors of its own motion, those that it was made with had nothing to do with
# it, and with more weight the next one would chase them. (Legs with stiff gains have 20,000.)
UNSETTLED = 100.0


def constrained(scan: Scan, likely: Candidate, smooth: bool) -> Candidate:
    """The fit whose equations of motion hold exactly, or the most likely one where that says more.

    ``smooth``: whether errors of the most likely fit are functions of the motion, rather than white.
    """
    problem, current = scan.problem, likely
    criterion = problem.options.errors.criterion
    if problem.plan.unknowns.reach != 3 or criterion == "parameters" or (criterion == "auto" and forces_count(likely)):
        return likely
    if likely.evidence.noise[0].degrees <= EXACT:
        return likely
    errs = has_errors(likely)
    if criterion == "auto" and errs and not smooth:
        return likely
    sticks = likely.weights.sticks and not errs
    while current.evidence.noise[0].degrees > EXACT and scan.has_time:
        weights = dataclasses.replace(current.weights.scaled(STRIDE), sticks=sticks)
        stiffer = scan.fitted(current.point, weights, adapt=False, most=ITERATIONS, exact=True)
        # Beyond the digits of the numbers states are not told any more, and error bars would be rounding.
        if not usable(stiffer.outcome) or not stiffer.evidence.settled:
            break
        if is_driven(problem, PositionMotor | Servo) and scan.unsettled(stiffer) > UNSETTLED:
            break
        if criterion == "auto" and is_led(problem) and not follows(stiffer):
            return likely
        current = stiffer
    return current


def forces_count(likely: Candidate) -> bool:
    """Whether it is known how well forces are, or they tell what no motion does.

    In which proportion the forces of a loose joint stand to the others' is told by how well those are known.
    """
    problem = likely.problem
    return is_read(problem) or bool(problem.options.errors.forces) or likely.weights.proportion is not None


def between(likely: Candidate, exact: Candidate) -> Float[np.ndarray, " p"]:
    """Variance of each parameter about the exact answer if the machine's is anywhere between the two.

    Where the model is right both answers are the same within their bars (Hausman, Econometrica 1978). What they differ
    by beyond that is what the model is wrong by, and of a number between zero and d the mean square is ``d²/3``.
    """
    apart = likely.problem.parameters.minus(exact.point.values, likely.point.values)
    variance = np.maximum(apart**2 - likely.evidence.std**2, 0.0) / 3.0
    return np.where(exact.evidence.at_bound, 0.0, variance)


def has_errors(likely: Candidate) -> bool:
    """Whether the data show errors of the equations of motion, by Schwarz's criterion for a level of each joint.

    Where they do not, equations that hold exactly are the most likely ones, too, and leave friction at rest open as
    these do. A simulator knows no such friction, and where the model lacks something else it would be made to fit that.
    """
    problem, weights = likely.problem, dataclasses.replace(likely.weights, pull=None)
    exact, white = (stepped_deviance(problem, likely.point, one) for one in (weights.scaled(STRIDE), weights))
    return exact - white > len(weights.dynamics) * np.log(problem.sample_count())


def follows(candidate: Candidate) -> bool:
    """Whether simulations of whole recordings explain more of what each sensor reads than they leave."""
    return bool(np.all(candidate.simulation_errors**2 < 0.5))
