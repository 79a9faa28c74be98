"""A saved result as tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def parameter_table(rows: Mapping[str, Any]) -> Table:
    """The parameters of a result: start, value, deviation, interval, and the truth where it is known."""
    from shadowfit.cli import console

    known = any("truth" in row for row in rows.values())
    numeric = ("start", "value", "std", "95 % interval", *(["truth"] if known else []))
    table = console.table("Parameters", "name", *numeric, "unit", "", numeric=numeric)
    for name, row in rows.items():
        note = "at bound" if row["at_bound"] else "" if row["identifiable"] else "not identifiable"
        numbers = [_number(row["start"]), _number(row["value"]), "" if row["std"] is None else f"{row['std']:.2g}"]
        ends = " … ".join("" if end is None else f"{end:.4g}" for end in row.get("interval", ()))
        truth = [_number(row.get("truth"))] if known else []
        table.add_row(name, *numbers, ends, *truth, "" if row["unit"] == "1" else row["unit"], note)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
