"""What a study hands back: text, tables, figures, and findings that were checked; as Markdown and as one HTML page."""

from __future__ import annotations

import base64
import importlib.resources
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from shadowfit.records import record
from shadowfit.sweeps.cases import Outcome
from shadowfit.sweeps.tables import csv_text


class MissingCase(Exception):
    """A case without result was asked for."""


class Results:
    """Results of cases by name."""

    def __init__(self, outcomes: Mapping[str, Outcome]):
        self._outcomes = outcomes

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        outcome = self._outcomes.get(name)
        if outcome is None or outcome.result is None:
            raise MissingCase(f"case {name} has no result{': ' + outcome.error.strip()[-200:] if outcome else ''}")
        return outcome.result

    def get(self, name: str) -> Mapping[str, Any] | None:
        """The result, or None where there is none."""
        outcome = self._outcomes.get(name)
        return None if outcome is None else outcome.result

    def existing(self, names: Sequence[str]) -> list[Mapping[str, Any]]:
        """The results that exist."""
        return [result for name in names if (result := self.get(name)) is not None]


@record(frozen=True)
class ResultTable:
    """A table of cells; ``name`` is that of its CSV file."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@record(frozen=True)
class Figure:
    """A picture in the folder of figures."""

    file: str
    caption: str


@record(frozen=True)
class Finding:
    """A sentence that was checked on the results of a study."""

    statement: str
    holds: bool | None
    """None: it could not be checked."""
    evidence: str
    """The numbers that decide."""
    reason: str = ""
    """Why it does not hold, where that is known."""


@record(frozen=True)
class Section:
    """The report of one study."""

    title: str
    text: Sequence[str]
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    findings: Sequence[Finding] = ()


def check(statement: str, test: Callable[[], tuple[bool, str]], reason: str = "") -> Finding:
    """Check a sentence: ``test`` returns whether it holds and the numbers; ``reason`` is told if it does not."""
    try:
        holds, evidence = test()
    except MissingCase as missing:
        return Finding(statement, None, str(missing))
    return Finding(statement, bool(holds), evidence, "" if holds else reason)


def some(values: Iterable[float]) -> list[float]:
    """Points of a sweep that a finding is about; a sweep that has none of them cannot tell."""
    points = list(values)
    if not points:
        raise MissingCase("the sweep has too few points")
    return points


VERDICTS = {True: "holds", False: "does not hold", None: "not checked"}


# ---- Markdown


def markdown(title: str, note: str, sections: Sequence[Section]) -> str:
    """The page; figures are looked for in the folder ``figures`` beside it."""
    parts = [f"# {title}", note]
    for section in sections:
        parts += [f"## {section.title}", *section.text]
        if section.findings:
            parts.append(_markdown_table(ResultTable("", "", ["finding", "", "measured"], _finding_rows(section))))
        for table in section.tables:
            parts += [f"**{table.caption}**", _markdown_table(table)]
        for figure in section.figures:
            parts += [f"![{figure.caption}](figures/{figure.file})", f"*{figure.caption}*"]
    return "\n\n".join(parts) + "\n"


def _finding_rows(section: Section) -> list[list[str]]:
    return [
        [f.statement, VERDICTS[f.holds], f.evidence + (f" ({f.reason})" if f.reason else "")] for f in section.findings
    ]


def _markdown_table(table: ResultTable) -> str:
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# ---- HTML


def html(title: str, note: str, sections: Sequence[Section], figures: Path) -> str:
    """One page that needs no other file: pictures are part of it."""
    body = "\n".join(_html_section(section, figures) for section in sections)
    style = (importlib.resources.files("shadowfit.evaluation") / "page" / "style.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{style}
figure {{ margin: 1.5rem 0; }} figure img {{ max-width: 100%; background: #fff; border-radius: 4px; }}
td {{ vertical-align: top; }}
</style>
</head>
<body>
<main>
<header><h1>{escape(title)}</h1>{_html_text(note)}</header>
{body}
</main>
</body>
</html>
"""


def _html_section(section: Section, figures: Path) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>", *map(_html_text, section.text)]
    if section.findings:
        parts.append(_html_table(ResultTable("", "", ["finding", "", "measured"], _finding_rows(section))))
    for table in section.tables:
        parts += [f"<h3>{escape(table.caption)}</h3>", _html_table(table)]
    for figure in section.figures:
        picture = base64.b64encode((figures / figure.file).read_bytes()).decode("ascii")
        parts.append(
            f'<figure><img alt="{escape(figure.caption)}" src="data:image/png;base64,{picture}">'
            f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        )
    return f"<section>{''.join(parts)}</section>"


def _html_text(text: str) -> str:
    """A paragraph, or a list of lines that begin with a dash; code in backticks."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    if marked.startswith("- "):
        return f"<ul>{''.join(f'<li>{line}</li>' for line in marked.removeprefix('- ').split(chr(10) + '- '))}</ul>"
    return f"<p>{marked}</p>"


def _html_table(table: ResultTable) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def table_text(table: ResultTable) -> str:
    """A table as CSV."""
    return csv_text(table.columns, table.rows)
