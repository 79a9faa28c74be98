"""What a simulation returns."""

from __future__ import annotations

from collections.abc import Mapping

from shadowfit.arrays import Array, Float, Int
from shadowfit.dynamics.state import State
from shadowfit.pytrees import PyTree


class Diagnostics(PyTree):
    """What a simulation can report besides the states; the first axis is time.

    ``multipliers`` are the impulses of the step that *ends* at each time (gap rows [N s, N m s], axis, tangent), by
    group of joints; zero at the first time. Energies [J] and the largest gap [m or rad] are those at each time.
    """

    multipliers: tuple[Float[Array, "t n r"], ...]
    kinetic: Float[Array, "t"]
    potential: Float[Array, "t"]
    gap: Float[Array, "t"]


class Trajectory(PyTree):
    """Times [s], states, and the sensors' readings along a simulation.

    With ``exact``, ``states.velocity`` are leapfrog velocities, half a step before their time; readings use
    velocities at their time.
    """

    time: Float[Array, "t"]
    states: State
    readings: Mapping[str, Float[Array, "t *d"]]
    status: Int[Array, "t"]
    diagnostics: Diagnostics | None

    def __len__(self) -> int:
        return int(self.time.shape[0])

    def __repr__(self) -> str:
        return f"<simulation: {len(self)} times, readings of {', '.join(self.readings) or 'no sensor'}>"
