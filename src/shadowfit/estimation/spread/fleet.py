"""Fit one model to very many recordings: common parameters, own ones, and those that scatter about a mean.

1. The recordings are read where they will be fitted, and stay there.
2. A *pilot* fit of a few of them, evenly chosen from the list, finds the levels of the noise as any fit does, and
   values to start from. The levels are then kept: the sensors and unexplained forces of all recordings are taken to be
   alike.
3. All recordings are fitted with these, by the same optimiser as a fit of one (:mod:`system`).
4. Spreads of what scatters are renewed, and 3 is repeated from where it ended, until they stand.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from shadowfit.errors import RecordingError
from shadowfit.estimation.fit import solve
from shadowfit.estimation.linear.box_step import solve_on
from shadowfit.estimation.linear.threads import alone, one_thread
from shadowfit.estimation.problem.options import Options, ProblemError
from shadowfit.estimation.problem.pacing import default_cutoff, default_timestep
from shadowfit.estimation.problem.parameters import FreeParameters
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.deferred_correction import descend_corrected
from shadowfit.estimation.solve.levenberg_marquardt import Iteration, LevenbergMarquardt, Outcome, Progress
from shadowfit.estimation.spread import evidence, shard
from shadowfit.estimation.spread.evidence import Scatter, Sums
from shadowfit.estimation.spread.result import FleetEstimate, Individuals, Spread
from shadowfit.estimation.spread.roles import Request, request
from shadowfit.estimation.spread.shard import Facts, InMemory, Source, Task
from shadowfit.estimation.spread.system import SpreadPoint, SpreadSystem
from shadowfit.estimation.uncertainty.evidence import AT_BOUND
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.parallel import Crew
from shadowfit.parallel.engine import Column, Engine, Handle, engine
from shadowfit.recordings import Recording
from shadowfit.runtime import double_precision

# Recordings of the pilot fit.
PILOTS = 8
# Spreads are found when they change by less than a hundredth, or a tenth of their standard deviation; most rounds.
SETTLED, INSIGNIFICANT, ROUNDS = 0.01, 0.1, 12
# First spread of a parameter, and the smallest that is told from none, in units of its typical size.
FIRST, SMALLEST = 0.1, 1e-6


@dataclasses.dataclass(frozen=True)
class Pilot:
    """What the fit of a few recordings found."""

    weights: Weights
    values: dict[str, Any]
    """By name; the mean of the recordings' own."""
    spread: dict[str, float]
    """Standard deviation of the recordings' own numbers."""
    near: bool = True
    """Whether it found a minimum, from which the whole fit goes on undamped. Damping would hold back states, which
    start at filtered readings, until they are in the wrong place when they are let go."""
    log: tuple[Iteration, ...] = ()
    """Iterations of the whole fit, where it has gone on from the pilot's."""


class Memory(Protocol):
    """Keeps where a fit is."""

    def recall(self) -> Pilot | None:
        """Where an earlier run was that did not end."""
        ...

    def keep(self, pilot: Pilot) -> None:
        """Write down where the fit is."""
        ...


