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

**How useful.** Errors of a real machine are seldom white: they are functions of its state, small, and the same in every
period. A fit that takes them for white lets the motion wander where the machine keeps its phase, and the parameters
need not explain what adds up over a long time. So the equations of motion are given more weight than their errors ask
for, in strides of a hundred, as long as the model so fitted predicts better over windows from a few steps to the whole
recording (:mod:`solve.prediction`): up to the fit of the output error where the motion is stable, and not at all where
more weight gains nothing. Where no functions are found among the errors (:mod:`uncertainty.latent_search`) they are
white, the likelihood is right and knows more, and nothing is added; where they may be those of forces that were read
at every joint, more must be gained than by chance (:mod:`uncertainty.chance`). Of weights whose simulations follow the
data alike the one is taken that predicts left-out pieces best (:mod:`uncertainty.left_out`). Error bars follow from the
most likely levels, not from the weights.

**The model file.** Bodies all of whose numbers are free have a prior about the file's, as wide as the data say
(:mod:`uncertainty.file_prior`).

**Near rest.** Where the force of every joint is known, the speed over which dry friction turns is, too
(:mod:`uncertainty.near_rest`).

**Led machines.** Where the torque of every joint is known (an arm in its position loop) a controller may have answered
to every error, so that no simulation from the torques alone would stay on the path. Weight is then added only if one
does, and short predictions gain as well; else what is asked of the model is the force along the path.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sensor_limits import sensor_limits, stated_std
from shadowfit.estimation.problem.weights import Weights, with_given
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.solve.levenberg_marquardt import (
    Iteration,
    LevenbergMarquardt,
    Outcome,
    Progress,
    Status,
    minimise,
)
from shadowfit.estimation.solve.prediction import Prediction, predict, predict_as_fitted, simulation_errors
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.uncertainty import chance
from shadowfit.estimation.uncertainty.determinant import acting_share, pull
from shadowfit.estimation.uncertainty.evidence import Evidence, gather
from shadowfit.estimation.uncertainty.file_prior import file_spread, settled
from shadowfit.estimation.uncertainty.latent_search import Explanation, explain
from shadowfit.estimation.uncertainty.left_out import predict_left_out
from shadowfit.estimation.uncertainty.levels import LevelStep, level_step
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.estimation.uncertainty.near_rest import fading
from shadowfit.estimation.uncertainty.start_levels import EVIDENCE, STRIDE, levels_at_start, within
from shadowfit.mechanism.laws import TorqueMotor

# Of two values of κ whose −2 log L differs by less than this the larger one is preferred: it leaves fewer unknowns.
INDIFFERENCE = 0.5
# A fit of the scan stops when χ² would fall by less than this, or after so many iterations. (Unfinished fits are less
# likely than they could be: cut off earlier, the scan ended decades too low on recordings without process noise.)
UNFINISHED = 1.0
SCAN_ITERATIONS = 6
# Iterations that what only improves the weights leaves to the last fit.
LAST_ITERATIONS = 20
# Most Newton steps of the levels.
REFINEMENTS = 4
# Most times that the distance from the model file's bodies is found anew.
SPREADS = 4
# Most times that the pull of acting forces is found anew (it depends on the inertias that it moves), until they move by
# less than a part of their standard deviations.
PULLS, SETTLED = 10, 0.1
# Weight is added while the mean logarithm of the prediction errors falls by more than this (by 0.3 per cent) and than
# by chance, and so often more: what adds up over the longest windows only is a small part of the mean, and may come
# late.
WORTHWHILE, PATIENCE = 0.003, 4
# Of weights whose predictions differ by less than this (a per cent) the largest one leaves the fewest unknowns.
ALIKE = 0.01
# Fits whose simulations are off each sensor by no more than this factor times those of the best follow it alike;
# what they predict of data that were left out decides among them.
FOLLOWS_ALIKE = 1.3
# Error over the whole recording, relative to how much readings vary, below which a simulation follows the motion.
FOLLOWED = 0.3
# Below so many degrees of freedom the equations of motion already hold exactly, and weight by prediction is not asked
# for; below so many more weight changes nothing but the digits that are lost.
RIGID, EXACT = 3.0, 0.1


