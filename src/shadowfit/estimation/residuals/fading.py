"""Over what speeds dry friction fades near rest, as a fit knows it from the motion of its last iterate.

The width w of dry friction (:mod:`shadowfit.dynamics.sliding`) depends on the mobility of the axis, and so on poses and
inertias. Rows are not differentiated by that. Were it not held while a fit moves, gradients would not be those of the
cost: where an inertia is hardly known the optimiser would meet a slope that it does not see, and refuse one step after
another.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.pytrees import PyTree


class Fading(PyTree):
    """What the widths follow from, along one recording or a part of it."""

    mobility: Float[Array, "steps d"] | None = None
    """Change of each coordinate's speed by an impulse along it [1/(kg m²), 1/kg]; None: that of the present motion."""
    most: Float[Array, "d 2"] | None = None
    """Largest widths of each coordinate [rad/s, m/s], by :func:`sliding.widest`; None: no limit."""

    def between(self, begin: int, end: int) -> Fading:
        """Some of the steps."""
        return Fading(None if self.mobility is None else self.mobility[begin:end], self.most)


PRESENT = Fading()
