"""The targets of the project, each with what was measured: computed, so that a page cannot claim what was not seen."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.peers.measures import BOUND, OURS, Key, covered, median, ratios, successes, warm
from benchmarks.peers.methods import METHODS
from benchmarks.peers.notation import number, table
from benchmarks.peers.results import Result
from benchmarks.peers.tasks import TASKS

# Allowed ratio to the error of the exact equations, allowed coverage of 95 % intervals, success from far away.
ACCURACY, COVERAGE, SUCCESS_RATE = 1.5, (0.91, 0.98), 0.95


def verdicts(groups: dict[Key, list[Result]]) -> str:
    """Each target with what was measured."""
    rows = [
        _accuracy(groups, OURS),
        _coverage(groups, OURS),
        _coverage(groups, "mujoco-state"),
        _far_start(groups),
    ]
    rows += [_speed(groups, BOUND, 10.0), _speed(groups, "mujoco-state", 50.0)]
    rows += [_cold(groups, BOUND), _cold(groups, "mujoco-state")]
    return table(["target", "measured", "met"], rows)


def _verdict(met: bool | None) -> str:
    return "not measured" if met is None else "yes" if met else "**no**"


def _accuracy(groups: dict[Key, list[Result]], method: str) -> list[str]:
    found = ratios(groups, method)
    good = [own <= ACCURACY * bound for _, _, own, bound, _ in found]
    worst = max((own / bound if bound else math.inf for _, _, own, bound, _ in found), default=math.nan)
    text = f"{sum(good)} of {len(good)} unknowns; worst ratio {number(worst)}" if good else "–"
    label = f"median error within {ACCURACY}× of CasADi's, every unknown: {METHODS[method].label}"
    return [label, text, _verdict(all(good) if good else None)]


def _coverage(groups: dict[Key, list[Result]], method: str) -> list[str]:
    counts = [covered(group) for (_, own), group in groups.items() if own == method]
    inside, total = sum(a for a, _ in counts), sum(b for _, b in counts)
    rate = inside / total if total else math.nan
    name = METHODS[method].label
    met = (COVERAGE[0] <= rate <= COVERAGE[1]) if total else None
    label = f"coverage of 95 % intervals {COVERAGE[0]:.0%}–{COVERAGE[1]:.0%}: {name}"
    return [label, f"{rate:.0%} of {total}" if total else "–", _verdict(met) if method == OURS else "for comparison"]


def _far_start(groups: dict[Key, list[Result]]) -> list[str]:
    fits = [(task, group) for (task, method), group in groups.items() if method == OURS and task.endswith("-far")]
    done, total = sum(successes(group) for _, group in fits), sum(len(group) for _, group in fits)
    met = done >= SUCCESS_RATE * total if total else None
    return [f"success from the paper's start ≥ {SUCCESS_RATE:.0%}", f"{done} of {total}", _verdict(met)]


def _common(groups: dict[Key, list[Result]], other: str, seconds: Callable[[list[Result]], float]) -> list[float]:
    """Ratio of the other method's time to ours, for each task that has both."""
    found = []
    for task in TASKS:
        ours, theirs = groups.get((task, OURS)), groups.get((task, other))
        if ours and theirs:
            ratio = seconds(theirs) / seconds(ours)
            if math.isfinite(ratio):
                found.append(ratio)
    return found


def _speed(groups: dict[Key, list[Result]], other: str, factor: float) -> list[str]:
    found = _common(groups, other, lambda group: median(r.seconds for r in warm(group)))
    busy = _common(groups, other, lambda group: median(r.cpu_seconds for r in warm(group)))
    text = "–"
    if found:
        met_on = sum(ratio >= factor for ratio in found)
        text = f"{number(min(found))}–{number(max(found))}×, median {number(median(found))}; met on {met_on} of "
        text += f"{len(found)} task(s); in processor time {number(min(busy))}–{number(max(busy))}×"
    met = min(found) >= factor if found else None
    return [f"warm time {factor:g}× below {METHODS[other].label}", text, _verdict(met)]


def _cold(groups: dict[Key, list[Result]], other: str) -> list[str]:
    found = _common(groups, other, lambda group: median(r.since_start for r in group if r.fresh))
    text = "–"
    if found:
        below = sum(ratio >= 1.0 for ratio in found)
        text = f"{number(min(found))}–{number(max(found))}× as long; ours is shorter on {below} of {len(found)} task(s)"
    return [f"cold time below {METHODS[other].label}", text, _verdict(min(found) >= 1.0 if found else None)]