@dataclasses.dataclass(frozen=True)
class NoiseChoice:
    """How the weights were found, for the report."""

    added_weight: float
    """Factor by which the equations of motion are weighed more (in κ) than their errors ask for."""
    predictions: tuple[tuple[float, Prediction], ...]
    """Added weight → what a model so fitted predicts; the first is that of the most likely levels."""
    acting: bool | None
    """Whether errors are taken for white forces that act; False: for others; None: it makes no difference."""
    explanation: Explanation
    """What errors are: white ones, and functions of the motion, of time or of a reading."""
    gain_by_chance: float
    """How much better (in the logarithm of errors) a model would seem to predict by chance, where that was asked."""
    at_end: bool
    """Whether levels of the dynamics ended at a limit of their scan, and not by what the data say."""
    sensor_ratio: tuple[float, ...]
    """Standard deviation of each sensor relative to the stated one."""
    led: bool = False
    """Whether all joints' forces are known: weight is added only if simulations follow the path."""
    stick_time: Mapping[str, float] | None = None
    """How long joints creep near rest [s], where the data were asked; friction of those that are not named jumps."""


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A fit at one κ, with the common scale of the noise adapted to it."""

    problem: Problem
    outcome: Outcome
    weights: Weights
    deviance: float
    """−2 log L up to a constant."""

    @property
    def state_weight(self) -> float:
        return self.weights.state_weight

    @property
    def point(self) -> Point:
        return self.outcome.linearisation.point

    @functools.cached_property
    def evidence(self) -> Evidence:
        return gather(self.problem, self.outcome.linearisation, self.weights)

    @functools.cached_property
    def simulation_errors(self) -> Float[np.ndarray, " sensors"]:
        """Relative errors of a simulation from its own first states."""
        return simulation_errors(self.problem, self.point)

    @property
    def simulation_error(self) -> float:
        """Mean logarithm of them."""
        return _mean_logarithm(self.simulation_errors)


@dataclasses.dataclass
class _Scan:
    """Fits at one κ after another."""

    problem: Problem
    settings: LevenbergMarquardt
    progress: Progress | None
    log: list[Iteration] = dataclasses.field(default_factory=list)
    stopped: Outcome | None = None
    """A fit that Ctrl-C ended, or the limit of all iterations."""

    @property
    def left(self) -> int:
        """Iterations that are left."""
        return max(self.settings.max_iterations - (self.log[-1].number if self.log else 0), 0)

    @property
    def has_time(self) -> bool:
        """Whether one more fit leaves enough iterations for the last one."""
        return self.stopped is None and self.left > SCAN_ITERATIONS + LAST_ITERATIONS

    def fitted(self, point: Point, weights: Weights, first: bool = False, adapt: bool = True) -> _Candidate:
        """A fit as far as the likelihood can tell, with the discretisation errors of where it starts.

        ``adapt``: the scale common to all levels follows from it.
        """
        weights = with_given(self.problem, weights)
        loose = max(self.settings.decrease_tolerance, UNFINISHED / max(self.problem.sample_count(), 1))
        settings = dataclasses.replace(self.settings, decrease_tolerance=loose, max_iterations=self.left)
        if not first:
            most = min(SCAN_ITERATIONS, self.left)
            settings = dataclasses.replace(settings.warm(), max_iterations=most)
        # The errors along the first states, which follow the noise, are not worth computing.
        start = point if first else renewed(self.problem, point)
        number = self.log[-1].number if self.log else 0
        outcome = minimise(self.problem, start, weights, settings, self.progress, number)
        self.log.extend(outcome.log[0 if first else 1 :])
        spent = outcome.status is Status.ITERATIONS and self.log[-1].number >= self.settings.max_iterations
        if outcome.status is Status.INTERRUPTED or spent:
            self.stopped = outcome
        if not _usable(outcome):
            return _Candidate(self.problem, outcome, weights, np.inf)
        value, scale = deviance(self.problem, outcome.linearisation, weights, adapt)
        return _Candidate(self.problem, outcome, with_given(self.problem, _rescaled(weights, scale)), value)

    def finished(self, point: Point, weights: Weights) -> Outcome:
        """The fit at the final levels, to its end."""
        warm = dataclasses.replace(self.settings.warm(), max_iterations=self.left)
        outcome = minimise_corrected(self.problem, point, weights, warm, self.progress, self.log[-1].number)
        self.log.extend(outcome.log[1:])
        return outcome


def estimate_noise(
    problem: Problem, start: Point, settings: LevenbergMarquardt, progress: Progress | None = None
) -> tuple[Problem, Outcome, Weights, NoiseChoice | None]:
    """The fit with weights that follow from the data, these, and how they were found (None if the first fit failed).

    With the problem, whose friction may turn near rest as the data say.
    """
    scan = _Scan(problem, settings, progress)
    led = is_led(problem)
    weights = first_weights(problem, start)
    best = scan.fitted(start, levels_at_start(problem, start, weights, led), first=True)
    if not best.outcome.status.converged:
        return problem, dataclasses.replace(best.outcome, log=tuple(scan.log)), weights, None
    given = problem
    preferred = _as_far_from_file(scan, _preferred(_climb(scan, best, weights)))
    if led:
        preferred = _near_rest(scan, preferred)
        problem = scan.problem
    likely, at_peak = _refined(scan, preferred)
    likely = _as_far_from_file(scan, likely)
    degrees = likely.evidence.noise[0].degrees
    likely, acting = _acting_or_read(scan, likely, degrees)
    explanation = explain(problem, likely.outcome.linearisation, likely.weights, likely.evidence)
    search = _predictive(scan, likely, degrees, led, explanation.smooth)
    chosen = likely if search.chosen is likely else _with_unexplained(problem, likely, search.chosen)
    outcome = scan.stopped or scan.finished(chosen.point, chosen.weights)
    if not _usable(outcome):
        status = outcome.status if outcome.status is Status.INTERRUPTED else chosen.outcome.status
        outcome = dataclasses.replace(chosen.outcome, status=status)
    added = chosen.state_weight / likely.state_weight
    ended = not (at_peak or within(preferred.weights, weights, 1.0, margin=STRIDE))
    ratio = np.array(chosen.weights.std) * chosen.weights.reference / stated_std(problem)
    search_record = search.predictions, acting, explanation, search.by_chance
    creeps = problem.options.stick_time
    stick_time = (creeps if isinstance(creeps, Mapping) else {}) if led and given.rubs else None
    choice = NoiseChoice(added, *search_record, ended, tuple(ratio.tolist()), led, stick_time)
    return problem, dataclasses.replace(outcome, log=tuple(scan.log)), chosen.weights, choice


def _as_far_from_file(scan: _Scan, candidate: _Candidate) -> _Candidate:
    """The fit whose bodies are as far from the model file's as its own estimates say."""
    for _ in range(SPREADS):
        spread = file_spread(scan.problem, candidate.point, candidate.weights, candidate.evidence)
        if settled(candidate.weights.file_spread, spread) or not scan.has_time:
            break
        weights = dataclasses.replace(candidate.weights, file_spread=spread)
        moved = scan.fitted(candidate.point, weights, adapt=False)
        if not _usable(moved.outcome):
            break
        candidate = moved
    return candidate


