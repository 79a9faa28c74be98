"""Noise levels from the data: errors of each joint's equation of motion, and of each sensor.

**How likely.** Errors of the equations of motion have a level for each joint coordinate (the impulse [N m s, N s] that
a step lacks), those of the sensors one each; their likelihood is that of :mod:`uncertainty.likelihood`. All levels of
the dynamics are first moved together, in strides of ten, from a hundredth of the impulses that the motion shows (or
more, if the equations linearised along the first trajectory ask for it), as long as the likelihood rises by evidence;
each fit starts from the last one, which is also how a small level is reached without crawling. On recordings without
errors of the dynamics the likelihood rises to a plateau: where it is indifferent, the smaller level leaves fewer
unknowns. A scale common to all levels is known without further work (``s² = Σ S_g/σ_g²/ν``). From there Newton steps
(:mod:`uncertainty.levels`) lead to the most likely level of every joint and sensor. Sensors stay within a factor of ten
of what the model file states, unless their readings are smoother than that (:mod:`problem.noise_floor`).

**Acting or read.** Errors of the equations of motion are forces that act on the machine, or errors of a force that was
read while a loop held the path. The likelihood of the former has a determinant (:mod:`uncertainty.determinant`) that
matters for inertias, as far as errors are not in the known forces themselves.

**How useful.** Errors of a real machine are seldom white, and the parameters that make simulations follow are those of
equations that hold exactly (:mod:`constraints`). Error bars follow from what these leave.

**The model file.** Bodies all of whose numbers are free have a prior about the file's, as wide as the data say
(:mod:`uncertainty.file_prior`).

**At rest.** Friction of joints that rest is open within its level (:mod:`problem.sticking`).

**Near rest.** Where a drive leads every joint through rest, by its torque or a target, the speed over which dry
friction turns is seen (:mod:`uncertainty.near_rest`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.constraints import between, constrained
from shadowfit.estimation.problem.drives import is_led, passes_rest
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.read_forces import read_forces
from shadowfit.estimation.problem.sensor_limits import sensor_limits, stated_std
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.scan import Candidate, Scan, usable
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.solve.levenberg_marquardt import (
    LevenbergMarquardt,
    Outcome,
    Progress,
    Status,
)
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.solve.turned_gains import turned
from shadowfit.estimation.solve.undriven import proportioned
from shadowfit.estimation.uncertainty.delays import caught_up
from shadowfit.estimation.uncertainty.determinant import acting_share, pull
from shadowfit.estimation.uncertainty.evidence import EXACT
from shadowfit.estimation.uncertainty.file_prior import file_spread, settled
from shadowfit.estimation.uncertainty.latent_search import Explanation, explain
from shadowfit.estimation.uncertainty.levels import LevelStep, given_levels, level_step
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.estimation.uncertainty.near_rest import creeping
from shadowfit.estimation.uncertainty.start_levels import EVIDENCE, STRIDE, levels_at_start, within
from shadowfit.records import record

# Of two values of κ whose −2 log L differs by less than this the larger one is preferred: it leaves fewer unknowns.
INDIFFERENCE = 0.5
# Most fits on the way to the levels of single joints and sensors. A Newton step that makes the data less likely has
# gone too far and is shortened by the factor, unless it changes no level by more than so much: it cannot have gone far.
REFINEMENTS, SHORTER, SHORT = 8, 0.25, 1.5
# Most times that the distance from the model file's bodies is found anew.
SPREADS = 4
# Most times that the forces of loose joints are found anew, until they change by less than this part.
GROWTHS, GROWN = 10, 0.05
# Most times that the pull of acting forces is found anew (it depends on the inertias that it moves), until they move by
# less than a part of their standard deviations.
PULLS, SETTLED = 10, 0.1


@record(frozen=True)
class NoiseChoice:
    """How the weights were found, for the report."""

    added_weight: float
    """Factor by which the equations of motion are weighed more (in κ) than their errors ask for."""
    acting: bool | None
    """Whether errors are taken for white forces that act; False: for others; None: it makes no difference."""
    explanation: Explanation
    """What errors are: white ones, and functions of the motion, of time or of a reading."""
    at_end: bool
    """Whether levels of the dynamics ended at a limit of their scan, and not by what the data say."""
    sensor_ratio: tuple[float, ...]
    """Standard deviation of each sensor relative to the stated one."""
    led: bool = False
    """Whether all joints' forces are known: weight is added only if simulations follow the path."""
    stick_time: Mapping[str, float] | None = None
    """How long joints creep near rest [s], where the data were asked; friction of those that are not named jumps."""
    most_likely: tuple[float, ...] | None = None
    """The most likely value of each row of the table of parameters, where equations hold exactly instead."""