def fit_fleet(
    mechanism: Mechanism,
    recordings: Sequence[Source | Recording],
    free: FreeParameters,
    *,
    scatter: Collection[str] = (),
    options: Options | None = None,
    optimiser: LevenbergMarquardt | None = None,
    crew: Crew | None = None,
    progress: Progress | None = None,
    memory: Memory | None = None,
) -> FleetEstimate:
    """Estimate common parameters, and those of each recording, from very many recordings.

    Args:
        mechanism: the model, the same for all.
        recordings: where they are read (:class:`shadowfit.recordings.RecordingFile`), by the worker that fits them.
        free: parameters as for ``fit``; with ``per_recording`` they have a value in each recording.
        scatter: names or patterns of free parameters whose values scatter about a common mean; mean and spread are
            estimated.
        options: as for ``fit``; levels of the noise that are estimated are those of a few recordings.
        optimiser: as for ``fit``.
        crew: who does it (:func:`shadowfit.parallel.crew`); None: threads of this process.
        progress: called after each iteration.
        memory: keeps where the fit is, and knows where it was.

    Raises:
        RecordingError: a recording cannot be read by the worker that was to fit it.
    """
    double_precision()
    began = time.perf_counter()
    sources = [InMemory(r) if isinstance(r, Recording) else r for r in recordings]
    if not sources:
        raise ProblemError("there is no recording; an estimation needs at least one")
    asked = request(mechanism, free, scatter)
    settings = optimiser or LevenbergMarquardt()
    with one_thread():
        work = engine(crew or Crew(-1))
        opened = work.each(shard.read, shard.shards(sources), shared=(mechanism,))
        facts = [one for some in work.gather(shard.survey, opened, shared=(mechanism,)) for one in some]
        _check(facts, sources, work)
        chosen = (options or Options()).resolved(mechanism)
        quickest = min(recording.pace for recording in facts)
        if chosen.timestep is None:
            chosen = dataclasses.replace(
                chosen, timestep=default_timestep([recording.interval for recording in facts], quickest)
            )
        if chosen.cutoff is None:
            chosen = dataclasses.replace(chosen, cutoff=default_cutoff(quickest))
        pilot = None if memory is None else memory.recall()
        if pilot is None:
            pilots = [sources[i] for i in np.unique(np.linspace(0, len(sources) - 1, PILOTS).round().astype(int))]
            pilot = work.once(pilot_fit, pilots, mechanism, asked, chosen, settings)
        task = Task(mechanism, asked, chosen, asked.roles(mechanism), pilot.weights.reference)
        placed = work.broadcast(task)
        problems = work.each(shard.build, opened, shared=(placed,))
        work.release(problems)
        fleet = _Fleet(work, task, placed, problems, pilot, settings, _Journal(pilot, progress, memory))
        del opened
        return fleet.fitted([source.name for source in sources], began)


class _Journal:
    """Progress, and where the fit is, for one that begins anew after a kill."""

    def __init__(self, pilot: Pilot, progress: Progress | None, memory: Memory | None) -> None:
        self._now, self._progress, self._memory = pilot, progress, memory

    def note(self, iteration: Iteration) -> None:
        """An iteration has ended."""
        common = {name: value for name, value in iteration.parameters.items() if name in self._now.values}
        log = (*(entry for entry in self._now.log if entry.number != iteration.number), iteration)
        self._keep(dataclasses.replace(self._now, values=self._now.values | common, log=log))
        if self._progress is not None:
            self._progress(iteration)

    def note_spread(self, spread: dict[str, float]) -> None:
        """Spreads were renewed."""
        self._keep(dataclasses.replace(self._now, spread=spread))

    def _keep(self, now: Pilot) -> None:
        self._now = now
        if self._memory is not None:
            self._memory.keep(now)


def _check(facts: Sequence[Facts], sources: Sequence[Source], work: Engine) -> None:
    """Raise where a recording could not be read, and say whether others can."""
    unread = [(fact, source) for fact, source in zip(facts, sources, strict=True) if fact.error]
    if not unread:
        return
    first, source = unread[0]
    able = work.everywhere(_readable, source)
    who = f"by {sum(not one for one in able)} of {len(able)} workers" if any(able) else "by any worker"
    raise RecordingError(
        f"{len(unread)} of {len(facts)} recordings cannot be read where they are to be fitted, the first one being "
        f"{first.name!r} on {first.host}, which cannot be read {who}: {first.error}"
    )


def _readable(source: Source) -> bool:
    try:
        source.read()
    except (ValueError, OSError):
        return False
    return True