def _near_rest(scan: _Scan, likely: _Candidate) -> _Candidate:
    """The fit with dry friction that turns over the speed that the data show; the scan goes on with it."""
    if not (scan.problem.rubs and scan.has_time and _usable(likely.outcome)):
        return likely
    before, scan.problem = scan.problem, fading(scan.problem, likely.point, likely.weights)
    if scan.problem is before:
        return likely
    moved = scan.fitted(likely.point, likely.weights)
    if _usable(moved.outcome):
        return moved
    scan.problem = before
    return likely


def _climb(scan: _Scan, first: _Candidate, start: Weights) -> list[_Candidate]:
    """Fits at larger and larger κ until the data speak against it or do not care; else at smaller ones."""
    tried = [first]
    for factor in (STRIDE, 1.0 / STRIDE):
        current = first
        while within(current.weights, start, factor) and _usable(current.outcome) and not scan.stopped:
            current = scan.fitted(current.point, current.weights.scaled(factor))
            gain = min(one.deviance for one in tried) - current.deviance
            tried.append(current)
            if not gain > EVIDENCE:
                break
        if _preferred(tried).state_weight > first.state_weight:
            break
    return tried


def _preferred(tried: list[_Candidate]) -> _Candidate:
    """The fit with the largest κ among those that the data do not speak against."""
    usable = [one for one in tried if _usable(one.outcome)] or tried
    lowest = min(one.deviance for one in usable)
    return max((one for one in usable if one.deviance <= lowest + INDIFFERENCE), key=lambda one: one.state_weight)


def _refined(scan: _Scan, candidate: _Candidate) -> tuple[_Candidate, bool]:
    """Newton steps to the most likely level of each joint and sensor, which have no limits; and whether they ended."""
    problem = scan.problem
    for _ in range(REFINEMENTS):
        if not scan.has_time:
            break
        step = level_step(problem, candidate.outcome.linearisation, candidate.weights, candidate.evidence)
        if not step.gain > INDIFFERENCE:
            return candidate, True
        moved = scan.fitted(candidate.point, _at_levels(problem, candidate.weights, step), adapt=False)
        if not _usable(moved.outcome) or moved.deviance > candidate.deviance + EVIDENCE:
            return candidate, True
        candidate = moved
    return candidate, False


def _at_levels(problem: Problem, weights: Weights, step: LevelStep) -> Weights:
    """Weights of other levels; sensors stay within the largest change of what is stated."""
    ratio = np.array(weights.std) * weights.reference / stated_std(problem)
    sensors = np.clip(ratio * step.sensors, *sensor_limits(problem)) / ratio
    return weights.with_levels(step.impulses, sensors)


