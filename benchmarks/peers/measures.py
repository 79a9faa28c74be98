"""Statistics of the results: errors, times, coverage, success; one definition for tables, targets and figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from benchmarks.peers.methods import METHODS
from benchmarks.peers.results import Result
from benchmarks.peers.tasks import TASKS

OURS, PLAIN, BOUND = "shadowfit", "shadowfit-plain", "casadi"
Key = tuple[str, str]
"""Task and method."""


def grouped(found: Iterable[Result]) -> dict[Key, list[Result]]:
    """Results by task and method, in the order of the tasks and methods."""
    groups: dict[Key, list[Result]] = {(task, method): [] for task in TASKS for method in METHODS}
    for result in found:
        if (result.task, result.method) in groups:
            groups[result.task, result.method].append(result)
    return {key: sorted(group, key=lambda r: r.seed) for key, group in groups.items() if group}


def errors(group: list[Result], name: str) -> list[float]:
    """Relative errors of one unknown over the seeds that gave an answer."""
    truth = TASKS[group[0].task].truth
    return [r.deviation(truth, name) for r in group if not r.error]


def median(values: Iterable[float]) -> float:
    """The median of the finite values; NaN without any."""
    kept = [value for value in values if math.isfinite(value)]
    return statistics.median(kept) if kept else math.nan


def middle(values: list[float]) -> float:
    """The median with infinite values counted; NaN without any."""
    return statistics.median(values) if values else math.nan


def warm(group: list[Result]) -> list[Result]:
    """Fits that nothing had to be compiled for."""
    compiles = METHODS[group[0].method].compiles
    return [r for r in group if not r.error and (r.place > 0 or not compiles)]


def covered(group: list[Result]) -> tuple[int, int]:
    """How many 95 % intervals hold the truth, and how many there are."""
    truth = TASKS[group[0].task].truth
    inside = total = 0
    for result in group:
        for name, std in (result.std or {}).items():
            if math.isfinite(std):
                total += 1
                inside += abs(result.values[name] - truth[name]) <= 1.96 * std
    return inside, total


def successes(group: list[Result]) -> int:
    """Seeds with every unknown near the truth."""
    task = TASKS[group[0].task]
    return sum(r.success(task.truth, list(task.starts)) for r in group)


def ratios(groups: dict[Key, list[Result]], method: str = OURS) -> list[tuple[str, str, float, float, int]]:
    """Task, unknown, median error of a method, of CasADi's, seeds: on the seeds that both have."""
    found = []
    for task in TASKS:
        ours, bound = groups.get((task, method)), groups.get((task, BOUND))
        if not ours or not bound:
            continue
        seeds = {r.seed for r in ours if not r.error} & {r.seed for r in bound if not r.error}
        if not seeds:
            continue
        for name in TASKS[task].starts:
            pair = [middle(errors([r for r in group if r.seed in seeds], name)) for group in (ours, bound)]
            found.append((task, name, pair[0], pair[1], len(seeds)))
    return found
