"""What is the model likely to lack? Candidates ranked by one linearisation, the best confirmed by refits.

The problem of a fit is extended by the parameters of all candidates (:mod:`candidates`), held where they change
nothing. The same linearisation as for error bars then tells what each would gain (:mod:`uncertainty.missing`).

Where a model lacks something its fit lets the states do what the parameters cannot, and what is missing hardly shows.
So the equations of motion are given more and more weight, until they hold exactly or the model can no longer follow
the samples, with the noise that the fit believes held. Candidates are ranked where one that is significant explains
most of the objective.

The best one is then set free and fitted with these weights. It is kept if the model predicts better with it
(:mod:`solve.prediction`), and the others are ranked anew beside it. Everything is compiled once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate, Free, LevenbergMarquardt
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.parameter import Parameter
from shadowfit.estimation.problem.parameters import ParameterSet, parameter_set
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.variation import varied
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.estimation.solve.prediction import predict
from shadowfit.estimation.uncertainty.distributions import chi_square_tail
from shadowfit.estimation.uncertainty.evidence import EXACT
from shadowfit.estimation.uncertainty.missing import Release, releases
from shadowfit.evaluation.candidates import Candidate, OwnForces, contradicts, extended
from shadowfit.evaluation.joint_motion import joint_positions
from shadowfit.evaluation.summary import as_json
from shadowfit.evaluation.unexplained import unexplained
from shadowfit.evaluation.validation import rollout_errors
from shadowfit.records import record

# A gain counts if noise would give the best of all candidates as much with less than this probability.
SIGNIFICANT = 0.01
# Factor from weight to weight (in κ) of the equations of motion, and the most weights that are tried.
STRIDE, MOST = 1e4, 4
# A candidate stays if the mean logarithm of the prediction errors falls by more than this (by 0.3 per cent).
WORTHWHILE = 0.003
SETTINGS = LevenbergMarquardt(start_damping=1e-6)


class AdviceError(ShadowfitError):
    """A fit about which nothing can be said."""


@record(frozen=True)
class Suggestion:
    """A candidate with what it is predicted to do."""

    candidate: Candidate
    labels: tuple[str, ...]
    """Its parameters; of a rotation one for each component."""
    units: tuple[str, ...]
    value: tuple[float, ...]
    """Predicted."""
    std: tuple[float, ...]
    gain: float
    """Drop of χ², by the noise that would be left."""
    share: float
    """ρ: part of the objective that it would explain."""
    degrees: int
    """m: its parameters, as far as the data tell them."""
    probability: float
    """Of such a gain for the best of all candidates if nothing were missing."""

    @property
    def significant(self) -> bool:
        """Whether the data ask for it."""
        return self.probability < SIGNIFICANT

    def rank(self, samples: int) -> tuple[bool, float]:
        """Significant ones come first, by the information criterion ``N ln(1 − ρ) + m ln N`` of what is left."""
        return not self.significant, samples * math.log1p(-self.share) + self.degrees * math.log(samples)


@record(frozen=True)
class Refit:
    """A fit with one candidate more."""

    suggestion: Suggestion
    """As predicted beside those that were kept before."""
    value: tuple[float, ...]
    """Fitted."""
    converged: bool
    score: tuple[float, float]
    """Mean logarithm of the prediction errors before and after."""
    rollout: dict[str, tuple[float, float]]
    """Sensor → root mean square error of the rollouts of all recordings before and after, in its unit."""
    kept: bool
    """Whether the model predicts better with it."""


@record(frozen=True)
class Advice:
    """What a model is likely to lack."""

    suggestions: tuple[Suggestion, ...]
    """All candidates that the data can tell from what the model has, the best first."""
    refits: tuple[Refit, ...]
    """In the order in which they were made."""
    added_weight: float
    """Factor by which the equations of motion were weighed more (in κ) than in the fit."""

    @property
    def kept(self) -> tuple[Refit, ...]:
        """What to add to the model."""
        return tuple(refit for refit in self.refits if refit.kept)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return as_json(dataclasses.asdict(self))


@record(frozen=True)
class _Fitted:
    """The extended problem with some candidates free, at its minimum."""

    estimate: Estimate
    free: tuple[Candidate, ...]
    score: float
    rollout: dict[str, float]


def advise(estimate: Estimate, refits: int = 3, progress: Callable[[str], None] | None = None) -> Advice:
    """Rank what the model of a fit is likely to lack, and confirm the best by so many refits.

    Args:
        estimate: a fit that converged, with joint coordinates or poses as unknowns.
        refits: most refits; 0 ranks only.
        progress: called with a sentence before each piece of work.
    """
    say = progress or (lambda text: None)
    if estimate.problem.plan.unknowns.reach != 3:
        raise AdviceError("there is no advice for fits with the unknowns 'full'; fit with 'joint' or 'configuration'")
    if not estimate.converged:
        raise AdviceError(f"the fit has not converged ({estimate.status.value}); there is no advice from it")
    with one_thread():
        problem, candidates, point = extended_problem(estimate)
        say(f"{len(candidates)} candidates")
        held = _with_free(problem, candidates, ())
        # The pull of acting forces is one on the fit's own parameters.
        weights = dataclasses.replace(estimate.weights, pull=None)
        here = objective.linearise(held, point, weights)
        outcome = dataclasses.replace(estimate.outcome, linearisation=here)
        # What errors look like that are not white is what is to be named: none of it is taken for granted.
        start = dataclasses.replace(estimate, problem=held, outcome=outcome, weights=weights, noise_choice=None)
        own = _own_forces(estimate)
        clearest = _most_telling(_weighed(start, say), candidates, own)
        suggestions = _ranked(clearest, candidates, candidates, own)
        added = clearest.state_weight / start.state_weight
        if refits <= 0 or not any(one.significant for one in suggestions):
            return Advice(suggestions, (), added)
        search = _Search(problem, candidates, own, point, say)
        return Advice(suggestions, tuple(_confirmed(search, search.judged(clearest, ()), refits)), added)


def _weighed(start: Estimate, say: Callable[[str], None]) -> list[Estimate]:
    """The fit, and with more and more weight on its equations of motion as long as that changes something."""
    fits = [start]
    while len(fits) < MOST and fits[-1].evidence.noise[0].degrees >= EXACT:
        last = fits[-1]
        weights = last.weights.believing(1.0).scaled(STRIDE)
        say(f"equations of motion weighed {weights.state_weight / start.state_weight:.0e} times as much")
        outcome = minimise_corrected(last.problem, last.outcome.linearisation.point, weights, SETTINGS)
        if not outcome.unless_interrupted().status.converged:
            break
        fits.append(dataclasses.replace(last, weights=weights, outcome=outcome))
    return fits


def _most_telling(fits: Sequence[Estimate], candidates: Sequence[Candidate], own: Mapping[str, OwnForces]) -> Estimate:
    """The fit of which a significant candidate explains the largest part; the first one if there is none."""
    ranked = [_ranked(one, candidates, candidates, own) for one in fits]
    shares = [
        max((suggestion.share for suggestion in suggestions if suggestion.significant), default=0.0)
        for suggestions in ranked
    ]
    return fits[int(np.argmax(shares))]


@record(frozen=True)
class _Search:
    """What stays the same from refit to refit."""

    problem: Problem
    candidates: tuple[Candidate, ...]
    own: Mapping[str, OwnForces]
    along: Point
    """States around which predictions are made."""
    say: Callable[[str], None]

    def judged(self, estimate: Estimate, free: tuple[Candidate, ...]) -> _Fitted:
        """A fit with its predictions."""
        score = predict(estimate.problem, self.along, estimate.outcome.linearisation.point.values).score
        return _Fitted(estimate, free, score, _rollouts(estimate))

    def refitted(self, before: _Fitted, candidate: Candidate) -> _Fitted:
        """The fit with one candidate more, from where it was without."""
        free = (*before.free, candidate)
        problem = _with_free(self.problem, self.candidates, free)
        last = before.estimate
        outcome = minimise_corrected(problem, last.outcome.linearisation.point, last.weights, SETTINGS)
        return self.judged(dataclasses.replace(last, problem=problem, outcome=outcome.unless_interrupted()), free)


def _confirmed(search: _Search, best: _Fitted, most: int) -> list[Refit]:
    """Refits with one candidate after another: those with which the model predicts better stay."""
    waiting = list(search.candidates)
    refits: list[Refit] = []
    while len(refits) < most:
        ranked = _ranked(best.estimate, search.candidates, waiting, search.own)
        if not ranked or not ranked[0].significant:
            break
        suggestion = ranked[0]
        search.say(f"fitting with {suggestion.candidate.name}")
        waiting.remove(suggestion.candidate)
        trial = search.refitted(best, suggestion.candidate)
        kept = bool(trial.estimate.converged and trial.score < best.score - WORTHWHILE)
        parameters = trial.estimate.problem.parameters
        values = parameters.vector(trial.estimate.outcome.linearisation.point.values)
        places = [parameters.labels().index(label) for label in suggestion.labels]
        rollout = {name: (error, trial.rollout[name]) for name, error in best.rollout.items()}
        scores = (best.score, trial.score)
        value = tuple(values[places].tolist())
        refits.append(Refit(suggestion, value, trial.estimate.converged, scores, rollout, kept))
        if kept:
            best = _quietened(trial, best)
            freed = {name for one in best.free for name in one.names}
            waiting = [one for one in waiting if not freed & set(one.names)]
    return refits


def _quietened(fitted: _Fitted, before: _Fitted) -> _Fitted:
    """The fit with the noise that is left: what was missing was part of what the fit before believed."""
    costs = [one.estimate.outcome.linearisation.cost.total for one in (fitted, before)]
    weights = fitted.estimate.weights.believing(np.sqrt(min(costs[0] / costs[1], 1.0)))
    return dataclasses.replace(fitted, estimate=dataclasses.replace(fitted.estimate, weights=weights))


def extended_problem(estimate: Estimate) -> tuple[Problem, tuple[Candidate, ...], Point]:
    """The problem with all candidates as parameters, these, and the estimate's point in it."""
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    present = problem.parameters
    given = problem.given.write(present.named(point.values))
    mechanism, candidates = extended(given, present.names, _speeds(estimate))
    # An inertia that starts at zero has no range by itself.
    above = Free(lower=0.0, upper=np.inf)
    names = [name for one in candidates for name in one.names]
    free = {name: above if name.endswith(".shaft_inertia") else Free() for name in names}
    added = parameter_set(mechanism, free, present.recordings)
    parameters = ParameterSet((*present.parameters, *added.parameters), present.recordings, present.solids)
    recordings = [track.recording for track in problem.tracks]
    options = dataclasses.replace(problem.options, timestep=problem.timestep)
    whole = build_problem(mechanism, recordings, parameters, options)
    more = added.start()
    values = Values(
        np.concatenate([np.asarray(point.values.numbers), more.numbers]),
        np.concatenate([np.asarray(point.values.turns).reshape(-1, 4), more.turns]),
    )
    return whole, candidates, whole.revalued(point, values)