def _acting_or_read(scan: _Scan, read: _Candidate, degrees: float) -> tuple[_Candidate, bool | None]:
    """The fit that takes errors for forces that act, as far as they are not in the forces that were read."""
    problem = scan.problem
    if problem.plan.unknowns.reach != 3 or degrees < RIGID:
        return read, None
    best, weights = read, read.weights
    share = acting_share(problem, read.point, weights)
    for _ in range(PULLS):
        if not scan.has_time:
            break
        here, evidence = best.outcome.linearisation, best.evidence
        if best is not read:
            weights = _at_levels(problem, weights, level_step(problem, here, weights, evidence))
        pulled = pull(problem, here.point, weights, evidence, share)
        if pulled is None:
            break
        weights = dataclasses.replace(weights, pull=pulled)
        moved = scan.fitted(here.point, weights, adapt=False)
        if not _usable(moved.outcome):
            break
        change = np.abs(problem.parameters.minus(moved.point.values, here.point.values))
        best = moved
        if np.all(change <= SETTLED * evidence.std):
            break
    if best is not read:
        return best, True
    return read, None if np.all(share > 0.5) else False


def is_led(problem: Problem) -> bool:
    """Whether the force of every joint is known, so that a controller may have led the machine along its path."""
    return problem.plan.unknowns.reach == 3 and _driven(problem, TorqueMotor) == problem.plan.node_size


def _driven(problem: Problem, kind: type = object) -> int:
    """How many joints have a motor (of a kind) that follows an input."""
    joints = problem.mechanism.joints.values
    return sum(
        any(isinstance(law, kind) and getattr(law, "input", None) is not None for law in joint.laws.values)
        for joint in joints
    )


@dataclasses.dataclass(frozen=True)
class _Search:
    """The search for as much weight on the equations of motion as makes a fit predict better."""

    chosen: _Candidate
    predictions: tuple[tuple[float, Prediction], ...] = ()
    by_chance: float = 0.0


def _predictive(scan: _Scan, likely: _Candidate, degrees: float, led: bool, smooth: bool) -> _Search:
    """Fits with more and more weight, the best of which is chosen if it predicts better than the most likely one.

    ``smooth``: errors are known to be functions, not white ones. White forces make predictions of the same data better
    with any weight, by as much as their draws scatter, and beyond: that is no reason to add it.
    """
    problem = scan.problem
    if problem.plan.unknowns.reach != 3 or scan.stopped is not None:
        return _Search(likely)
    along = likely.point
    tried = [(1.0, predict(problem, along, along.values))]
    if degrees < RIGID or not smooth:
        return _Search(likely, tuple(tried))
    # Errors of forces that were read have a memory without being functions of the state.
    by_chance = _driven(problem) == problem.plan.node_size
    current, worthy = likely, [likely]
    draws: chance.Chance | None = None
    misses = 0
    while misses < PATIENCE and within(current.weights, likely.weights, STRIDE) and scan.has_time:
        current = scan.fitted(current.point, current.weights.scaled(STRIDE), adapt=False)
        if not _usable(current.outcome):
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
        follows = not led or _follows(prediction, tried[0][1])
        if follows and (not by_chance or (draws is not None and gain > max(WORTHWHILE, draws.gain))):
            closest = min(one.simulation_error for one in worthy)
            progress = prediction.score < best - WORTHWHILE or current.simulation_error < closest - WORTHWHILE
            misses = 0 if progress else misses
            worthy.append(current)
        if current.evidence.noise[0].degrees < EXACT:
            break
    chosen = _best_left_out(problem, along, worthy)
    return _Search(chosen, tuple(tried), 0.0 if draws is None else draws.gain)


def _best_left_out(problem: Problem, along: Point, worthy: list[_Candidate]) -> _Candidate:
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
    return _mean_logarithm(prediction.errors[-1]) < np.log(FOLLOWED) and prediction.even < likely.even


def _mean_logarithm(errors: Float[np.ndarray, " sensors"]) -> float:
    return float(np.mean(np.log(np.maximum(errors, np.finfo(float).tiny))))


def _worse(prediction: Prediction, before: Prediction) -> bool:
    """Whether neither the simulation of the whole recording nor short predictions have gained by more weight.

    Both have to, in a machine that is led; there it takes no patience to see that they do not.
    """
    whole, earlier = _mean_logarithm(prediction.errors[-1]), _mean_logarithm(before.errors[-1])
    return whole > earlier - WORTHWHILE and prediction.even > before.even - WORTHWHILE


def _with_unexplained(problem: Problem, likely: _Candidate, chosen: _Candidate) -> _Candidate:
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


def _usable(outcome: Outcome) -> bool:
    return outcome.status not in (Status.NUMERICS, Status.STUCK, Status.INTERRUPTED)


def _rescaled(weights: Weights, scale: float) -> Weights:
    """All levels multiplied by a factor; κ, their ratio, stays."""
    if scale == 1.0:
        return weights
    return dataclasses.replace(weights, reference=weights.reference * scale)
