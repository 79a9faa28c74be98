"""A fit in words: for a notebook's cell, and as plain text."""

from __future__ import annotations

from html import escape

from shadowfit.estimation import Estimate, ParameterEstimate
from shadowfit.evaluation.notices import MEANING, Colour, colour

DOTS: dict[Colour, str] = {"green": "#2a9d4a", "amber": "#d99a00", "red": "#c93434"}


def sentences(estimate: Estimate) -> list[str]:
    """The verdict and what it rests on, the most serious first."""
    verdict: Colour = colour(estimate.notices)
    said = [f"{one.severity}: {one.sentences()}" for one in estimate.notices if one.severity != "info"]
    return [f"{verdict}: {MEANING[verdict]}.", *said]


def html(estimate: Estimate) -> str:
    """Verdict, notices and the table of parameters."""
    first, *rest = sentences(estimate)
    dot = f'<span style="color:{DOTS[colour(estimate.notices)]}">&#9679;</span>'
    head = f"<p>{dot} <b>{escape(first.partition(': ')[2])}</b> {escape(estimate.status.value)}</p>"
    notices = "".join(f"<li>{escape(text)}</li>" for text in rest)
    rows = "".join(_row(row) for row in estimate.parameters)
    columns = "".join(f"<th>{name}</th>" for name in ("name", "value", "± std", "unit", ""))
    table = f"<table><tr>{columns}</tr>{rows}</table>" if rows else ""
    return head + (f"<ul>{notices}</ul>" if notices else "") + table


def _row(row: ParameterEstimate) -> str:
    note = "at bound" if row.at_bound else "" if row.identifiable else "not identifiable"
    spread = "" if row.at_bound else f"{row.std:.2g}"
    cells = (row.name, f"{row.value:.6g}", spread, row.unit if row.unit != "1" else "", note)
    return "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + "</tr>"
