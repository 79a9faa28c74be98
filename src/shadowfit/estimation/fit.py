"""Fit a mechanism to recordings: one call from data to an :class:`Estimate`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.noise import estimate_noise
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.options import Options
from shadowfit.estimation.problem.parameters import FreeParameters, parameter_set
from shadowfit.estimation.problem.pieces import all_pieces
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.reach import within_reach
from shadowfit.estimation.problem.weights import Weights, default_weights
from shadowfit.estimation.result import Estimate, Seconds
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt, Outcome, Progress
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.models.matching import matched
from shadowfit.recordings import Recording
from shadowfit.runtime import double_precision

# Times that held moments of inertia follow estimated ones; each leaves a small part of the change before.
ROUNDS = 5
# They end when no moment gives way by more than this part of itself: the fit does not notice.
UNNOTICED = 1e-3


def fit(
    mechanism: Mechanism,
    recordings: Recording | Sequence[Recording],
    free: FreeParameters = (),
    *,
    options: Options | None = None,
    optimiser: LevenbergMarquardt | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate the free parameters and all states from recordings.

    ``free`` lists names (or shell-style patterns) of the mechanism's numbers, or maps them to start values or
    :class:`Free`; empty: only the states are estimated. Recordings with gaps that nothing leads across are several
    (:mod:`shadowfit.estimation.problem.pieces`). A fit always returns: the estimate's status says how it
    ended, and why.
    """
    double_precision()
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    listed = all_pieces(mechanism, [matched(mechanism, one) if isinstance(one, Recording) else one for one in listed])
    problem = build_problem(
        mechanism, listed, parameter_set(mechanism, free, max(len(listed), 1)), options or Options()
    )
    return solve(problem, optimiser or LevenbergMarquardt(), progress)


def solve(problem: Problem, optimiser: LevenbergMarquardt, progress: Progress | None = None) -> Estimate:
    """Solve a problem from its initial trajectory."""
    began = time.perf_counter()
    with one_thread():
        objective.prepare(problem, problem.parameters.start(), default_weights(problem, 1.0))
        start = start_point(problem)
        initialised = time.perf_counter()
        choice = None
        if problem.options.state_weight == "auto":
            problem, outcome, weights, choice = estimate_noise(problem, start, optimiser, progress)
        else:
            weights = default_weights(problem, problem.options.state_weight)
            outcome = minimise_corrected(problem, start, weights, optimiser, progress)
        problem, outcome = _with_followers(problem, outcome, weights, optimiser, progress)
        weights = weights.settled_at(problem.parameters, outcome.linearisation.point.values)
    ended = time.perf_counter()
    seconds = Seconds(ended - began, initialised - began, ended - initialised)
    return Estimate(problem, weights, outcome, seconds, choice)


def _with_followers(
    problem: Problem, outcome: Outcome, weights: Weights, optimiser: LevenbergMarquardt, progress: Progress | None
) -> tuple[Problem, Outcome]:
    """Go on beside held moments of inertia that have given way to the estimated ones, until all bodies are possible."""
    for _ in range(ROUNDS):
        point = outcome.linearisation.point
        changed = problem.parameters.followers(point.values, seen_only=True)
        if not changed or not outcome.status.converged:
            break
        before = {name: problem.mechanism.get(name) for name in changed}
        problem = problem.holding(changed)
        if all(abs(changed[name] - value) <= UNNOTICED * abs(value) for name, value in before.items()):
            break
        log = outcome.log
        warm = optimiser.warm(log[-1].number)
        outcome = minimise_corrected(problem, point, weights, warm, progress, log[-1].number)
        outcome = dataclasses.replace(outcome, log=(*log, *outcome.log[1:]))
    return problem, outcome


def start_point(problem: Problem) -> Point:
    """Start values (or the nearest with possible bodies, and contacts in reach) and initial trajectories."""
    values = problem.parameters.possible(problem.parameters.start())
    assert values is not None, "checked when the parameters were"
    values = within_reach(problem, values)
    return Point(values, tuple(initial_nodes(problem, values, i) for i in range(len(problem.tracks))))
