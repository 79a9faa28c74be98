"""The table that a run prints: baseline, now, difference, and what is beyond its tolerance."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.scoreboard.board import Line

HEAD = ("scenario", "metric", "baseline", "now", "difference", "")


def number(value: float | None) -> str:
    """A value in three digits; nothing where there is none."""
    return "–" if value is None else f"{value:.3g}"


def _cells(line: Line) -> tuple[str, ...]:
    difference = None if line.now is None or line.baseline is None else line.now - line.baseline
    unit = f" [{line.metric.unit}]" if line.metric.unit else ""
    mark = "BEYOND TOLERANCE" if line.beyond else "new" if line.new else ""
    return (
        f"{line.group}/{line.scenario}",
        f"{line.metric.key}{unit}",
        number(line.baseline),
        number(line.now),
        "" if difference is None else f"{difference:+.2g}",
        mark,
    )


def table(lines: Iterable[Line], without_data: Iterable[str] = ()) -> str:
    """All lines in columns, a scenario's name at its first line; at the end those without recordings."""
    rows = [HEAD, *map(_cells, lines), *((name, "", "", "", "", "no data") for name in without_data)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    texts, before = [], ""
    for row in rows:
        name = row[0] if row[0] != before else ""
        before = row[0]
        cells = [name.ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:5], widths[2:5], strict=True)]
        texts.append("  ".join([*cells, row[5]]).rstrip())
    return "\n".join(texts)