def estimate_noise(
    problem: Problem, start: Point, settings: LevenbergMarquardt, progress: Progress | None = None
) -> tuple[Problem, Outcome, Weights, NoiseChoice | None]:
    """The fit with weights that follow from the data, these, and how they were found (None if the first fit failed).

    With the problem, whose friction may turn near rest as the data say.
    """
    scan = Scan(problem, settings, progress)
    led = is_led(problem)
    weights = dataclasses.replace(first_weights(problem, start), sticks=True)
    if led:
        start = turned(problem, start, weights)
        weights = proportioned(problem, start, weights)
        weights = dataclasses.replace(weights, read=read_forces(problem, start.values))
    best = scan.fitted(start, levels_at_start(problem, start, weights, led), first=True)
    if not best.outcome.status.converged:
        return problem, dataclasses.replace(best.outcome, log=tuple(scan.log)), weights, None
    given = problem
    tried, cut_off = _climb(scan, best, weights)
    likely = _as_far_from_file(scan, _preferred(tried))
    # Fits that were left behind are not kept: each holds tens of megabytes.
    del best, tried
    likely = _as_large_as_told(scan, likely)
    likely = _caught_up(scan, likely)
    passing = passes_rest(problem)
    if passing:
        likely = _near_rest(scan, likely)
        problem = scan.problem
    likely, at_peak = _refined(scan, likely)
    likely = _as_far_from_file(scan, likely)
    degrees = likely.evidence.noise[0].degrees
    likely, acting = _acting_or_read(scan, likely, degrees)
    explanation = explain(problem, likely.outcome.linearisation, likely.weights, likely.evidence)
    chosen, most_likely = constrained(scan, likely, explanation.smooth), None
    if chosen is not likely:
        most_likely = tuple(problem.parameters.vector(likely.point.values).tolist())
        two = tuple(between(likely, chosen).tolist())
        chosen = _with_unexplained(problem, likely, chosen)
        chosen = dataclasses.replace(chosen, weights=dataclasses.replace(chosen.weights, between=two))
    outcome = scan.stopped or scan.finished(chosen.point, chosen.weights)
    if not usable(outcome):
        status = outcome.status if outcome.status is Status.INTERRUPTED else chosen.outcome.status
        outcome = dataclasses.replace(chosen.outcome, status=status)
    added = chosen.state_weight / likely.state_weight
    ended = cut_off and not at_peak
    ratio = np.array(chosen.weights.std) * chosen.weights.reference / stated_std(problem)
    creeps = problem.options.stick_time
    stick_time = (creeps if isinstance(creeps, Mapping) else {}) if passing and given.rubs else None
    choice = NoiseChoice(added, acting, explanation, ended, tuple(ratio.tolist()), led, stick_time, most_likely)
    return problem, dataclasses.replace(outcome, log=tuple(scan.log)), chosen.weights, choice


def _as_far_from_file(scan: Scan, candidate: Candidate) -> Candidate:
    """The fit whose bodies are as far from the model file's as its own estimates say."""
    for _ in range(SPREADS):
        spread = file_spread(scan.problem, candidate.point, candidate.weights, candidate.evidence)
        if settled(candidate.weights.file_spread, spread) or not scan.has_time:
            break
        weights = dataclasses.replace(candidate.weights, file_spread=spread)
        moved = scan.fitted(candidate.point, weights, adapt=False)
        if not usable(moved.outcome):
            break
        candidate = moved
    return candidate


