"""Draws of normal variables of which only some values are possible.

Slices of ellipses (Murray, Adams and MacKay, Elliptical slice sampling, 2010): of a possible x and a fresh draw ν of
the whole normal distribution, ``x cos θ + ν sin θ`` is such a draw again for every θ, and among those that are possible
one is taken. Nothing has to be tuned, and nothing but whether a point is possible has to be known.

Where little is possible (the corner of a box, the edge of a cone) a crowd of points goes there in stages, as in subset
simulation (Au and Beck, Estimation of small failure probabilities in high dimensions, 2001): each stage allows no more
than what half of the points keep to, the others begin again where one of these is, and all move on from there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.errors import ShadowfitError

# Points that go together, if fewer are asked for.
CROWD = 256
# Moves of each in a stage, and in the last one, after which next to nothing is left of where it began.
FEW, MANY = 4, 30
# Stages, each of which leaves half of what was possible, and halvings of an arc: far more than are needed.
STAGES, HALVINGS = 200, 200

# How far points lie outside of what is possible, in any unit; at most zero inside.
Excess = Callable[[Float[np.ndarray, "n k"]], Float[np.ndarray, " n"]]


class ImpossibleError(ShadowfitError):
    """Nothing is possible where it was looked for."""


def truncated_normal(excess: Excess, size: int, count: int, rng: np.random.Generator) -> Float[np.ndarray, "n k"]:
    """Draws of independent standard normal variables, so many at a time, where their excess is not positive.

    Raises:
        ImpossibleError: there is next to no such place.
    """
    points = rng.standard_normal((max(count, CROWD), size))
    for _ in range(STAGES):
        outside = excess(points)
        level = max(float(np.median(outside)), 0.0)
        kept = outside <= level
        if level == 0.0 and kept.all():
            return points[:count]
        again = rng.choice(np.flatnonzero(kept), len(points))
        points = np.where(kept[:, None], points, points[again])
        for _ in range(MANY if level == 0.0 else FEW):
            points = _moved(points, excess, level, rng)
    raise ImpossibleError("next to no values within the bounds, with bodies that can be, are near the estimate")


def _moved(
    points: Float[np.ndarray, "n k"], excess: Excess, level: float, rng: np.random.Generator
) -> Float[np.ndarray, "n k"]:
    """Each point somewhere else on an ellipse of its own, where the excess is not above a level."""
    others, moved = rng.standard_normal(points.shape), points.copy()
    angle = rng.uniform(0.0, 2.0 * np.pi, len(points))
    low, high = angle - 2.0 * np.pi, angle.copy()
    left: Int[np.ndarray, " m"] = np.arange(len(points))
    for _ in range(HALVINGS):
        turned = angle[left, None]
        tried = points[left] * np.cos(turned) + others[left] * np.sin(turned)
        inside = excess(tried) <= level
        moved[left[inside]] = tried[inside]
        left = left[~inside]
        if not len(left):
            break
        before = angle[left] < 0.0
        low[left[before]], high[left[~before]] = angle[left[before]], angle[left[~before]]
        angle[left] = rng.uniform(low[left], high[left])
    return moved
