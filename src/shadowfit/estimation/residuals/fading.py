"""Over what speeds dry friction fades near rest, as a fit knows it from the motion of its last iterate.

The width w of dry friction (:mod:`shadowfit.dynamics.sliding`) follows from the speed ``d L`` that friction takes off
an axis in a step, and so from poses, inertias and friction itself. Rows are not differentiated by the first two. Were
they not held while a fit moves, gradients would not be those of the cost: where an inertia is hardly known the
optimiser would meet a slope that it does not see, and refuse one step after another. Friction is held with them: d and
L of a heavier machine with as much more friction make the same width, and a fit that held d alone would be told how
large both are, by a width that is no property of the machine.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.pytrees import PyTree
from shadowfit.records import record

# Marks what is not held.
FOLLOWS = -1.0


@record(frozen=True)
class Widths:
    """What widths follow from in some steps; held speeds that are negative are those of the present motion."""

    axes: Float[np.ndarray, "d steps"]
    shafts: Float[np.ndarray, "s steps"]
    most: Float[np.ndarray, "d 2"]


class Fading(PyTree):
    """What widths follow from where that is held, along one recording or a part of it."""

    axes: Float[Array, "steps d"] | None = None
    """Speed from which friction stops each coordinate within a step [rad/s, m/s]; None: by the present motion."""
    shafts: Float[Array, "steps s"] | None = None
    """The same of shafts that several joints turn."""
    most: Float[Array, "d 2"] | None = None
    """Largest widths of each coordinate [rad/s, m/s], by :func:`sliding.widest`; None: no limit."""

    def between(self, begin: int, end: int) -> Fading:
        """Some of the steps."""
        axes, shafts = (None if held is None else held[begin:end] for held in (self.axes, self.shafts))
        return Fading(axes, shafts, self.most)

    def widths(self, coordinates: int, shafts: int, steps: int) -> Widths:
        """The same as arrays, of as many steps; the last one repeated."""
        most = np.full((coordinates, 2), np.inf) if self.most is None else np.asarray(self.most)
        return Widths(_along(self.axes, coordinates, steps), _along(self.shafts, shafts, steps), most)


def _along(held: Float[Array, "k n"] | None, count: int, steps: int) -> Float[np.ndarray, "n steps"]:
    """Held speeds, the last of them repeated."""
    if held is None:
        return np.full((count, steps), FOLLOWS)
    return np.asarray(held)[np.minimum(np.arange(steps), len(held) - 1)].T


PRESENT = Fading()
