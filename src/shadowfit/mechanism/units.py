"""Units of numbers that refer to an input or a sensor: ``N m/unit`` is ``N m/A`` where a current is the input."""

from __future__ import annotations

import re

# Stands for the unit of a part that the user names.
OPEN = "unit"


def in_own_unit(unit: str, base: str) -> str:
    """A unit with the open part of it replaced; as it is where the other one is not stated (``1``)."""
    if base in ("1", OPEN) or not re.search(rf"\b{OPEN}\b", unit):
        return unit
    return base if unit == OPEN else quotient(unit.removesuffix(f"/{OPEN}"), base)


def quotient(above: str, below: str) -> str:
    """``N m`` over ``rad/s`` is ``N m s/rad``; a unit over itself is ``1``."""
    if above == below:
        return "1"
    (top, _, under), (low, _, lift) = (text.partition("/") for text in (above, below))
    top, under = (" ".join(part for part in pair if part) for pair in ((top, _bare(lift)), (_bare(under), low)))
    return f"{top}/({under})" if " " in under else f"{top}/{under}"


def _bare(text: str) -> str:
    return text.removeprefix("(").removesuffix(")")
