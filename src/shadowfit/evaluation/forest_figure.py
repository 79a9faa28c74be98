"""The report's forest plot: what pieces of the data say about each parameter by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from shadowfit.evaluation.forest import HALF, piece_label, short
from shadowfit.evaluation.store import SavedResult

# Parameters that are drawn, those that disagree first.
MOST = 24
# Bars much longer than those of most pieces are cut off: their pieces know next to nothing.
LONG = 4.0


def section(saved: SavedResult) -> str:
    """The text of the section, with the place of the charts."""
    shown = _shown(saved)
    if not shown:
        return ""
    rows = _known(saved)
    apart = {name: row for name, row in rows.items() if row["spread"] > 0.0}
    if apart:
        listed = ", ".join(
            f"{escape(name)} (by {row['spread']:.2g}{_unit(saved, name)}, error bar {row['wider']:.3g} times wider)"
            for name, row in sorted(apart.items(), key=lambda one: -one[1]["wider"])
        )
        count = f"{len(apart)} of {len(rows)} parameters"
        text = f"From piece to piece of the data {count} differ by more than noise: {listed}."
    else:
        text = f"Pieces of the data agree about all {len(rows)} parameters that they tell."
    left = f" Of {len(rows)} parameters {len(shown)} are drawn; result.json has all." if len(shown) < len(rows) else ""
    return (
        f'<p>{text}</p><p class="soft">Each piece by itself with the 95 % interval of its noise; the last row is all '
        f'data with the stated interval.{left}</p><div id="forest" class="row"></div>'
    )


def numbers(saved: SavedResult) -> list[dict[str, Any]]:
    """What the script draws: a chart for each parameter."""
    return [_chart(saved, name) for name in _shown(saved)]


def _known(saved: SavedResult) -> dict[str, Any]:
    """Parameters that the data tell: pieces say nothing of what the whole does not."""
    rows = (saved.summary.get("disagreement") or {}).get("parameters") or {}
    return {name: row for name, row in rows.items() if saved.summary["parameters"][name]["identifiable"]}


def _shown(saved: SavedResult) -> list[str]:
    rows = _known(saved)
    first = sorted(rows, key=lambda name: -rows[name]["wider"])[:MOST]
    return [name for name in rows if name in first]


def _unit(saved: SavedResult, name: str) -> str:
    unit = saved.summary["parameters"][name]["unit"]
    return "" if unit == "1" else f" {escape(unit)}"


def _chart(saved: SavedResult, name: str) -> dict[str, Any]:
    disagreement, row = saved.summary["disagreement"], saved.summary["parameters"][name]
    compared = disagreement["parameters"][name]
    pieces = disagreement["pieces"][compared["partition"]]
    names = short([recording["name"] for recording in saved.summary["recordings"]])
    whole = len({piece["recording"] for piece in pieces}) == len(pieces)
    rows = [
        {
            "label": piece_label(names, piece["recording"], piece["from"], piece["to"], whole),
            "value": row["value"] + piece["difference"][name],
            "half": None if piece["std"][name] is None else HALF * piece["std"][name],
        }
        for piece in pieces
    ]
    low, high = _range(row, rows)
    return {
        "name": name,
        "unit": "" if row["unit"] == "1" else row["unit"],
        "apart": compared["spread"] > 0.0,
        "value": row["value"],
        "interval": row["interval"],
        "rows": rows,
        "low": low,
        "high": high,
    }


def _range(row: Mapping[str, Any], rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Ends of the axis: all that is known well, whatever the longest bars are."""
    known = [one for one in rows if one["half"] is not None]
    typical = float(np.median([one["half"] for one in known])) if known else 0.0
    ends = [row["value"], *(end for end in row["interval"] if end is not None)]
    for one in known:
        if one["half"] <= LONG * typical:
            ends += [one["value"] - one["half"], one["value"] + one["half"]]
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low) or max(abs(low), 1e-12)
    return low - room, high + room
