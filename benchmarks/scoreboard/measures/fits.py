"""What any group of fits is asked: do intervals hold, how far off in bars, red or not, how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.scoreboard.case import Outcome
from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered


def rows(outcomes: Outcomes) -> Iterator[tuple[str, Outcome]]:
    """Parameter and its row, of all fits."""
    for found in answered(outcomes).values():
        yield from found["parameters"].items()


def share(held: Sequence[bool]) -> float | None:
    """Part that holds [%]; None of nothing."""
    return 100.0 * float(np.mean(held)) if held else None


def median(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return float(np.median(values)) if values else None


def holds(interval: tuple[float | None, float | None], truth: float) -> bool:
    """Whether an interval holds the truth; one without an end holds nothing."""
    low, high = (-np.inf if interval[0] is None else interval[0]), (np.inf if interval[1] is None else interval[1])
    return bool(np.isfinite(high - low) and low <= truth <= high)


def errors(outcomes: Outcomes) -> list[float]:
    """Errors of estimates that are called identified, in their bars."""
    return [
        abs(row["value"] - row["truth"]) / row["std"]
        for _, row in rows(outcomes)
        if row["identifiable"] and row["std"] and "truth" in row
    ]


def coverage(outcomes: Outcomes) -> float | None:
    """Part of the intervals that hold the truth [%]."""
    return share([holds(row["interval"], row["truth"]) for _, row in rows(outcomes) if "truth" in row])


def _of_all(key: str) -> Callable[[Outcomes], float | None]:
    return lambda outcomes: median([float(found[key]) for found in answered(outcomes).values() if key in found])


LARGEST_Z = Measure(
    Metric("largest z", "largest error of an estimate in its bars", "bars", "target", (None, 4.0), Tolerance(0.5)),
    lambda outcomes: max(errors(outcomes), default=None),
)
TOLD = Measure(
    Metric("told", "part of the parameters that are called identified", "%", "higher", (100.0, None), Tolerance(3.0)),
    lambda outcomes: share([row["identifiable"] for _, row in rows(outcomes)]),
)
RED = Measure(
    Metric("red", "part of the fits that end red", "%", "lower", (None, 0.0), Tolerance(3.0), Tolerance(10.0)),
    lambda outcomes: share([one["verdict"] == "red" for one in answered(outcomes).values()]),
)
SECONDS = Measure(Metric("seconds", "processor time of a fit, median", "s", "report"), _of_all("seconds"))
ITERATIONS = Measure(Metric("iterations", "iterations of a fit, median", "", "report"), _of_all("iterations"))
