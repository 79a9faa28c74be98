"""Rounds that lead to a fixed point, brought there faster (Anderson's mixing with one earlier round).

What a fit holds while it moves (errors of the discretisation, speeds behind the widths of dry friction) is found
anew at its result, and the fit goes on. Near the fixed point each round multiplies what is left by some factor, on
smooth motions by next to nothing, where dry friction reverses by −0.7: it overshoots. Two rounds tell the factor. With
the change ``f_k`` that round k makes,

    next = G_k − γ (G_k − G_{k−1}),        γ = ⟨f_k, f_k − f_{k−1}⟩/‖f_k − f_{k−1}‖²

for what was found anew, ``G_k``, is where a linear map of one factor has its fixed point. Changes are measured by what
they do to the residuals, which is what a fit sees of them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.residuals.stopping import Stopping
from shadowfit.trees import map_leaves

# Largest |γ|: from changes that are nearly the same nothing follows about where they end.
LARGEST = 2.0


def share_of_before(now: Float[np.ndarray, " n"], before: Float[np.ndarray, " n"]) -> float:
    """γ."""
    difference = now - before
    squares = float(difference @ difference)
    return float(np.clip(now @ difference / squares, -LARGEST, LARGEST)) if squares > 0.0 else 0.0


def mixed(now: Point, before: Point, share: float) -> Point:
    """The point with ``1 − γ`` of its own discretisation errors and speeds, and γ of those of another one."""

    def between(new: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (1.0 - share) * new + share * other

    truncation, stopping = now.truncation, now.stopping
    if truncation is not None and before.truncation is not None:
        truncation = map_leaves(between, truncation, before.truncation)
    if stopping is not None and before.stopping is not None:
        stopping = tuple(_stopping(own, other, share) for own, other in zip(stopping, before.stopping, strict=True))
    return dataclasses.replace(now, truncation=truncation, stopping=stopping)


def _stopping(new: Stopping, other: Stopping, share: float) -> Stopping:
    """Speeds are positive: their geometric mean."""
    positive = (new.speeds > 0.0) & (other.speeds > 0.0)
    ratio = np.divide(other.speeds, new.speeds, out=np.ones_like(new.speeds), where=positive)
    return Stopping(new.speeds * ratio**share, new.most, new.open)
