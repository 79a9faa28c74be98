"""A fit of a few recordings, before that of all: levels of the noise, values to start from, and where the fit is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from shadowfit.estimation.fit import solve
from shadowfit.estimation.linear.threads import alone
from shadowfit.estimation.problem.options import Options
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.levenberg_marquardt import Iteration, LevenbergMarquardt, Progress
from shadowfit.estimation.spread import shard
from shadowfit.estimation.spread.roles import Request
from shadowfit.estimation.spread.shard import Task
from shadowfit.estimation.spread.sources import Source, read
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.recordings import Recording
from shadowfit.records import record
from shadowfit.runtime import double_precision

# Recordings of the pilot fit.
PILOTS = 8


@record(frozen=True)
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


class Journal:
    """Progress, and where the fit is, for one that begins anew after a kill."""

    def __init__(self, pilot: Pilot, progress: Progress | None, memory: Memory | None) -> None:
        self._now, self._progress, self._memory = pilot, progress, memory

    def note(self, iteration: Iteration) -> None:
        """An iteration has ended."""
        common = {name: value for name, value in iteration.parameters.items() if name in self._now.values}
        # A descent begins with a report of where the one before it ended.
        known = any(entry.number == iteration.number for entry in self._now.log)
        log = self._now.log if known else (*self._now.log, iteration)
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


def pilots(sources: Sequence[Source]) -> list[Source]:
    """Those of the pilot fit, evenly from the list."""
    return [sources[i] for i in np.unique(np.linspace(0, len(sources) - 1, PILOTS).round().astype(int))]


def pilot_fit(
    sources: Sequence[Source], mechanism: Mechanism, asked: Request, options: Options, optimiser: LevenbergMarquardt
) -> Pilot:
    """Levels of the noise and values to start from."""
    double_precision()
    recordings = [one for one in read(sources, mechanism) if isinstance(one, Recording)]
    with alone():
        problem = shard.build(recordings, Task(mechanism, asked, options, asked.roles(mechanism)))
        estimate = solve(problem, optimiser).unless_interrupted()
    point = estimate.outcome.linearisation.point
    values = [problem.parameters.named(point.values, i) for i in range(len(recordings))]
    mean = {
        p.name: values[0][p.name] if p.is_rotation else float(np.mean([named[p.name] for named in values]))
        for p in problem.parameters.parameters
    }
    spread = {name: float(np.std([named[name] for named in values])) for name in asked.scatter}
    # The pull of acting forces is that of the pilot's individual parameters and steps.
    # What rests in the recordings of the pilot says nothing about those of the others.
    weights = dataclasses.replace(estimate.weights, pull=None)
    return Pilot(weights, mean, spread, estimate.converged)
