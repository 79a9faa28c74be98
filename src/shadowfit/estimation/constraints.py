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
* one of whose forces somebody has said how well they are known.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.drives import is_driven, is_led, is_read
from shadowfit.estimation.scan import Candidate, Scan, usable
from shadowfit.estimation.uncertainty.evidence import EXACT
from shadowfit.mechanism.laws import PositionMotor, Servo

# Factor from weight to weight (in κ): forces that were free give way by its root.
STRIDE = 1e3
# Most iterations with one weight; the last fit goes to the end.
ITERATIONS = 20
# Equations of a machine in position loops may be stiff: a loop is faster than the time-step. If the cost of a fit grows
# by more than this with the discretisation errors of its own motion, those that it was made with had nothing to do with
# it, and with more weight the next one would chase them. (Legs with stiff gains have 20,000.)
UNSETTLED = 100.0


def constrained(scan: Scan, likely: Candidate) -> Candidate:
    """The fit whose equations of motion hold exactly, or the most likely one where that says more."""
    problem, current = scan.problem, likely
    if problem.plan.unknowns.reach != 3 or is_read(problem) or problem.options.force_noise:
        return likely
    # In which proportion the forces of a loose joint stand to the others' is told by how well those are known.
    if likely.weights.proportion is not None:
        return likely
    while current.evidence.noise[0].degrees > EXACT and scan.has_time:
        stiffer = scan.fitted(current.point, current.weights.scaled(STRIDE), adapt=False, most=ITERATIONS)
        # Beyond the digits of the numbers states are not told any more, and error bars would be rounding.
        if not usable(stiffer.outcome) or not stiffer.evidence.settled:
            break
        if is_driven(problem, PositionMotor | Servo) and scan.unsettled(stiffer) > UNSETTLED:
            break
        if is_led(problem) and not follows(stiffer):
            return likely
        current = stiffer
    return current


def apart(likely: Candidate, exact: Candidate) -> Float[np.ndarray, " p"]:
    """Variance of each parameter by which the two answers differ beyond what noise may make of the first.

    Where the model is right the most likely errors of forces are none, and both are the same within their bars
    (Hausman, Econometrica 1978). By how much more they differ is what the model is wrong by.
    """
    moved = likely.problem.parameters.minus(exact.point.values, likely.point.values)
    return np.where(exact.evidence.at_bound, 0.0, np.maximum(moved**2 - likely.evidence.std**2, 0.0))


def follows(candidate: Candidate) -> bool:
    """Whether simulations of whole recordings explain more of what each sensor reads than they leave."""
    return bool(np.all(candidate.simulation_errors**2 < 0.5))
