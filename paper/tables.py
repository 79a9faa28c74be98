"""Numbers as people read them."""

from __future__ import annotations

import math


def with_uncertainty(value: float | None, std: float | None) -> str:
    """``0.003916(2)``: the standard deviation in units of the last digit, as in the paper's tables.

    A value below its standard deviation is written ``0(0.0006)``, with the standard deviation itself, as the paper does
    for a value of zero; one on its bound has none.
    """
    if value is None:
        return "–"
    if std is None or not math.isfinite(std) or std <= 0.0:
        return f"{value:.3g}"
    if abs(value) < 0.5 * std:
        return f"0({std:.1g})"
    place = -math.floor(math.log10(std))
    digit = round(std * 10.0**place)
    if digit == 10:
        digit, place = 1, place - 1
    if place < 0:
        return f"{value:.0f}({std:.0f})"
    return f"{value:.{place}f}({digit})"


def percent(value: float | None, truth: float) -> str:
    """Relative error of a value, as ``+1.2 %``."""
    if value is None or truth == 0.0:
        return "–"
    error = 100.0 * (value / truth - 1.0)
    return f"{error:+.1f} %" if abs(error) < 99.95 else f"{error:+.0f} %"
