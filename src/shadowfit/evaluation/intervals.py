"""Intervals as text, with as many digits as it takes to see how wide they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# Digits of the width of an interval that its ends show, and the most digits of a number.
DIGITS_OF_WIDTH, MOST_DIGITS = 2, 12


def interval(row: Mapping[str, Any]) -> str:
    """The two ends of a parameter's interval; an end that is not known is left out."""
    ends = row.get("interval") or ()
    known = [end for end in ends if end is not None]
    width = max(known) - min(known) if len(known) == 2 else 0.0
    return " … ".join("" if end is None else rounded(end, width) for end in ends)


def rounded(value: float, width: float) -> str:
    """A number with two digits of a width, four of its own at least: ``31.2`` and ``1e-5`` give ``31.200000``."""
    if value == 0.0 or not (math.isfinite(value) and width > 0.0):
        return f"{value:.4g}"
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(width)) + DIGITS_OF_WIDTH
    return f"{value:#.{min(max(digits, 4), MOST_DIGITS)}g}".rstrip(".")
