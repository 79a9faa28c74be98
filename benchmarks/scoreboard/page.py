"""docs/scoreboard.md, from the JSON of baseline and results alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from benchmarks.scoreboard import board, peers
from benchmarks.scoreboard.board import Board
from benchmarks.scoreboard.case import Form
from benchmarks.scoreboard.measure import Metric
from benchmarks.scoreboard.outcomes import ROOT
from benchmarks.scoreboard.table import number

PATH = ROOT / "docs" / "scoreboard.md"
HEAD = """# Scoreboard

What the library does on machines whose truth is known, on real ones, and under disturbances that should change nothing.
`make scoreboard-quick` runs the quick form (minutes, in continuous integration) and fails where a number is worse than
its baseline by more than its tolerance; `make scoreboard` runs the full form (hours), and `make scoreboard
SCOREBOARD="twins furuta-pulse"` a part of it. Each table says its form, each row its commit. This page is written by
`python -m benchmarks.scoreboard --page` from `benchmarks/scoreboard/baseline.json` and `results.json` alone. A cell is
the result, with the baseline in brackets where it differs; bold is beyond the tolerance. *Goal* is what is to be
reached, not what is reached.
"""
TITLES = {"full": "full form", "quick": "quick form"}


def text(baseline: Board, results: Board) -> str:
    """The page."""
    parts = [HEAD]
    for name, about in sorted(results["groups"].items()):
        metrics = [Metric.from_json(row) for row in about["metrics"]]
        parts.append(f"## {name.replace('_', ' ').capitalize()}\n\n{about['says']}\n")
        parts.append("\n".join(_meanings(metrics)) + "\n")
        for form in ("full", "quick"):
            rows = results[form].get(name, {})
            if rows:
                parts.append(f"### {name.replace('_', ' ').capitalize()}, {TITLES[form]}\n")
                before = baseline[form].get(name, {})
                parts.append("\n".join(_values(metrics, rows, before, cast(Form, form))) + "\n")
    return "\n".join(parts)


def _meanings(metrics: list[Metric]) -> Iterator[str]:
    yield "| metric | what it says | unit | goal | tolerance (quick) |"
    yield "|---|---|---|---|---|"
    for metric in metrics:
        allowed = [metric.tolerance, metric.quick or metric.tolerance]
        texts = [f"{one.absolute:g}" if one.absolute else f"{100.0 * one.relative:g} %" for one in allowed]
        tolerance = texts[0] + (f" ({texts[1]})" if texts[1] != texts[0] else "")
        yield (
            f"| {metric.key} | {metric.says} | {metric.unit} | {_goal(metric)} "
            f"| {'none, to read' if metric.direction == 'report' else tolerance} |"
        )


def _goal(metric: Metric) -> str:
    low, high = metric.goal
    if low is not None and high is not None:
        return f"{low:g}–{high:g}"
    return f"≥ {low:g}" if low is not None else f"≤ {high:g}" if high is not None else ""


def _values(metrics: list[Metric], rows: dict[str, Any], before: dict[str, Any], form: Form) -> Iterator[str]:
    shown = [metric for metric in metrics if any(metric.key in row["values"] for row in rows.values())]
    yield " | ".join(["| scenario", *(metric.key for metric in shown), "cases", "at |"])
    yield "|---|" + "---:|" * (len(shown) + 1) + "---|"
    for name, row in rows.items():
        old = before.get(name, {"values": {}})["values"]
        cells = [_cell(metric, row["values"].get(metric.key), old.get(metric.key), form) for metric in shown]
        yield " | ".join([f"| {row['says']} (`{name}`)", *cells, str(row["cases"]), f"{row['commit']} |"])
    if len(rows) > 1:
        known = {key: [row["values"][key] for row in rows.values() if key in row["values"]] for key in _keys(shown)}
        middle = [number(statistics.median(known[key])) for key in _keys(shown)]
        worst = [number(max(known[one.key], key=one.loss)) if one.direction != "report" else "" for one in shown]
        yield " | ".join(["| *median*", *middle, "", "|"])
        yield " | ".join(["| *worst*", *worst, "", "|"])


def _keys(metrics: list[Metric]) -> list[str]:
    return [metric.key for metric in metrics]


def _cell(metric: Metric, now: float | None, old: float | None, form: Form) -> str:
    mark = "**" if metric.beyond(now, old, form) else ""
    return f"{mark}{number(now)}{mark}" + (f" ({number(old)})" if old is not None and old != now else "")


def write(path: Path = PATH) -> None:
    """Write the page, and the README's table."""
    peers.write()
    path.write_text(text(board.read(board.BASELINE), board.read(board.RESULTS)), encoding="utf-8")
