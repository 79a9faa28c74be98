"""Shafts of motors that turn with more than one joint: coupled transmissions, as in the wrists of arms.

A motor whose gear train runs through another joint turns when that one does. Its speed is a sum over the joints,

    s = Σ_j ratio_j q̇_j,        τ_j = ratio_j (−J ṡ − b s − c sign s),

and its friction and inertia act on all of them. With ratios of one at its own joint, friction and inertia are those on
the joint's side of the gear, as usual for robots.
"""

from __future__ import annotations

from typing import Any

from shadowfit.errors import MechanismError
from shadowfit.mechanism.leaves import Parts, number
from shadowfit.pytrees import PyTree


class Turns(PyTree):
    """Turns of a shaft for one of a joint [1], or per metre of a slider [rad/m]."""

    ratio: Any = number("1 | rad/m", tunable=False)


class Shaft(PyTree):
    """Friction and inertia of a shaft that several joints turn."""

    ratios: Parts
    """Joint → :class:`Turns`."""
    viscous: Any = number("N m s/rad", default=0.0, lower=0.0)
    coulomb: Any = number("N m", default=0.0, lower=0.0)
    shaft_inertia: Any = number("kg m²", default=0.0, lower=0.0)

    def check(self, name: str) -> None:
        """Raise unless it turns with a joint."""
        if len(self.ratios) == 0:
            raise MechanismError(f"shaft {name!r} turns with no joint; give the ratio of at least one")