def _with_free(problem: Problem, candidates: Sequence[Candidate], free: Sequence[Candidate]) -> Problem:
    """The extended problem with the other candidates held; everything compiled stays."""
    held = {name for one in candidates for name in one.names} - {name for one in free for name in one.names}
    parameters = tuple(_held(p) if p.name in held else p for p in problem.parameters.parameters)
    return varied(problem, parameters=dataclasses.replace(problem.parameters, parameters=parameters))


def _held(parameter: Parameter) -> Parameter:
    """A box of one value; increments of a rotation are held at none."""
    value = 0.0 if parameter.is_rotation else float(parameter.start)
    return dataclasses.replace(parameter, lower=value, upper=value)


def _ranked(
    estimate: Estimate,
    candidates: Sequence[Candidate],
    waiting: Sequence[Candidate],
    own: Mapping[str, OwnForces],
) -> tuple[Suggestion, ...]:
    """The waiting candidates, the best first, without those that the data do not tell or the forces contradict."""
    parameters, given, evidence = estimate.problem.parameters, estimate.problem.given, estimate.evidence
    places: dict[str, list[int]] = {}
    count = 0
    for parameter in parameters.parameters:
        places[parameter.name] = list(range(count, count + parameter.size))
        count += parameter.size * (parameters.recordings if parameter.per_recording else 1)
    groups = [[place for name in one.names for place in places[name]] for one in waiting]
    gains = releases(evidence, estimate.outcome.linearisation.cost.total, ~evidence.at_bound, groups)
    values = parameters.vector(estimate.outcome.linearisation.point.values)
    listed = []
    for one, group, release in zip(waiting, groups, gains, strict=True):
        numbers = [name for name in one.names for _ in places[name]]
        lower = [given.leaf(name).lower for name in numbers]
        stepped = values[group] + release.step
        told = release.degrees >= len(one.names) and np.all(stepped >= lower)
        if told and not contradicts(given, one, stepped.tolist(), own):
            labels = tuple(evidence.labels[i] for i in group)
            units = tuple(given.unit(name) for name in numbers)
            listed.append(_suggestion(one, labels, units, values[group], release, MOST * len(candidates)))
    samples = estimate.problem.sample_count()
    return tuple(sorted(listed, key=lambda one: one.rank(samples)))