def _as_large_as_told(scan: Scan, candidate: Candidate) -> Candidate:
    """The fit whose loose joints have forces as large as those of other joints say.

    A common factor of all their numbers hardly shows, and what a fit holds (widths of friction) holds it back.
    """
    for _ in range(GROWTHS):
        before = candidate.weights.proportion
        if before is None or not scan.has_time:
            break
        moved = scan.fitted(candidate.point, candidate.weights, adapt=False)
        after = moved.weights.proportion
        if not usable(moved.outcome) or after is None:
            break
        candidate, measured = moved, before.measured
        if np.all(np.abs(np.log(after.size[measured] / before.size[measured])) < GROWN):
            break
    return candidate


def _caught_up(scan: Scan, likely: Candidate) -> Candidate:
    """The fit with delays of drives in the time steps where they are most likely."""
    if not (scan.has_time and usable(likely.outcome)):
        return likely
    point = caught_up(scan.problem, likely.point, likely.weights)
    if point is likely.point:
        return likely
    moved = scan.fitted(point, likely.weights)
    return moved if usable(moved.outcome) and likely.deviance - moved.deviance > EVIDENCE else likely


def _near_rest(scan: Scan, likely: Candidate) -> Candidate:
    """The fit with dry friction that turns over the speed that the data show; the scan goes on with it."""
    if not (scan.problem.rubs and scan.has_time and usable(likely.outcome)):
        return likely
    before, scan.problem = scan.problem, creeping(scan.problem, likely.point, likely.weights)
    if scan.problem is before:
        return likely
    moved = scan.fitted(likely.point, likely.weights)
    if usable(moved.outcome):
        return moved
    scan.problem = before
    return likely


def _climb(scan: Scan, first: Candidate, start: Weights) -> tuple[list[Candidate], bool]:
    """Fits at larger and larger κ until the data speak against it or do not care; else at smaller ones.

    And whether a limit of κ cut it off while fits were still becoming more likely.
    """
    tried, cut_off = [first], False
    if np.all(given_levels(first.problem)[: -len(first.problem.error_sizes)]):
        return tried, cut_off
    for factor in (STRIDE, 1.0 / STRIDE):
        current, rising = first, False
        while within(current.weights, start, factor) and usable(current.outcome) and not scan.stopped:
            current = scan.fitted(current.point, current.weights.scaled(factor))
            gain = min(one.deviance for one in tried) - current.deviance
            tried.append(current)
            rising = gain > EVIDENCE
            if not rising:
                break
        cut_off |= rising and not within(current.weights, start, factor)
        if _preferred(tried).state_weight > first.state_weight:
            break
    return tried, cut_off


def _preferred(tried: list[Candidate]) -> Candidate:
    """The fit with the largest κ among those that the data do not speak against."""
    candidates = [one for one in tried if usable(one.outcome)] or tried
    lowest = min(one.deviance for one in candidates)
    return max((one for one in candidates if one.deviance <= lowest + INDIFFERENCE), key=lambda one: one.state_weight)


def _refined(scan: Scan, candidate: Candidate) -> tuple[Candidate, bool]:
    """Newton steps to the most likely level of each joint and sensor, which have no limits; and whether they ended.

    Where a joint's errors and its encoder's noise look alike, a step from far away moves both past the best ones.
    """
    problem, step = scan.problem, None
    for _ in range(REFINEMENTS):
        if not scan.has_time:
            break
        step = step or level_step(problem, candidate.weights, candidate.evidence)
        if not step.gain > INDIFFERENCE:
            return candidate, True
        moved = scan.fitted(candidate.point, _at_levels(problem, candidate.weights, step), adapt=False)
        if usable(moved.outcome) and moved.deviance <= candidate.deviance + EVIDENCE:
            candidate, step = moved, None
        elif step.largest > SHORT:
            step = step.shortened(SHORTER)
        else:
            return candidate, True
    return candidate, False


