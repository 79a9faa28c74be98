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

import numpy as np

from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.options import Options, ProblemError
from shadowfit.estimation.problem.pacing import default_cutoff, default_timestep
from shadowfit.estimation.problem.parameters import FreeParameters
from shadowfit.estimation.solve.deferred_correction import descend_corrected
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt, Outcome, Progress
from shadowfit.estimation.spread import shard
from shadowfit.estimation.spread.judgement import Judgement, judged
from shadowfit.estimation.spread.pilot import Journal, Memory, Pilot, pilot_fit, pilots
from shadowfit.estimation.spread.result import FleetEstimate, Individuals, Spread
from shadowfit.estimation.spread.roles import request
from shadowfit.estimation.spread.shard import Task
from shadowfit.estimation.spread.sources import InMemory, Source, check, read, shards, survey
from shadowfit.estimation.spread.system import SpreadPoint, SpreadSystem
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.parallel import Crew
from shadowfit.parallel.engine import Column, Engine, Handle, engine
from shadowfit.recordings import Recording
from shadowfit.runtime import double_precision

# Spreads are found when they change by less than a hundredth, or a tenth of their standard deviation; most rounds.
SETTLED, INSIGNIFICANT, ROUNDS = 0.01, 0.1, 12
# First spread of a parameter, and the smallest that is told from none, in units of its typical size.
FIRST, SMALLEST = 0.1, 1e-6


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
        opened = work.each(read, shards(sources), shared=(mechanism,))
        facts = [one for some in work.gather(survey, opened, shared=(mechanism,)) for one in some]
        check(facts, sources, work)
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
            pilot = work.once(pilot_fit, pilots(sources), mechanism, asked, chosen, settings)
        task = Task(mechanism, asked, chosen, asked.roles(mechanism), pilot.weights.reference)
        placed = work.broadcast(task)
        problems = work.each(shard.build, opened, shared=(placed,))
        work.release(problems)
        fleet = _Fleet(work, task, placed, problems, pilot, settings, Journal(pilot, progress, memory))
        del opened
        return fleet.fitted([source.name for source in sources], began)


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
    journal: Journal

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
            judgement = judged(system, outcome)
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

    def _estimate(
        self, system: SpreadSystem, outcome: Outcome, judgement: Judgement, names: Sequence[str], seconds: float
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
