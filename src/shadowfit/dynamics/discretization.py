"""The two discretisations, where they differ in a few numbers; their equations are :mod:`spook` and :mod:`exact`."""

from __future__ import annotations

from typing import Literal

from shadowfit.records import record

Discretization = Literal["spook", "exact"]


@record(frozen=True)
class Scheme:
    """Where in a time step a discretisation takes what."""

    affine: bool
    """Gaps and laws are linearised at the start of the step, so that the balance is affine in the new velocity."""
    gyroscopic: tuple[float, float]
    """Shares of the old and of the new angular velocity in the gyroscopic torque."""
    input_shift: float
    """Start of the interval over which an input acts, in steps from the step's own time."""
    staggered: bool
    """Velocities belong to the middle between two configurations, not to the time of one."""


SCHEMES: dict[str, Scheme] = {
    "spook": Scheme(affine=True, gyroscopic=(1.0, 0.0), input_shift=0.0, staggered=False),
    "exact": Scheme(affine=False, gyroscopic=(0.5, 0.5), input_shift=-0.5, staggered=True),
}
