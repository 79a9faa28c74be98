"""How long, by a yardstick of the same run?"""

from __future__ import annotations

from benchmarks.scoreboard.measure import Measure, Metric, Tolerance
from benchmarks.scoreboard.measures.robots import only

SAYS = (
    "Speed: processor time over that of a yardstick in the same process, so that another machine, or a busy one, says "
    "nearly the same. Below one is faster."
)
MEASURES = (
    Measure(
        Metric(
            "ratio",
            "processor time over the yardstick's",
            "",
            tolerance=Tolerance(relative=0.3),
            quick=Tolerance(relative=0.7),
        ),
        lambda outcomes: (
            None if (ours := only(outcomes, "ours")) is None else ours / (only(outcomes, "theirs") or ours)
        ),
    ),
    Measure(Metric("seconds", "our processor time", "s", "report"), lambda outcomes: only(outcomes, "ours")),
    Measure(
        Metric(
            "memory", "largest of the process", "MB", tolerance=Tolerance(relative=0.3), quick=Tolerance(relative=0.5)
        ),
        lambda outcomes: only(outcomes, "memory"),
    ),
    Measure(Metric("iterations", "of a fit", "", "report"), lambda outcomes: only(outcomes, "iterations")),
)
