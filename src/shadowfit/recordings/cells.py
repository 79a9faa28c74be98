"""Cells of text that should be numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shadowfit.errors import RecordingError

MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "nat", "none", "null", "missing"})
"""Ways to write a missing sample, in any case."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)


def numbers(cells: Sequence[str], place: Callable[[int], str]) -> NDArray[np.float64] | None:
    """Numbers of a column of text, shape (n,), NaN where a sample is missing; None for a column of words.

    Args:
        cells: the column's cells as text.
        place: index of a cell → where it stands, for messages.

    Raises:
        RecordingError: some cells are numbers and some are words.
    """
    values = [_number(cell) for cell in cells]
    if None not in values:
        return np.array(values, dtype=np.float64)
    if all(value is None or math.isnan(value) for value in values):
        return None
    row = values.index(None)
    cell = cells[row].strip()
    comma = _DECIMAL_COMMA.fullmatch(cell) is not None
    hint = "use a decimal point" if comma else "leave missing samples empty or write nan"
    shown = cell if len(cell) <= 40 else cell[:37] + "..."
    raise RecordingError(f"{place(row)}: {shown!r} is not a number; {hint}")


def is_number(cell: str) -> bool:
    """Whether a cell holds a number; a missing sample is none."""
    value = _number(cell)
    return value is not None and not math.isnan(value)


def _number(cell: str) -> float | None:
    """The number in a cell, NaN for a missing sample, None for anything else."""
    try:
        # Python reads 1_000 as a number; in a recording it is a slip.
        return float(cell) if "_" not in cell else None
    except ValueError:
        return math.nan if cell.strip().lower() in MISSING else None
