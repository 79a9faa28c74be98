"""What a reader of a result has to know before using its numbers: how serious, what, and what to do about it.

A result is red if any notice is, amber if any is amber, else green; docs/verdict.md states the rules. They live in
:mod:`shadowfit.evaluation.rules`; a rule is a function of an estimate that returns notices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from shadowfit.records import record

Severity = Literal["red", "amber", "info"]
Colour = Literal["red", "amber", "green"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The most serious first."""

MEANING: Mapping[Colour, str] = {
    "green": "Nothing speaks against these numbers",
    "amber": "Use these numbers with care",
    "red": "Do not use these numbers yet",
}

MOST_UNKNOWN = 6
"""Parameters that are not identifiable are named up to this many."""


@record(frozen=True)
class Notice:
    """One thing to know."""

    severity: Severity
    text: str
    """What is the case, as a sentence without its full stop."""
    advice: str = ""
    """What to do next, likewise; empty where there is nothing to do."""

    def sentences(self) -> str:
        """Text and advice."""
        return f"{self.text}. {self.advice}." if self.advice else f"{self.text}."

    def to_json(self) -> dict[str, str]:
        """The same as JSON values."""
        return dataclasses.asdict(self)


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def ordered(notices: Iterable[Notice]) -> list[Notice]:
    """The most serious first, each once."""
    return sorted(dict.fromkeys(notices), key=lambda notice: SEVERITIES.index(notice.severity))


def colour(notices: Iterable[Notice]) -> Colour:
    """The verdict: that of the most serious notice."""
    severities = {notice.severity for notice in notices}
    return "red" if "red" in severities else "amber" if "amber" in severities else "green"


def from_json(rows: Sequence[Mapping[str, Any]]) -> list[Notice]:
    """Notices as a result's file holds them; of a severity that is not known, as information."""
    return [
        Notice(row["severity"] if row["severity"] in SEVERITIES else "info", row["text"], row.get("advice", ""))
        for row in rows
    ]


def it_or_them(names: Sequence[str]) -> str:
    """The pronoun for one name or several."""
    return "it" if len(names) == 1 else "them"