def pilot_fit(
    sources: Sequence[Source], mechanism: Mechanism, asked: Request, options: Options, optimiser: LevenbergMarquardt
) -> Pilot:
    """Levels of the noise and values to start from."""
    double_precision()
    recordings = [one for one in shard.read(sources, mechanism) if isinstance(one, Recording)]
    with alone():
        problem = shard.build(recordings, Task(mechanism, asked, options, asked.roles(mechanism)))
        estimate = solve(problem, optimiser)
    point = estimate.outcome.linearisation.point
    values = [problem.parameters.named(point.values, i) for i in range(len(recordings))]
    mean = {
        p.name: values[0][p.name] if p.is_rotation else float(np.mean([named[p.name] for named in values]))
        for p in problem.parameters.parameters
    }
    spread = {name: float(np.std([named[name] for named in values])) for name in asked.scatter}
    # The pull of acting forces is that of the pilot's individual parameters and steps.
    return Pilot(dataclasses.replace(estimate.weights, pull=None), mean, spread, estimate.converged)


@dataclasses.dataclass
class _Fleet:
    """A fit under way."""

    work: Engine
    task: Task
    placed: Handle
    """The same where the shards are."""
    problems: Column
    pilot: Pilot
    settings: LevenbergMarquardt
    journal: _Journal

    def fitted(self, names: Sequence[str], began: float) -> FleetEstimate:
        """The whole fit."""
        system = self._system(len(names))
        motions = self.work.each(shard.begin, self.problems, shared=(self.pilot.values,))
        point = SpreadPoint(system.parameters.of_names(self.pilot.values), motions)
        del motions
        spread, log = self._first_spread(), list(self.pilot.log)
        for number in range(ROUNDS):
            system = dataclasses.replace(system, pull=self._pull(spread))
            settings = self.settings if number == 0 and not self.pilot.near else self.settings.warm()
            outcome = descend_corrected(system, point, settings, self.journal.note, log[-1].number if log else 0)
            log.extend(outcome.log[1 if log else 0 :])
            judgement = self._judged(system, outcome)
            before, spread = spread, judgement.spreads(len(names), spread, self._least())
            settled = np.maximum(SETTLED * before, INSIGNIFICANT * np.nan_to_num(judgement.spread_std(before)))
            if not outcome.status.converged or np.all(np.abs(spread - before) <= settled):
                break
            self.journal.note_spread(dict(zip(self.task.request.scattering, spread.tolist(), strict=True)))
            point = outcome.linearisation.point
        seconds = time.perf_counter() - began
        return self._estimate(system, dataclasses.replace(outcome, log=tuple(log)), judgement, names, seconds)

    def _system(self, recordings: int) -> SpreadSystem:
        """What the optimiser works on, before it is known how much anything scatters."""
        return SpreadSystem(
            engine=self.work,
            task=self.task,
            placed=self.placed,
            problems=self.problems,
            parameters=self.task.request.common(self.task.mechanism),
            samples=self.work.total(shard.sample_count, self.problems),
            recordings=recordings,
            weights=self.pilot.weights,
            pull=np.zeros(len(self.task.roles.individual)),
            holds=any(self.work.gather(shard.holds, self.problems)),
        )

    def _typical(self) -> np.ndarray:
        """Typical sizes of what scatters."""
        parameters = {p.name: p for p in self.task.request.common(self.task.mechanism).parameters}
        sizes = [max(parameters[name].scale, abs(self.pilot.values[name])) for name in self.task.request.scattering]
        return np.array(sizes, float)

    def _least(self) -> np.ndarray:
        return SMALLEST * self._typical()

    def _first_spread(self) -> np.ndarray:
        piloted = np.array([self.pilot.spread[name] for name in self.task.request.scattering], float)
        typical = self._typical()
        return np.where(piloted > SMALLEST * typical, piloted, FIRST * typical)

    def _pull(self, spread: np.ndarray) -> np.ndarray:
        """λ of the individual parameters."""
        weight = np.zeros(len(self.task.roles.individual))
        weight[self.task.roles.scattering] = (self.task.reference / spread) ** 2
        return weight

    def _judged(self, system: SpreadSystem, outcome: Outcome) -> _Judgement:
        here = outcome.linearisation
        witnesses = self.work.each(evidence.testify, self.problems, here.linears, shared=(self.placed, system.weights))
        total: Sums = self.work.total(evidence.sums, witnesses)
        prior = here.prior_matrix
        lower, upper = system.parameters.bounds(here.point.values)
        slack = AT_BOUND * system.parameters.scales
        free = ~((lower >= -slack) | (upper <= slack))
        information = total.information + prior
        inverse = _inverse(information, free, system)
        covariance = inverse @ (total.noise + prior) @ inverse
        disagreeing = inverse @ total.scores @ inverse / self.task.reference**2
        by_shard = self.work.gather(evidence.individuals, witnesses, shared=(self.placed, inverse, covariance))
        scatter = by_shard[0][1]
        for _, part in by_shard[1:]:
            scatter = scatter + part
        each = [one for some, _ in by_shard for one in some]
        return _Judgement(information, covariance, disagreeing, free, scatter, inverse, each, self.task.reference)

    def _estimate(
        self, system: SpreadSystem, outcome: Outcome, judgement: _Judgement, names: Sequence[str], seconds: float
    ) -> FleetEstimate:
        order = self.task.request.scattering
        spread = np.sqrt((self.task.reference**2) / system.pull[self.task.roles.scattering])
        error = judgement.spread_std(spread)
        labels = self.task.request.local(self.task.mechanism, 1).labels()
        individuals = Individuals(
            tuple(names),
            tuple(labels[i].removesuffix("@0") for i in self.task.roles.individual),
            np.array([one.values for one in judgement.each]).reshape(len(names), -1),
            np.array([one.std for one in judgement.each]).reshape(len(names), -1),
            np.array([one.chi for one in judgement.each]),
        )
        return FleetEstimate(
            self.task.mechanism,
            system.parameters,
            outcome,
            self.pilot.weights,
            judgement.information / self.task.reference**2,
            judgement.covariance * self.task.reference**2,
            judgement.disagreeing * self.task.reference**2,
            ~judgement.free,
            tuple(Spread(name, float(s), float(e)) for name, s, e in zip(order, spread, error, strict=True)),
            individuals,
            seconds,
        )