def _suggestion(
    candidate: Candidate,
    labels: tuple[str, ...],
    units: tuple[str, ...],
    values: np.ndarray,
    release: Release,
    count: int,
) -> Suggestion:
    chance = chi_square_tail(release.degrees, release.gain)
    return Suggestion(
        candidate,
        labels,
        units,
        tuple((values + release.step).tolist()),
        tuple(release.std.tolist()),
        release.gain,
        release.share,
        release.degrees,
        min(count * chance, 1.0),
    )


def _own_forces(estimate: Estimate) -> dict[str, OwnForces]:
    """Motion and strongest force of each joint whose coordinate is an unknown, over all recordings."""
    motions = [
        joint_positions(estimate.mechanism(index), estimate.trajectory(index).states)
        for index in range(len(estimate.problem.tracks))
    ]
    step = estimate.problem.timestep
    return {
        force.name: OwnForces(
            np.concatenate([motion[force.name] for motion in motions]),
            np.concatenate([np.gradient(motion[force.name], step) for motion in motions]),
            force.typical,
        )
        for force in unexplained(estimate)
        if force.name in motions[0]
    }


def _speeds(estimate: Estimate) -> dict[str, float]:
    """Typical speed of each joint with a free axis, root mean square over all recordings [rad/s, m/s]."""
    squares: dict[str, list[np.ndarray]] = {}
    for index in range(len(estimate.problem.tracks)):
        motions = joint_positions(estimate.mechanism(index), estimate.trajectory(index).states)
        for name, positions in motions.items():
            squares.setdefault(name, []).append(np.diff(positions) ** 2)
    return {
        name: float(np.sqrt(np.mean(np.concatenate(parts)))) / estimate.problem.timestep
        for name, parts in squares.items()
    }


def _rollouts(estimate: Estimate) -> dict[str, float]:
    """Sensor → root mean square error of rollouts over all recordings; NaN where a rollout fails."""
    errors: dict[str, list[np.ndarray]] = {name: [] for name in estimate.problem.sensors}
    for index in range(len(estimate.problem.tracks)):
        try:
            rolled = rollout_errors(estimate, index)
        except ShadowfitError:
            return dict.fromkeys(errors, float("nan"))
        for name, (_, error) in rolled.items():
            errors[name].append(error[np.isfinite(error)])
    joined = {name: np.concatenate(parts) for name, parts in errors.items()}
    return {
        name: float(np.sqrt(np.mean(values**2))) if values.size else float("nan") for name, values in joined.items()
    }
