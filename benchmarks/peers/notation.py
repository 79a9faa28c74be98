"""Numbers and tables as Markdown."""

from __future__ import annotations

import math


def number(value: float, digits: int = 2) -> str:
    """A short number; a dash where there is none."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.0f}" if 10.0**digits <= abs(value) < 1e6 else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """A relative error in per cent."""
    if math.isnan(value):
        return "–"
    value *= 100.0
    if value > 1000.0:
        return "> 1000"
    return f"{value:.{4 if value < 0.01 else 3 if value < 1.0 else 1}f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
