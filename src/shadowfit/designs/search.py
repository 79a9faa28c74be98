"""The search for the best coefficients: sequential linear programming.

To be made small is the largest of some numbers o_i(x) while others c_j(x) stay below zero. Around x both are taken to
be linear, and

    min t + μ s     with  o_i + ∇o_i d ≤ t,   c_j + ∇c_j d ≤ s,   s ≥ 0,   |d_k| ≤ Δ/g_k

is a linear program: the worst error bar needs no smooth stand-in, and limits are met where they bind. g_k is the
largest slope in a coordinate, or one: a constant force that drives a cart off its rail may change less than others.
Derivatives are differences of motions that are evaluated side by side. Limits are curved: each step is solved for once
more with the limits as they are at its end. A step is taken where ``max o + μ max(c, 0)`` falls, and Δ follows how well
the steps do.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.optimize import linprog

from shadowfit.arrays import Float
from shadowfit.records import record

# Step of the differences; coefficients are of order one.
DIFFERENCE = 1e-4
# μ: what breaking a limit by all of it costs, in logarithms of an error bar.
PENALTY = 30.0
# Δ of the first step, and the one at which the search ends.
FIRST_RADIUS, LAST_RADIUS = 0.5, 3e-3
# Parts of Δ that are tried side by side.
PARTS = (1.0, 0.4, 0.15)
# The search ends after so many iterations in a row that improve by less than this, in logarithms.
WORTHWHILE, PATIENCE = 5e-3, 2
# Iterations of each search in the first round, where several compete.
FIRST_ROUND = 2


class Evaluate(Protocol):
    """Objectives and constraints of many sets of coefficients, side by side."""

    def __call__(
        self, coefficients: Float[np.ndarray, "count n"]
    ) -> tuple[Float[np.ndarray, "count m"], Float[np.ndarray, "count k"]]:
        """The largest objective is to be made small; constraints must not be positive."""
        ...


@record(frozen=True)
class Candidate:
    """Where a search ended."""

    coefficients: Float[np.ndarray, " n"]
    objective: float
    """The largest."""
    violation: float
    """The largest; not positive where all limits hold."""
    radius: float = FIRST_RADIUS
    """Δ of the next step."""
    done: bool = False
    """Whether nothing more is to be expected near here."""
    iterations: int = 0
    """That led here."""

    @property
    def merit(self) -> float:
        """What is made small."""
        return self.objective + PENALTY * max(self.violation, 0.0)


def minimise(
    evaluate: Evaluate,
    start: Float[np.ndarray, " n"] | Candidate,
    iterations: int,
    until: float = np.inf,
    report: Callable[[Candidate], None] | None = None,
) -> Candidate:
    """The best coefficients near a start, after so many iterations at most.

    ``start`` may be where an earlier search ended, which goes on. A time of the performance counter [s] ends it early.
    """
    best = start if isinstance(start, Candidate) else begin(evaluate, start)
    before, radius, idle, done, used = best.iterations, best.radius, 0, best.done, 0
    while used < iterations and not done and time.perf_counter() < until:
        used += 1
        here = best.coefficients
        model = _Model.around(evaluate, here)
        steps = np.array([model.step(part * radius) for part in PARTS])
        first = evaluate(here + steps)
        again = np.array([model.step(part * radius, *bent) for part, *bent in zip(PARTS, steps, first[1], strict=True)])
        trials = here + np.concatenate([steps, again])
        values = [np.concatenate(pair) for pair in zip(first, evaluate(here + again), strict=True)]
        tried = [_candidate(*each) for each in zip(trials, *values, strict=True)]
        chosen = int(np.argmin([one.merit for one in tried]))
        gain = best.merit - tried[chosen].merit
        if gain > 0.0:
            best = tried[chosen]
            if report is not None:
                report(best)
        radius *= (2.0, 0.7, 0.3)[chosen % len(PARTS)] if gain > 0.0 else 0.1
        idle = idle + 1 if 0.0 < gain < WORTHWHILE else 0
        done = radius < LAST_RADIUS or idle == PATIENCE
    return dataclasses.replace(best, radius=radius, done=done, iterations=before + used)


def begin(evaluate: Evaluate, start: Float[np.ndarray, " n"]) -> Candidate:
    """A start, evaluated."""
    objectives, constraints = evaluate(start[None])
    return _candidate(start, objectives[0], constraints[0])


@record(frozen=True)
class Competition:
    """Searches from several starts, and how they ended."""

    candidates: list[Candidate]
    """The best first."""
    evaluations: int
    """Sets of coefficients that were looked at."""
    late: bool
    """Whether the time ended it, and not the number of evaluations."""


def compete(
    evaluate: Evaluate,
    starts: Sequence[Float[np.ndarray, " n"]],
    evaluations: int,
    seconds: float,
    report: Callable[[int, Candidate], None],
) -> Competition:
    """Searches from several starts, the best half of which goes on at a time, twice as long.

    They end after so many evaluations: on any machine at the same place. Half of those that are left are for the
    searches of a round, all of them for the last one. Some seconds end them whatever happens.
    """
    until = time.perf_counter() + seconds
    candidates = [begin(evaluate, start) for start in starts]
    each = len(starts[0]) + 1 + 2 * len(PARTS)
    alive, some, left = list(range(len(starts))), FIRST_ROUND, max(evaluations // each, 1)
    while alive and left > 0:
        last = len(alive) == 1
        length = left if last else min(some, max(left // (2 * len(alive)), 1))
        for number in alive:
            used = candidates[number].iterations
            reporting = functools.partial(report, number)
            candidates[number] = minimise(evaluate, candidates[number], min(length, left), until, reporting)
            left -= candidates[number].iterations - used
        if last:
            break
        ranked = sorted(alive, key=lambda number: candidates[number].merit)
        alive, some = ranked[: len(alive) // 2], 2 * some
    looked = len(starts) + each * sum(one.iterations for one in candidates)
    late = time.perf_counter() > until
    return Competition(sorted(candidates, key=lambda best: best.merit), looked, late)


def _candidate(coefficients: np.ndarray, objectives: np.ndarray, constraints: np.ndarray) -> Candidate:
    return Candidate(coefficients, float(np.max(objectives)), float(np.max(constraints)))


@record(frozen=True)
class _Model:
    """Objectives and constraints as linear functions of a step."""

    objectives: Float[np.ndarray, " m"]
    constraints: Float[np.ndarray, " k"]
    objective_slopes: Float[np.ndarray, "m n"]
    constraint_slopes: Float[np.ndarray, "k n"]

    @classmethod
    def around(cls, evaluate: Evaluate, here: Float[np.ndarray, " n"]) -> _Model:
        objectives, constraints = evaluate(np.concatenate([here[None], here + DIFFERENCE * np.eye(len(here))]))
        slopes = [(values[1:] - values[0]).T / DIFFERENCE for values in (objectives, constraints)]
        return cls(objectives[0], constraints[0], *slopes)

    def step(
        self, radius: float, taken: np.ndarray | None = None, ending: Float[np.ndarray, " k"] | None = None
    ) -> Float[np.ndarray, " n"]:
        """d of the linear program, through the constraints at the ``ending`` of a step ``taken``. No step: zero."""
        across = self.constraint_slopes
        limits = self.constraints if ending is None else ending - across @ taken
        size = len(self.objective_slopes[0])
        steepest = np.max(np.abs(np.concatenate([self.objective_slopes, across])), axis=0)
        reach = radius / np.maximum(steepest, 1.0)
        # Limits that are far away within reach need no row.
        near = limits + np.abs(across) @ reach > 0.0
        count = len(self.objectives), int(near.sum())
        rows = np.zeros((sum(count), size + 2))
        rows[: count[0], :size], rows[: count[0], size] = self.objective_slopes, -1.0
        rows[count[0] :, :size], rows[count[0] :, size + 1] = across[near], -1.0
        right = np.concatenate([-self.objectives, -limits[near]])
        cost = np.concatenate([np.zeros(size), [1.0, PENALTY]])
        bounds = [*((-one, one) for one in reach), (None, None), (0.0, None)]
        solution = linprog(cost, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
        return np.asarray(solution.x[:size]) if solution.status == 0 else np.zeros(size)
