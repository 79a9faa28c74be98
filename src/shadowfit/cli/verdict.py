"""A saved result as tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def parameter_table(rows: Mapping[str, Any]) -> Table:
    """The parameters of a result: start, value, deviation, interval, and the truth where it is known."""
    from shadowfit.cli import console
    from shadowfit.evaluation.intervals import interval

    known = any("truth" in row for row in rows.values())
    numeric = ("start", "value", "std", "95 % interval", *(["truth"] if known else []))
    table = console.table("Parameters", "name", *numeric, "unit", "", numeric=numeric)
    for name, row in rows.items():
        note = "at bound" if row["at_bound"] else "" if row["identifiable"] else "not identifiable"
        numbers = [_number(row["start"]), _number(row["value"]), "" if row["std"] is None else f"{row['std']:.2g}"]
        truth = [_number(row.get("truth"))] if known else []
        table.add_row(name, *numbers, interval(row), *truth, "" if row["unit"] == "1" else row["unit"], note)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


COLOURS = {"red": "bold red", "amber": "yellow", "info": "cyan", "green": "green"}


def print_verdict(summary: Mapping[str, Any]) -> None:
    """Everything that a result warns about, the most serious first, and the verdict below it."""
    from rich.text import Text

    from shadowfit.cli import console
    from shadowfit.evaluation import verdict

    screen = console.output()
    for notice in verdict.notices(summary):
        screen.print(Text(f"{notice.severity:<6}", COLOURS[notice.severity]) + Text(notice.sentences()), soft_wrap=True)
    colour = verdict.colour(summary)
    screen.print(Text(f"{colour:<6}", COLOURS[colour]) + Text(verdict.sentence(summary)), soft_wrap=True)
