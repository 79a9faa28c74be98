"""A metric of the scoreboard as data: what it says, which way is better, and by how much it may get worse."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from benchmarks.scoreboard.case import Form, Outcome

Direction = Literal["lower", "higher", "target", "report"]
"""Which way is better; ``target``: within the goal; ``report``: a number to read, never a failure."""
Outcomes = Mapping[str, Outcome]
"""Variant of a scenario → what it found."""


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How much worse than its baseline a value may be, absolute and as a part of the baseline, whichever is more."""

    absolute: float = 0.0
    relative: float = 0.0

    def around(self, baseline: float) -> float:
        """The same in the unit of the value."""
        return max(self.absolute, self.relative * abs(baseline))


@dataclasses.dataclass(frozen=True)
class Metric:
    """What a number of the board means."""

    key: str
    says: str
    """In one sentence."""
    unit: str = ""
    direction: Direction = "lower"
    goal: tuple[float | None, float | None] = (None, None)
    """The range to reach; None: open on this side."""
    tolerance: Tolerance = Tolerance()
    quick: Tolerance | None = None
    """Of the quick form, whose fewer seeds scatter more; None: the same."""

    def loss(self, value: float) -> float:
        """How bad a value is, in its own unit."""
        if self.direction == "target":
            low, high = self.goal
            return max(0.0 if low is None else low - value, 0.0 if high is None else value - high, 0.0)
        return -value if self.direction == "higher" else value

    def beyond(self, now: float | None, baseline: float | None, form: Form) -> bool:
        """Whether a value is worse than its baseline by more than the tolerance; no value is worse than any."""
        if self.direction == "report" or baseline is None:
            return False
        if now is None or not math.isfinite(now):
            return True
        tolerance = self.quick if form == "quick" and self.quick is not None else self.tolerance
        return self.loss(now) - self.loss(baseline) > tolerance.around(baseline)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**dataclasses.asdict(self), "goal": list(self.goal)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The same, read back."""
        quick = None if row["quick"] is None else Tolerance(**row["quick"])
        return cls(**{**row, "goal": tuple(row["goal"]), "tolerance": Tolerance(**row["tolerance"]), "quick": quick})


@dataclasses.dataclass(frozen=True)
class Measure:
    """A metric, and how it follows from the outcomes of a scenario; None where they do not tell."""

    metric: Metric
    of: Callable[[Outcomes], float | None]


def answered(outcomes: Outcomes) -> dict[str, Outcome]:
    """Those that ended with an answer."""
    return {variant: found for variant, found in outcomes.items() if "error" not in found}


UNANSWERED = Measure(
    Metric("unanswered", "cases that ended in an error or at their time limit", goal=(None, 0.0)),
    lambda outcomes: float(len(outcomes) - len(answered(outcomes))),
)
"""Every group has it."""
