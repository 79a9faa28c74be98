"""Runs side by side: each parameter with its interval in every run, as a table and as bars."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from shadowfit.evaluation.intervals import interval

WIDTH, ROW = 220, 12


def comparison(summaries: Mapping[int, Mapping[str, Any]]) -> str:
    """A table of parameters and runs (number → contents of ``result.json``), as HTML."""
    names = list(dict.fromkeys(name for summary in summaries.values() for name in summary["parameters"]))
    if not names:
        return '<p class="soft">No parameter was free in these runs.</p>'
    head = "".join(f'<th class="n run{i % 6}">run {number}</th>' for i, number in enumerate(summaries))
    lines = [f"<tr><th>parameter</th><th>unit</th>{head}<th>95 % intervals</th></tr>"]
    for name in names:
        rows = [summary["parameters"].get(name) for summary in summaries.values()]
        unit = next(row["unit"] for row in rows if row)
        cells = "".join(f'<td class="n">{_cell(row)}</td>' for row in rows)
        lines.append(
            f'<tr><td class="name">{escape(name)}</td><td>{"" if unit == "1" else escape(unit)}</td>{cells}'
            f"<td>{_bars(rows)}</td></tr>"
        )
    return f'<div class="scroll"><table class="comparison">{"".join(lines)}</table></div>'


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    note = " at bound" if row["at_bound"] else "" if row["identifiable"] else " not identifiable"
    return f'{row["value"]:.6g}<br><span class="soft">{escape(interval(row))}{note}</span>'


def _bars(rows: list[Mapping[str, Any] | None]) -> str:
    """Intervals of all runs on one scale, a dot for each value."""
    ends = [end for row in rows if row for end in (*(row["interval"] or ()), row["value"]) if end is not None]
    low, high = min(ends), max(ends)
    if not high > low:
        return ""

    def place(value: float) -> float:
        return 6 + (value - low) / (high - low) * (WIDTH - 12)

    drawn = []
    for i, row in enumerate(rows):
        if row is None:
            continue
        y = ROW * (i + 0.5)
        known = [end for end in row["interval"] or () if end is not None]
        if len(known) == 2:
            x = [place(end) for end in known]
            drawn.append(f'<line x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{y}" y2="{y}" class="run{i % 6}"/>')
        drawn.append(f'<circle cx="{place(row["value"]):.1f}" cy="{y}" r="3.5" class="run{i % 6}"/>')
    return f'<svg class="bars" width="{WIDTH}" height="{ROW * len(rows)}" role="img">{"".join(drawn)}</svg>'
