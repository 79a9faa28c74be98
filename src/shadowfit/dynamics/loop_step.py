"""Joints that close loops, in a step of rigid joints: what they add to Newton's equations.

With λ the impulses along the rows of their gaps c, the missing impulses of the coordinates are ``τ(δ) − C_kᵀ λ``, and
the step ends where ``c(q_{k+1}) = 0``, or for compliant joints where :mod:`loop_law` says. Both are solved together,

    [∂τ/∂δ  −C_kᵀ ] [Δ]   [ −τ ]
    [C_{k+1}   σ  ] [Λ] = [ −c − σ λ ]

by elimination of Δ. The compliance σ of rigid rows, a ten millionth of their own mobility, is there for redundant ones.
"""

from __future__ import annotations

from collections.abc import Callable

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, loops
from shadowfit.dynamics.composites import VelocityMaps, about_origin, coordinate_bodies, dot, hanging, held_by
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.dynamics.loop_law import LoopLaw, loop_law
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import Hung, Tree, velocities_by
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree

Twists = list[Float[Array, "6"]]


class Rows(PyTree):
    """Newton's equations of the loops."""

    own: LoopLaw
    gap: Float[Array, "m"]
    """c at the end of the step, and of compliant rows what takes its place."""
    after: Float[Array, "m d"]
    """C there."""
    along: Float[Array, "d m"]
    """Change of the missing impulses by λ, ``−C_kᵀ`` and what friction does with it."""

    def solved(
        self, solve: Callable[[Array], Array], right: Float[Array, "d"], reaction: Float[Array, "m"]
    ) -> tuple[Float[Array, "d"], Float[Array, "m"]]:
        """Δ and Λ; ``solve`` inverts ∂τ/∂δ."""
        solution = solve(jnp.concatenate([right[:, None], self.along], axis=1))
        free, by_reaction = solution[:, 0], solution[:, 1:]
        mobility = -self.after @ by_reaction
        soft = self.own.softness(mobility)
        left = -self.gap - soft * reaction - self.after @ free
        more = small_solve(mobility + jnp.diag(soft), left[:, None])[:, 0]
        return free - by_reaction @ more, more


class Acting(PyTree):
    """What joints that close loops do to the bodies in a step."""

    closers: Elements
    own: LoopLaw
    pose: Pose
    axes: loops.AxisRows
    on_bodies: Float[Array, "bodies 6"]
    by_reaction: Float[Array, "bodies 6 m"]

    def rows(self, tree: Tree, left: Twists, twists: Twists, around: tuple[Pose, Pose]) -> Rows:
        """``left`` turn wrenches into missing impulses of the coordinates, ``twists`` are those of changes of δ.

        ``around`` are the poses a step ago and at the end of the step.
        """
        before, after = around
        columns = [self._along(tree, left, self.by_reaction[..., i]) for i in range(self.by_reaction.shape[-1])]
        moving = velocities_by(tree, twists, after.position)
        gap, slope = gap_values(self.closers, after), loops.jacobian(self.closers, after, moving)
        if tree.compliant:
            gap = self.own.defect(gap_values(self.closers, before), gap_values(self.closers, self.pose), gap)
        return Rows(self.own, gap, slope, -jnp.stack(columns, axis=1))

    def by_laws(self, tree: Tree, left: Twists, twists: Twists, maps: VelocityMaps) -> Float[Array, "d d"]:
        """h times the change of the impulses along the coordinates by δ, through laws of these joints' axes."""
        total = jnp.zeros((tree.size, tree.size))
        above, bodies = held_by(tree), coordinate_bodies(tree)
        touched = {body for group in self.closers.groups for side in (group.a, group.b) for body in side.body_indices}
        for axis in range(self.axes.slope.shape[0]):
            row = self.axes.row[axis].reshape(-1, 6)
            speeds = [jnp.zeros(())] * tree.size
            for body in touched & set(range(len(tree.links))):
                speed_row = maps.row(body, row[body])
                for i in range(tree.size):
                    if bodies[i] in above[body]:
                        speeds[i] = speeds[i] + dot(speed_row, twists[i])
            total = total + self.axes.slope[axis] * jnp.outer(self._along(tree, left, row), jnp.stack(speeds))
        return total

    def _along(self, tree: Tree, left: Twists, wrenches: Float[Array, "bodies 6"]) -> Float[Array, "d"]:
        """Impulses on the bodies, along the coordinates."""
        held = hanging(tree, about_origin(wrenches, self.pose.position))
        return jnp.stack([dot(s, held[b]) for s, b in zip(left, coordinate_bodies(tree), strict=True)])

    def among(
        self, tree: Tree, mechanism: Mechanism, others: Elements, impulses_of_others: list[Float[Array, "n r"]]
    ) -> list[Float[Array, "n r"]]:
        """Impulses of all joints by groups of the whole mechanism; ``own`` are those of all other joints."""
        kept = [i for i in range(len(mechanism.joints)) if i not in tree.loops]
        by_joint = {}
        for elements, impulses, joints in (
            (others, impulses_of_others, kept),
            (self.closers, self.axes.by_group, tree.loops),
        ):
            for group, table in zip(elements.groups, impulses, strict=True):
                by_joint.update({joints[joint]: table[member] for member, joint in enumerate(group.joints)})
        return [jnp.stack([by_joint[joint] for joint in group.joints]) for group in assemble(mechanism).groups]


def acting(
    tree: Tree, mechanism: Mechanism, now: Hung, moving: Moving, reaction: Float[Array, "m"], response: Array
) -> Acting:
    """At given impulses λ; ``response`` is how impulses along the coordinates change their rates."""
    closers = loops.closing(tree, mechanism)
    mobility = own_mobility(tree, mechanism, now, response)

    def held(reaction: Array) -> tuple[Array, loops.AxisRows]:
        axes = loops.along_axes(closers, moving, reaction, balance.Turning(mobility))
        return loops.on_bodies(closers, now.pose, reaction, axes), axes

    by_reaction, _ = jax.jacfwd(held, has_aux=True)(reaction)
    impulses, axes = held(reaction)
    return Acting(closers, loop_law(tree, closers, moving.timestep), now.pose, axes, impulses, by_reaction)


def own_mobility(tree: Tree, mechanism: Mechanism, now: Hung, response: Float[Array, "d d"]) -> Float[Array, "n"]:
    """Changes of the speeds of the loops' own axes by impulses along them."""
    by_coordinates = velocities_by(tree, now.twists, now.pose.position).reshape(-1, tree.size)
    return loops.axis_mobility(loops.closing(tree, mechanism), now.pose, by_coordinates @ response @ by_coordinates.T)


def response(
    tree: Tree, mechanism: Mechanism, now: Hung, mass: Float[Array, "d d"], timestep: Float[Array, ""]
) -> Float[Array, "d d"]:
    """Changes of the rates by impulses along the coordinates of the closed mechanism."""
    closers, moving = loops.closing(tree, mechanism), velocities_by(tree, now.twists, now.pose.position)
    flat = moving.reshape(-1, tree.size)
    whole = mass + flat.T @ loops.shafts(closers, now.pose) @ flat
    return loops.response(whole, loops.jacobian(closers, now.pose, moving), loop_law(tree, closers, timestep))
