"""How much is there to read?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.scoreboard.measure import Measure, Metric, Tolerance
from benchmarks.scoreboard.measures.robots import only

SAYS = (
    "Size: what somebody has to read who carries the method on. Numbers are literals in the code that neither algebra "
    "(0, ½, 1, 2) nor places in an array ask for, among them sizes of arrays and digits of output."
)


def _counts() -> Iterator[Measure]:
    for key, says in (
        ("lines", "lines of code, comments and blank lines among them"),
        ("constants", "names in capitals that stand for numbers"),
        ("numbers", "all numbers that are set by hand"),
        ("modules", "modules"),
        ("words", "words"),
    ):
        metric = Metric(key, says, tolerance=Tolerance(relative=0.1))
        yield Measure(metric, lambda outcomes, key=key: only(outcomes, key))


MEASURES = tuple(_counts())
