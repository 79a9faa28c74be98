"""Headings of columns: `theta [deg]`, `theta (deg)` and `theta_deg` all mean `theta`, written in degrees.

In brackets every known unit is understood. As a suffix only those that do not pass for a word or an index:
`u_in` is an input and not inches, `theta_min` a minimum and not minutes, and `v_ms` might be m/s or
milliseconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from shadowfit.errors import RecordingError
from shadowfit.recordings.units import Unit, parse_unit
from shadowfit.records import record


@record(frozen=True)
class Heading:
    """A column's heading, taken apart."""

    text: str
    """The heading as written."""
    name: str
    """The heading without its unit."""
    unit: Unit | None
    """None where no unit is stated or where it is not understood."""
    note: str = ""
    """A warning where something in brackets is not understood."""


# What may follow the last underscores of a heading, and the unit it means.
_SUFFIXES = {
    **{unit: unit for unit in ("rad", "mrad", "deg", "rpm", "m", "cm", "mm", "um")},
    **{f"{unit}_{per}": f"{unit}/{per}" for unit in ("rad", "deg", "m", "cm", "mm") for per in ("s", "s2")},
    **{unit: unit for unit in ("V", "mV", "A", "mA", "N", "mN", "Nm", "mNm")},
    "N_m": "Nm",
}
_TIME_SUFFIXES = {unit: unit for unit in ("s", "sec", "ms", "us", "ns")}
# Headings that are a unit and a name at once.
_NAMES = ("rpm", "deg")

TIME_NAMES = ("time", "t", "timestamp", "timestamps", "times", "elapsed", "elapsed_time")
"""Names (without unit, in any case) under which the time is found, the first ones first."""

_BRACKETS = re.compile(r"^(?P<name>.*?)[\s_]*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))\s*$", re.DOTALL)
_LETTERED = re.compile(r"^(?P<stem>.+)_[A-Za-z]$", re.DOTALL)


def parse_heading(text: str) -> Heading:
    """Name and unit of a column's heading.

    `theta [deg]`, `theta (deg)`, `theta_deg` → `theta` with the factor π/180; `x_dot_m_s` → `x_dot` in m/s;
    `Time (ms)`, `t_s` → times. Brackets that hold no known unit stay part of the name, with a note.
    """
    text = text.strip()
    match = _BRACKETS.match(text)
    if match and match["name"]:
        written = (match["square"] or match["round"] or "").strip()
        if written.isdigit():  # an index, as in q[0]
            return Heading(text, text, None)
        unit = parse_unit(written)
        if unit is None and written not in ("", "-", "?"):
            note = f"column {text!r}: {written!r} is not a known unit; values are taken as written"
            return Heading(text, text, None, note)
        return Heading(text, match["name"], unit)
    if text.lower() in _NAMES:
        return Heading(text, text, parse_unit(text))
    return _split_suffix(text)


def parse_headings(texts: Iterable[str]) -> list[Heading]:
    """Headings of one table. A letter that tells columns apart (`x_A`, `x_B`) is no unit."""
    texts = [text.strip() for text in texts]
    stems = Counter(match["stem"] for match in map(_LETTERED.match, texts) if match)

    def is_index(text: str) -> bool:
        match = _LETTERED.match(text)
        if match is None or match["stem"].lower() in TIME_NAMES:
            return False
        return stems[match["stem"]] > 1

    return [Heading(text, text, None) if is_index(text) else parse_heading(text) for text in texts]


def _split_suffix(text: str) -> Heading:
    parts = text.split("_")
    for count in (2, 1):  # the longer first: `v_m_s` is in m/s
        name, suffix = "_".join(parts[:-count]), "_".join(parts[-count:])
        if not name.strip("_"):
            continue
        allowed = _TIME_SUFFIXES if name.lower() in TIME_NAMES else _SUFFIXES
        # Capitals are forgiven (`theta_DEG`), but a single one is an index rather than a unit.
        unit = allowed.get(suffix) or (allowed.get(suffix.lower()) if len(suffix) > 1 else None)
        if unit:
            return Heading(text, name, parse_unit(unit))
    return Heading(text, text, None)


def check_headings(headings: Sequence[str], where: str) -> None:
    """Every heading once, none empty."""
    places: dict[str, int] = {}
    for position, heading in enumerate(headings):
        if not heading:
            raise RecordingError(f"{where}: column {position + 1} has no heading; give it a name or delete it")
        first = places.setdefault(heading, position)
        if first != position:
            raise RecordingError(
                f"{where}: columns {first + 1} and {position + 1} are both called {heading!r}; rename or delete one"
            )
