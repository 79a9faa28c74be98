"""Over which speed does dry friction turn, as far as the data tell?

Friction of an ideal joint changes its sign at rest. Gears and bearings of real machines yield first: friction grows to
its level over a speed, and a fit that lets it jump puts the difference into everything else. Where a drive leads a
machine through rest, and its force is known, that speed is seen: joints so far creep as the joint's ``stick_time`` says
(:mod:`shadowfit.dynamics.sliding`), and longer and longer times are compared by their likelihood, the equations
linearised along the present motion and the step that they ask for thought to be made. Without evidence friction jumps.
"""

from __future__ import annotations

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.uncertainty.likelihood import stepped_deviance

# First time, in steps (half a step is what a step cannot tell from a jump), and the factor between neighbours. Widths
# end at a part of the largest speed (:mod:`sliding`), and so does the search.
FIRST, FACTOR, MOST = 0.5, 2.0, 8
# −2 log L has to fall by more than this.
EVIDENCE = 2.0


def fading(problem: Problem, point: Point, weights: Weights) -> Problem:
    """The problem with friction that turns over the most likely speed; as it is, where data do not ask for another."""
    chosen, lowest = problem, stepped_deviance(problem, renewed(problem, point), weights)
    for rung in range(MOST):
        tried = problem.creeping(FIRST * FACTOR**rung * problem.timestep)
        value = stepped_deviance(tried, renewed(tried, point), weights)
        if not lowest - value > EVIDENCE:
            break
        chosen, lowest = tried, value
    return chosen
