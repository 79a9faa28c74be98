"""Rows of joints that close loops: some hold their gap shut, those of compliant joints are springs and dampers.

With g₋, g and g₊ the gaps a step ago, now and at the end of the step, impulses λ along compliant rows satisfy

    g₊ − g + Υ (3 g + g₋) + h Σ λ = 0,        Σ = (4/h²) ε Υ,    Υ = 1/(1 + 4τ/h)

as they do with poses of bodies as unknowns (:mod:`exact`): the force ``λ/h`` is ``−(ḡ + τ ġ)/ε``, ḡ the mean of
``g₊ + 2 g + g₋``. Being implicit in the end of the step it may be as stiff as one likes; with ``ε = 0`` and no damping
it would be the rigid row, ``g₊ = 0``.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import rows
from shadowfit.dynamics.elements import Elements
from shadowfit.dynamics.tree import Tree
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree, field

# Compliance of rigid rows, relative to their own mobility: it shares the load among redundant rows.
SOFT = 1e-7
# The same for compliant rows whose own compliance is far less than this.
FIRM = 1e-9
# Rows whose mobility is less than this, relative to all, hold nothing and carry nothing.
IDLE = 1e-10


class LoopLaw(PyTree):
    """The rows of all joints that close loops, in a step of given length."""

    compliant: tuple[bool, ...] = field(static=True)
    """Which rows are those of compliant joints."""
    sigma: Float[Array, "m"]
    """Σ [1/kg, 1/(kg m²)]; zero for rigid rows."""
    upsilon: Float[Array, "m"]

    def part(self, places: np.ndarray) -> LoopLaw:
        """Some of the rows."""
        return LoopLaw(tuple(self.compliant[i] for i in places), self.sigma[places], self.upsilon[places])

    @property
    def compliant_places(self) -> np.ndarray:
        """Places of the compliant rows."""
        return np.flatnonzero(self.compliant)

    @property
    def rigid_places(self) -> np.ndarray:
        """Places of the rigid rows."""
        return np.flatnonzero(~np.array(self.compliant, bool))

    def defect(self, before: Float[Array, "m"], now: Float[Array, "m"], after: Float[Array, "m"]) -> Float[Array, "m"]:
        """What must be ``−h Σ λ`` [m, rad], from the gaps of three times."""
        return after + jnp.where(np.array(self.compliant, bool), self.upsilon * (3.0 * now + before) - now, 0.0)

    def mean_defect(
        self, before: Float[Array, "m"], now: Float[Array, "m"], after: Float[Array, "m"]
    ) -> Float[Array, "m"]:
        """The same of compliant rows with means of g and ġ over the step, the hat from ``−h`` to ``h``.

        The stepper's τ ġ is that of the second half of the step, which is stable, and half a step late.
        """
        resting = self.upsilon * (after + 10.0 * now + before) / 3.0
        return resting + 0.5 * (1.0 - self.upsilon) * (after - before)

    def mean_slope(self) -> Float[Array, "m"]:
        """Change of that by the last gap, where the defect itself changes by as much as the gap does."""
        return self.upsilon / 3.0 + 0.5 * (1.0 - self.upsilon)

    def softness(self, mobility: Float[Array, "m m"]) -> Float[Array, "m"]:
        """Σ, with as much as makes it and the rows' mobility ``C M⁻¹ Cᵀ`` regular: rows may be redundant."""
        diagonal = jnp.diag(mobility)
        mean = jnp.sum(diagonal) / max(diagonal.shape[0], 1)
        # Rounding errors of a gap that nothing can close would else be large impulses.
        idle = IDLE**2 / (IDLE**2 + (diagonal / mean) ** 2)
        # Next to nothing beside a compliance that is seen.
        trace = FIRM * diagonal + FIRM**2 * mean
        firm = trace**2 / (self.sigma + trace)
        return self.sigma + mean * idle + jnp.where(np.array(self.compliant, bool), firm, SOFT * diagonal)


def loop_law(tree: Tree, closers: Elements, timestep: Float[Array, ""]) -> LoopLaw:
    """``closers`` are the joints that close loops (:func:`loops.closing`)."""
    compliant: list[bool] = []
    sigma: list[Array] = [jnp.zeros(0)]
    upsilon: list[Array] = [jnp.zeros(0)]
    for group in closers.groups:
        soft = np.array([tree.loops[joint] in tree.compliant for joint in group.joints])
        shape = (group.size, group.gap_rows)
        compliant += [bool(one) for one in np.broadcast_to(soft[:, None], shape).ravel()]
        relaxed = rows.relaxation(group, timestep)
        sigma.append(jnp.where(soft[:, None], relaxed.sigma, 0.0).ravel())
        upsilon.append(jnp.broadcast_to(relaxed.upsilon, shape).ravel())
    return LoopLaw(tuple(compliant), jnp.concatenate(sigma), jnp.concatenate(upsilon))
