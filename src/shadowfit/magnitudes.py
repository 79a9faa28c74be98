"""Which numbers a machine, a recording or a wish can have: those whose products and squares are numbers, too."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST = 1e50
"""No quantity of a machine is larger, in whatever unit; the square of a product of two such numbers is finite."""
SMALLEST = 1.0 / LARGEST
"""No standard deviation, weight or step is smaller."""


def is_usable(value: Any) -> bool:
    """Whether all numbers are finite and not too large."""
    return bool(np.all(np.abs(np.asarray(value, float)) < LARGEST))


def is_positive(value: Any) -> bool:
    """Whether all numbers are above zero, by more than rounding, and not too large."""
    return is_usable(value) and bool(np.all(np.asarray(value, float) > SMALLEST))
