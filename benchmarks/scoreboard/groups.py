"""The groups of the scoreboard: each is a program that runs cases, and measures of what they find."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.measure import UNANSWERED, Measure, Outcomes

NAMES = ("twins", "stability", "real", "robots", "simulated", "right_wrong", "speed", "size")


@dataclasses.dataclass(frozen=True)
class Group:
    """A program and its measures."""

    name: str
    says: str
    program: ModuleType
    measures: tuple[Measure, ...]
    details: Callable[[Outcomes], str] | None = None
    """All that the outcomes of one scenario say, as lines."""

    def cases(self, form: Form, scenarios: Sequence[str] = (), **changes: int) -> list[Case]:
        """What is run, of some scenarios only where they are named."""
        found = self.program.cases(form, **changes)
        if not scenarios:
            return found
        named = self.program.cases("full", **changes) if form == "quick" else found
        # A scenario that is asked for by its name is run whether or not it belongs to the form.
        chosen = {case.name: case for case in (*named, *found) if case.scenario in scenarios}
        quick = {case.scenario for case in found}
        return [case for case in chosen.values() if case.scenario not in quick or case in found]

    def values(self, outcomes: Outcomes) -> dict[str, float]:
        """Key of a metric → its value in one scenario; what the outcomes do not tell is absent."""
        found = {measure.metric.key: measure.of(outcomes) for measure in self.measures}
        return {key: float(value) for key, value in found.items() if value is not None}

    def words(self) -> Mapping[str, str]:
        """Scenario → what it is, in a few words."""
        return {name: scenario.says for name, scenario in self.program.SCENARIOS.items()}


def group(name: str) -> Group:
    """A group by its name."""
    program = importlib.import_module(f"benchmarks.scoreboard.programs.{name}")
    measures = importlib.import_module(f"benchmarks.scoreboard.measures.{name}")
    details = getattr(measures, "details", None)
    return Group(name, measures.SAYS, program, (*measures.MEASURES, UNANSWERED), details)