def _at_levels(problem: Problem, weights: Weights, step: LevelStep) -> Weights:
    """Weights of other levels; sensors stay within the largest change of what is stated."""
    ratio = np.array(weights.std) * weights.reference / stated_std(problem)
    sensors = np.clip(ratio * step.sensors, *sensor_limits(problem)) / ratio
    return weights.with_levels(step.impulses, sensors)


def _acting_or_read(scan: Scan, read: Candidate, degrees: float) -> tuple[Candidate, bool | None]:
    """The fit that takes errors for forces that act, as far as they are not in the forces that were read."""
    problem = scan.problem
    if problem.plan.unknowns.reach != 3 or degrees < EXACT:
        return read, None
    share = acting_share(problem, read.point, read.weights)
    read = _read_in_part(scan, read, share)
    best, weights = read, read.weights
    least = _deviance_if_acting(read)
    for _ in range(PULLS):
        if not scan.has_time:
            break
        here, evidence = best.outcome.linearisation, best.evidence
        if best is not read:
            weights = _at_levels(problem, weights, level_step(problem, weights, evidence))
        pulled = pull(problem, here.point, weights, evidence, share)
        if pulled is None:
            break
        weights = dataclasses.replace(weights, pull=pulled)
        moved = scan.fitted(here.point, weights, adapt=False)
        # Along the way to the most likely motion by acting forces it only gets more likely. Levels that are found
        # anew from a fit that lost its way would lead it further.
        reached = _deviance_if_acting(moved) if usable(moved.outcome) else np.inf
        if reached > least + EVIDENCE:
            break
        change = np.abs(problem.parameters.minus(moved.point.values, here.point.values))
        best, least = moved, min(reached, least)
        if np.all(change <= SETTLED * evidence.std):
            break
    if best is not read:
        return best, True
    return read, None if np.all(share > 0.5) else False


def _read_in_part(scan: Scan, candidate: Candidate, share: Float[np.ndarray, " d"]) -> Candidate:
    """The fit whose errors count in units of the readings as far as they do not act."""
    read = candidate.weights.read
    if read is None or not np.any(share[read.counted] > 0.0) or not scan.has_time:
        return candidate
    weights = dataclasses.replace(candidate.weights, read=read.acting(share))
    moved = scan.fitted(candidate.point, weights, adapt=False)
    return moved if usable(moved.outcome) else candidate


def _deviance_if_acting(candidate: Candidate) -> float:
    """−2 log L of a fit whose errors are forces that act: with their determinant, in place of its parabolas."""
    if candidate.weights.pull is None:
        return candidate.deviance
    weights = dataclasses.replace(candidate.weights, pull=None)
    here = objective.linearise(candidate.problem, candidate.point, weights)
    return deviance(candidate.problem, here, weights, adapt=False)[0]


def _with_unexplained(problem: Problem, likely: Candidate, chosen: Candidate) -> Candidate:
    """The chosen fit with the levels of what its model cannot explain, as the noise behind its error bars.

    With its parameters the most likely states are found anew (one step from those of the most likely levels), and what
    the equations of motion lack along them is compared with the degrees of freedom that it had there.
    """
    point = problem.revalued(likely.point, chosen.point.values)
    moved = objective.states_stepped(problem, renewed(problem, point), likely.weights)
    dynamics = likely.evidence.noise[0]
    size, squares = problem.plan.node_size, np.zeros(problem.plan.node_size)
    for index in range(len(problem.tracks)):
        left = objective.residuals(problem, moved, likely.weights, index)[:, :size]
        squares += np.sum(left**2, axis=0)
    before, degrees = np.diagonal(dynamics.squares), np.maximum(np.diagonal(dynamics.freedom), 1.0)
    ratio = np.sqrt(np.maximum(squares, before) / degrees) / likely.weights.reference
    std = (
        likely.weights.reference
        / np.diagonal(likely.weights.dynamics)
        * np.maximum(ratio[: len(likely.weights.dynamics)], 1.0)
    )
    return dataclasses.replace(chosen, weights=dataclasses.replace(chosen.weights, impulse_std=tuple(std.tolist())))