@dataclasses.dataclass(frozen=True)
class _Judgement:
    information: Float[np.ndarray, "d d"]
    covariance: Float[np.ndarray, "d d"]
    """By the noise, in units of σ₀²."""
    disagreeing: Float[np.ndarray, "d d"]
    """By what the recordings disagree."""
    free: np.ndarray
    scatter: Scatter
    inverse: Float[np.ndarray, "d d"]
    """H⁻¹, in units of σ₀²."""
    each: list[evidence.Individual]
    reference: float

    def spreads(self, count: int, spread: np.ndarray, least: np.ndarray) -> np.ndarray:
        """The spreads that the recordings make more likely."""
        # Individual parameters scatter about a mean that was estimated from them: of one recording nothing is told.
        degrees = np.maximum(count - self.scatter.variances * self.reference**2 / spread**2, 1e-3 * count)
        return np.maximum(np.sqrt(self.scatter.squares / degrees), least)

    def spread_std(self, spread: np.ndarray) -> np.ndarray:
        """Standard deviations of spreads."""
        if not len(spread):
            return spread
        information = self.scatter.information(self.inverse) / self.reference**4
        inverse = solve_on(information, np.ones(len(spread), bool), np.eye(len(spread)))
        if inverse is None:
            return np.full(len(spread), np.nan)
        return np.sqrt(np.diagonal(inverse)) / (2.0 * spread)


def _inverse(information: np.ndarray, free: np.ndarray, system: SpreadSystem) -> np.ndarray:
    """H⁻¹ on the free parameters; those that the data do not tell have a weak information of their own."""
    scale = system.parameters.scales
    least = evidence.LEAST_INFORMATION * system.weights.reference**2 / scale**2
    inverse = solve_on(information + np.diag(least), free, np.eye(len(free)))
    return np.zeros_like(information) if inverse is None else inverse
