"""A saved result as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from shadowfit.evaluation.notices import Notice


def parameter_table(rows: Mapping[str, Any]) -> Table:
    """The parameters of a result: start, value, deviation, interval, and the truth where it is known."""
    from shadowfit.cli import console
    from shadowfit.evaluation.intervals import interval
    from shadowfit.evaluation.notices import MOST_UNKNOWN

    known = any("truth" in row for row in rows.values())
    numeric = ("start", "value", "std", "95 % interval", *(["truth"] if known else []))
    table = console.table("Parameters", "name", *numeric, "unit", "", numeric=numeric)
    unknown = [name for name, row in rows.items() if not row["identifiable"] and not row["at_bound"]]
    if len(unknown) > MOST_UNKNOWN:
        table.caption = f"{len(unknown)} more are not identifiable by themselves; result.json has them all"
    for name, row in rows.items():
        if len(unknown) > MOST_UNKNOWN and name in unknown:
            continue
        note = "at bound" if row["at_bound"] else "" if row["identifiable"] else "not identifiable"
        numbers = [_number(row["start"]), _number(row["value"]), "" if row["std"] is None else f"{row['std']:.2g}"]
        truth = [_number(row.get("truth"))] if known else []
        table.add_row(name, *numbers, interval(row), *truth, "" if row["unit"] == "1" else row["unit"], note)
    return table


def derived_table(rows: Mapping[str, Any]) -> Table:
    """Quantities that follow from the parameters: value, deviation, interval."""
    from shadowfit.cli import console
    from shadowfit.evaluation.intervals import interval

    numeric = ("value", "std", "95 % interval")
    table = console.table("Derived", "name", *numeric, "unit", "", numeric=numeric)
    for name, row in rows.items():
        std = "" if row["std"] is None else f"{row['std']:.2g}"
        note = row["problem"] or ("a parameter in it is at its bound" if row["at_bound"] else "")
        unit = "" if row["unit"] in (None, "1") else row["unit"]
        table.add_row(name, _number(row["value"]), std, interval(row), unit, note)
    return table


def base_table(base: Mapping[str, Any]) -> Table:
    """Combinations of parameters that the motion determines, with their deviations."""
    from shadowfit.cli import console

    table = console.table("Base parameters", "combination", "value", "std", "unit", numeric=("value", "std"))
    for one in base["combinations"]:
        unit = "" if one["unit"] == "1" else one["unit"]
        table.add_row(one["text"], _number(one["value"]), "" if one["std"] is None else f"{one['std']:.2g}", unit)
    if base["unseen"]:
        table.caption = f"not seen by this motion: {', '.join(base['unseen'])}"
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


COLOURS = {"red": "bold red", "amber": "yellow", "info": "cyan", "green": "green"}


def print_verdict(summary: Mapping[str, Any]) -> None:
    """Everything that a result warns about, the most serious first, and the verdict below it."""
    from shadowfit.evaluation import verdict

    print_notices(verdict.notices(summary), verdict.colour(summary), verdict.sentence(summary))


def print_notices(notices: Iterable[Notice], colour: str, sentence: str) -> None:
    """Notices as they come, and a sentence in its colour."""
    from rich.text import Text

    from shadowfit.cli import console

    screen = console.output()
    for notice in notices:
        screen.print(Text(f"{notice.severity:<6}", COLOURS[notice.severity]) + Text(notice.sentences()), soft_wrap=True)
    screen.print(Text(f"{colour:<6}", COLOURS[colour]) + Text(sentence), soft_wrap=True)
