"""A board as JSON: what its metrics mean, and their values by form, group and scenario.

Results and baseline have the same layout, and hold everything that a table or a page needs::

    {"groups": {"twins": {"says": "…", "program": "…", "metrics": [{"key": "coverage", "says": "…", …}, …]}, …},
     "quick": {"twins": {"furuta-pulse": {"says": "…", "commit": "…", "cases": 4, "values": {"coverage": 95.8, …}}}},
     "full": {…}}
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from benchmarks.scoreboard.case import Form, Outcome
from benchmarks.scoreboard.groups import Group
from benchmarks.scoreboard.measure import Metric
from benchmarks.scoreboard.outcomes import ROOT

HERE = Path(__file__).parent
BASELINE, RESULTS = HERE / "baseline.json", HERE / "results.json"
DIGITS = 4
"""Significant ones that are kept."""
Board = dict[str, Any]


def read(path: Path) -> Board:
    """A board; an empty one where there is no file."""
    empty = {"groups": {}, "quick": {}, "full": {}}
    return {**empty, **json.loads(path.read_text(encoding="utf-8"))} if path.is_file() else empty


def write(path: Path, board: Board) -> None:
    """The board in a fixed order, so that a change of a number is a change of a line."""
    path.write_text(json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def by_scenario(found: Mapping[str, Outcome]) -> dict[str, dict[str, Outcome]]:
    """Scenario → variant → outcome, of cases by their names ``group/scenario/variant``."""
    scenarios: dict[str, dict[str, Outcome]] = {}
    for name, outcome in found.items():
        _, scenario, variant = name.split("/")
        scenarios.setdefault(scenario, {})[variant] = outcome
    return scenarios


def measured(group: Group, form: Form, found: Mapping[str, Outcome]) -> Board:
    """A board of what the cases of a group found, by their names."""
    words, commit = group.words(), commit_of_tree()
    rows = {
        name: {
            "says": words[name],
            "commit": commit,
            "cases": len(outcomes),
            "values": {key: float(f"{value:.{DIGITS}g}") for key, value in group.values(outcomes).items()},
        }
        for name, outcomes in by_scenario(found).items()
    }
    about = {
        "says": group.says,
        "program": group.program.__name__,
        "metrics": [measure.metric.to_json() for measure in group.measures],
    }
    empty: Board = {"quick": {}, "full": {}}
    return {"groups": {group.name: about}, **empty, form: {group.name: rows}}


def merged(old: Board, new: Board) -> Board:
    """The old board with what the new one has measured."""
    forms = {
        form: {
            name: {**old[form].get(name, {}), **new[form].get(name, {})} for name in sorted({*old[form], *new[form]})
        }
        for form in ("quick", "full")
    }
    return {"groups": {**old["groups"], **new["groups"]}, **forms}


def commit_of_tree() -> str:
    """What was measured, with a plus where files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "src") else "")


@dataclasses.dataclass(frozen=True)
class Line:
    """One metric of one scenario, beside its baseline."""

    group: str
    scenario: str
    metric: Metric
    now: float | None
    baseline: float | None
    beyond: bool

    @property
    def new(self) -> bool:
        """Whether there is no baseline yet."""
        return self.baseline is None


def compared(now: Board, baseline: Board, form: Form) -> Iterator[Line]:
    """Every metric that was measured now, and those that the same scenarios had and have no longer."""
    for name, scenarios in now[form].items():
        metrics = [Metric.from_json(row) for row in now["groups"][name]["metrics"]]
        for scenario, row in scenarios.items():
            before = baseline[form].get(name, {}).get(scenario, {"values": {}})["values"]
            for metric in metrics:
                value, old = row["values"].get(metric.key), before.get(metric.key)
                if (value, old) != (None, None):
                    yield Line(name, scenario, metric, value, old, metric.beyond(value, old, cast(Form, form)))
