"""Compliant joints that close loops, in the rows of a step: what their springs and dampers take of its impulses.

Let r be the impulses that the unknowns miss without these joints, u their new rates. The joints' impulses λ act along
``C_kᵀ`` and depend on u through the gaps at the end of the step, ``Σ λ = −d(u)`` (:mod:`shadowfit.dynamics.loop_law`).
``r − C_kᵀ λ(u)`` would multiply noise of the states by the stiffness. So the joints act as on what they hold, at the
rates φ that the step would have if nothing were missing:

    B (φ − u) + r − C_kᵀ λ = 0,      Σ λ = −d − C_{k+1} (φ − u),      ρ = r − C_kᵀ λ = B (u − φ)

ρ is zero exactly where the stepper goes, for any positive definite B, and tends to ``r − C_kᵀ λ(u)`` where the joint is
soft. Where it is stiff, ρ along the motions Z that leave the loops closed is that of rigid loops, ``Zᵀ r``, and across
these it is the rate at which they open, as an impulse. B only says which impulse that is, and must not move with the
parameters: a fit could else lower the cost by shrinking inertias. It is the inertia of the coordinates with the
reference mass of the bodies (:mod:`reference_mass`) and the shafts of the start values. B and C are held in
derivatives, to which ρ times their changes would add. In other words ``ρ = N (r − C_kᵀ λ(u))`` with
``N = 1 − C_kᵀ (Σ + C_{k+1} B⁻¹ C_kᵀ)⁻¹ C_{k+1} B⁻¹``.

Like dry friction in fits with deferred correction, which are after the machine's own parameters rather than the
stepper's, d is then a mean over the step; C_{k+1} has its slope.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import loops, rows
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.dynamics.loop_law import LoopLaw, loop_law
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.residuals.closure import all_loops, independence
from shadowfit.estimation.residuals.equations import Friction
from shadowfit.estimation.residuals.joint_transition import on_axes
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree


class LoopSprings(PyTree):
    """Compliant rows in a step."""

    along: Float[Array, "n y"]
    """``C_kᵀ``, along the unknowns."""
    across: Float[Array, "y n"]
    """``C_{k+1} B⁻¹``."""
    softness: Float[Array, "y"]
    """Σ,"""
    firmness: Float[Array, "y"]
    """of which this is what redundant rows need beside their own."""
    inverse: Float[Array, "y y"]
    """Of ``Σ + C_{k+1} B⁻¹ C_kᵀ``."""

    @classmethod
    def at(
        cls,
        law: LoopLaw,
        along: Float[Array, "n y"],
        ahead: Float[Array, "y n"],
        inertia: Float[Array, "n n"],
        friction: Friction,
    ) -> LoopSprings:
        """From the compliant rows ``C_k``, transposed, and ``C_{k+1}``, and B."""
        if friction == "mean":
            ahead = law.mean_slope()[:, None] * ahead
        across = small_solve(inertia, ahead.T, definite=True).T
        mobility = across @ along
        soft = law.softness(mobility)
        inverse = small_solve(mobility + jnp.diag(soft), jnp.eye(len(soft)))
        return jax.lax.stop_gradient(cls(along, across, soft, soft - law.sigma, inverse))

    def more(self, defect: Float[Array, "y *x"], missing: Float[Array, "n *x"]) -> Float[Array, "y *x"]:
        """Change of λ from what is left of ``Σ λ + d`` and of the missing impulses, or of their derivatives."""
        return self.inverse @ (self.across @ missing - defect)

    @property
    def through(self) -> Float[Array, "n n"]:
        """N, which makes ρ of ``r − C_kᵀ λ(u)``."""
        return jnp.eye(len(self.along)) - self.along @ self.inverse @ self.across

    def beside_contacts(self) -> LoopSprings:
        """The same without N: λ(u) in place of λ(φ), for what acts beside these joints (contacts)."""
        return LoopSprings(self.along, 0.0 * self.across, self.softness, self.firmness, jnp.diag(1.0 / self.softness))


def springs_of(
    tree: Tree,
    independent: tuple[int, ...],
    machine: Parametrised,
    poses: Pose,
    timestep: Float[Array, ""],
    friction: Friction,
) -> LoopSprings:
    """Compliant rows of the step between three nodes, along the independent coordinates."""
    mechanism = machine.mechanism()
    law = loop_law(tree, loops.closing(tree, mechanism), timestep)
    now, after = (all_loops(tree, mechanism, poses[i]) for i in (1, 2))
    moving, ahead = (independence(independent, each.rows[law.rigid_places]).moving for each in (now, after))
    inertia = moving.T @ reference_inertia(tree, machine, now.twists) @ moving
    along, opening = now.rows[law.compliant_places] @ moving, after.rows[law.compliant_places] @ ahead
    return LoopSprings.at(law.part(law.compliant_places), along.T, opening, inertia, friction)


def defect(
    tree: Tree,
    mechanism: Mechanism,
    bodies: tuple[Pose, Pose, Pose],
    impulses: Float[Array, "y"],
    timestep: Float[Array, ""],
    friction: Friction,
) -> Float[Array, "y"]:
    """``Σ λ + d`` [m/s, rad/s] of the compliant rows, from the bodies at three times."""
    closers = loops.closing(tree, mechanism)
    law = loop_law(tree, closers, timestep)
    places = law.compliant_places
    before, now, after = (gap_values(closers, pose)[places] for pose in bodies)
    own = law.part(places)
    open_by = own.defect if friction == "stepper" else own.mean_defect
    return own.sigma * impulses + open_by(before, now, after) / timestep


def reference_inertia(tree: Tree, machine: Parametrised, twists: Float[Array, "bodies 6 d"]) -> Float[Array, "d d"]:
    """B of all coordinates."""
    links, start = loops.opened(tree, machine.start)
    elements = assemble(start)
    shafts = on_axes(links, elements, [rows.axis_inertia(group) for group in elements.groups])
    return jnp.einsum("bid,bi,bie->de", twists, machine.reference(), twists) + jnp.diag(shafts)
