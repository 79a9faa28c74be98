"""The free parameters of a recording as arrays, and a mechanism that holds them.

Numbers and rotations are one array each, :class:`Values`. Increments of all of them stand in one vector, in an order
that :class:`Layout` knows; ``χ ⊞ δ`` adds to numbers and turns rotations in their own frame.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import assemble
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree, field
from shadowfit.records import record


class Values(PyTree):
    """Values of parameters."""

    numbers: Float[Array | np.ndarray, "numbers"]
    turns: Float[Array | np.ndarray, "turns 4"]
    """Rotations, as quaternions."""


@record(frozen=True)
class Layout:
    """Which parameters are free, where their increments stand, and what they act on."""

    numbers: tuple[str, ...]
    """Names of the free numbers."""
    turns: tuple[str, ...]
    """Names of the free rotations."""
    order: tuple[int, ...]
    """Place of each increment (numbers first, then rotations) among the parameters of a recording."""
    inputs: tuple[int, ...]
    """Parameters that act through the inputs (gain, offset, delay)."""
    sensors: tuple[int, ...] = ()
    """Parameters that the sensors' readings depend on."""

    @property
    def size(self) -> int:
        """Number of increments."""
        return len(self.order)

    def write(self, mechanism: Mechanism, values: Values, increments: Float[Array, "p"]) -> Mechanism:
        """The mechanism with the parameters at their values plus increments."""
        ordered = increments[np.array(self.order, int)]
        count = len(self.numbers)
        numbers = values.numbers + ordered[:count]
        turns = [
            rotations.plus_local(values.turns[i], ordered[count + 3 * i : count + 3 * i + 3])
            for i in range(len(self.turns))
        ]
        return mechanism.write(dict(zip((*self.numbers, *self.turns), [*numbers, *turns], strict=True)))


class Parametrised(PyTree):
    """A mechanism with free parameters, and their values."""

    layout: Layout = field(static=True)
    start: Mechanism
    """The mechanism that the values are written into; its masses weigh the residuals."""
    values: Values

    def moved(self, increments: Float[Array, "p"]) -> Mechanism:
        """The mechanism at the values plus increments."""
        return self.layout.write(self.start, self.values, increments)

    def mechanism(self) -> Mechanism:
        """The mechanism at the values."""
        return self.moved(jnp.zeros(self.layout.size))

    def reference(self) -> Float[Array, "bodies 6"]:
        """M₀ (:mod:`reference_mass`), which does not move with the parameters."""
        return reference_mass(assemble(self.start).bodies)
