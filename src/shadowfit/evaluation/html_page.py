"""The frame of a page: one HTML file with its style, its script and the numbers that the script draws."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.evaluation.notices import Colour, Notice

# What the script asks for, of a page that has none of it.
NOTHING: dict[str, Any] = {
    "recordings": [],
    "log": {"number": [], "parameters": []},
    "diagnostics": [],
    "animation": None,
}


def frame(kind: str, title: str, head: str, sections: Iterable[tuple[str, str]], numbers: Mapping[str, Any]) -> str:
    """A page of sections (heading, HTML), below a head that is HTML; sections without contents are left out."""
    body = "\n".join(f"<section><h2>{name}</h2>{text}</section>" for name, text in sections if text)
    opening = f'<header><p class="kind">{escape(kind)}</p><h1>{escape(title)}</h1>\n{head}\n</header>'
    return document(title, f"<main>\n{opening}\n{body}\n</main>", numbers)


def document(title: str, body: str, numbers: Mapping[str, Any]) -> str:
    """A whole HTML file with its style, its script, and the numbers that the script draws in the body."""
    data = json.dumps({**NOTHING, **numbers}, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{_file("style.css")}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<script>
{_file("report.js")}</script>
</body>
</html>
"""


def stage(caption: str) -> str:
    """The place of the animation, with a caption that is HTML."""
    return (
        '<div class="chart stage"><canvas id="canvas"></canvas><div class="bar-row">'
        '<button id="play" type="button">Play</button><input id="moment" type="range" aria-label="time">'
        f'<span id="clock"></span></div></div><p class="soft">{caption}</p>'
    )


def notice_html(notice: Notice) -> str:
    """What is the case, and what to do, with commands set as such."""
    advice = f' <span class="soft">{_with_code(notice.advice)}.</span>' if notice.advice else ""
    return f"{_with_code(notice.text)}.{advice}"


def _with_code(text: str) -> str:
    """Text as HTML; what stands between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def banner(colour: Colour, sentence: str, notices: Iterable[Notice]) -> str:
    """The verdict in its colour, and its reasons."""
    items = [f'<li class="{notice.severity}">{notice_html(notice)}</li>' for notice in notices]
    listed = f'<ul class="notices">{"".join(items)}</ul>' if items else ""
    return f'<p class="verdict {colour}">{escape(sentence)}</p>{listed}'


def rounded(values: Float[np.ndarray, " n"]) -> list[float | None]:
    """Six digits, which no screen shows; None for missing values."""
    given = np.asarray(values, float)
    known = np.isfinite(given)
    size = np.abs(np.where(known & (given != 0.0), given, 1.0))
    # Powers of ten are whole numbers, and quotients and products with them correctly rounded: texts stay short.
    digits = 5 - np.clip(np.floor(np.log10(size)).astype(int), -250, 250)
    up, down = 10.0 ** np.maximum(digits, 0), 10.0 ** np.maximum(-digits, 0)
    short = np.rint(np.where(known, given, 0.0) * up / down) / up * down
    return [value if here else None for value, here in zip(short.tolist(), known.tolist(), strict=True)]


def part_of(share: float) -> str:
    """A share in words: ``4 % of``, or ``3 times``."""
    if share >= 2.0:
        return f"{share:.0f} times"
    return f"{100.0 * share:.2g} % of" if share < 0.1 else f"{100.0 * share:.0f} % of"


def split(heading: str) -> tuple[str, str]:
    """Name and unit of a column's heading ``name [unit]``."""
    key, _, unit = heading.partition(" [")
    return key, unit.removesuffix("]")


def _file(name: str) -> str:
    return (importlib.resources.files("shadowfit.evaluation") / "page" / name).read_text("utf-8")
