"""Joints that close loops of a tree: their gaps as functions of the tree's coordinates, and what they do to its bodies.

The gaps c(q) [m, rad] of the m rows of these joints must be zero, but for those of compliant joints (:mod:`loop_law`).
With ``C = ∂c/∂q`` their impulses λ act along ``Cᵀ``. Rows are often redundant (a planar linkage of spatial hinges
closes its loop with five rows, of which two count), so that nothing here takes C to have full rank.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, rows
from shadowfit.dynamics.elements import Elements, JointGroup, assemble
from shadowfit.dynamics.kinematics import gap_jacobian
from shadowfit.dynamics.loop_law import LoopLaw
from shadowfit.dynamics.state import Moving, with_world
from shadowfit.dynamics.tree import Tree
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.leaves import Parts
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree


def opened(tree: Tree, mechanism: Mechanism) -> tuple[Tree, Mechanism]:
    """The tree and its mechanism without the joints that close loops."""
    if not tree.loops:
        return tree, mechanism
    kept = [i for i in range(len(mechanism.joints)) if i not in tree.loops]
    links = tuple(
        link if link.joint is None else dataclasses.replace(link, joint=kept.index(link.joint)) for link in tree.links
    )
    return Tree(links), _with_joints(mechanism, kept)


def closing(tree: Tree, mechanism: Mechanism) -> Elements:
    """The bodies with the joints that close loops, and no others."""
    return assemble(_with_joints(mechanism, list(tree.loops)))


def _with_joints(mechanism: Mechanism, kept: list[int]) -> Mechanism:
    names, joints = mechanism.joints.names, mechanism.joints.values
    # Not built anew: nothing else may refer to joints by name here, and numbers may be traced.
    some = Parts({names[i]: joints[i] for i in kept})
    return mechanism.having(joints=some, contacts=Parts({}))


def row_count(tree: Tree, mechanism: Mechanism) -> int:
    """m."""
    return sum(mechanism.joints.values[i].kind.row_count() for i in tree.loops)


def row_joints(tree: Tree, mechanism: Mechanism) -> tuple[str, ...]:
    """Name of the joint that each row belongs to."""
    names = [mechanism.joints.names[i] for i in tree.loops]
    return tuple(
        names[joint]
        for group in closing(tree, mechanism).groups
        for joint in group.joints
        for _ in range(group.gap_rows)
    )


def compliant_rows(tree: Tree, mechanism: Mechanism) -> tuple[bool, ...]:
    """Whether each row is one of a compliant joint."""
    compliant = [mechanism.joints.names[i] for i in tree.compliant]
    return tuple(joint in compliant for joint in row_joints(tree, mechanism))


def jacobian(closers: Elements, pose: Pose, velocities: Float[Array, "bodies 6 d"]) -> Float[Array, "m d"]:
    """C, at poses of the bodies and T there; ``closers`` are the joints of `closing`."""
    return gap_jacobian(closers, pose) @ velocities.reshape(-1, velocities.shape[-1])


class AxisRows(PyTree):
    """Axes of the joints that close loops."""

    impulse: Float[Array, "n"]
    """Of laws and dry friction along each."""
    slope: Float[Array, "n"]
    """By its new speed."""
    row: Float[Array, "n bodies*6"]
    """Turns velocities of the bodies into its speed."""
    limit: Float[Array, "n"]
    """Largest impulse of dry friction,"""
    speed: Float[Array, "n"]
    """and the speed before the step."""
    by_group: list[Float[Array, "n r"]]
    """Impulses along the gap rows, of laws, and of dry friction, of each group's joints."""


def axes(closers: Elements, pose: Pose) -> tuple[Float[Array, "n bodies*6"], Float[Array, "n"]]:
    """Rows that turn velocities of the bodies into the axes' speeds, and inertias of motors' shafts along them."""
    whole, _ = with_world(pose, jnp.zeros((closers.body_count, 6)))
    wide: list[Array] = [jnp.zeros((0, 6 * closers.body_count))]
    inertia: list[Array] = [jnp.zeros(0)]
    for group in closers.groups:
        if group.has_axis:
            wide.append(_wide(group, rows.geometry(group, whole), closers.body_count))
            inertia.append(rows.axis_inertia(group))
    return jnp.concatenate(wide), jnp.concatenate(inertia)


def axis_mobility(closers: Elements, pose: Pose, response: Float[Array, "bodies*6 bodies*6"]) -> Float[Array, "n"]:
    """Changes of the axes' speeds by impulses along them; ``response`` is how impulses on the bodies move these."""
    wide, _ = axes(closers, pose)
    return jax.lax.stop_gradient(jnp.einsum("ni,ij,nj->n", wide, response, wide))


def along_axes(closers: Elements, step: Moving, reaction: Float[Array, "m"], turning: balance.Turning) -> AxisRows:
    """Laws and dry friction along the axes, by their mobilities in the closed mechanism or held widths."""
    whole = step.with_world()
    loads = by_group(closers, reaction)
    impulse, slope = [jnp.zeros(0)], [jnp.zeros(0)]
    limit: list[Array] = [jnp.zeros(0)]
    before: list[Array] = [jnp.zeros(0)]
    row: list[Array] = [jnp.zeros((0, 6 * closers.body_count))]
    separate: list[Array] = []
    done = 0
    for group, load in zip(closers.groups, loads, strict=True):
        if not group.has_axis:
            separate.append(load)
            continue
        geometry = rows.geometry(group, whole.pose)
        axis = balance.axis_motion(group, geometry, whole)
        wide = _wide(group, geometry, closers.body_count)
        rubbing = turning if group.friction is None else turning.part(np.arange(done, done + group.size))
        done += group.size

        def act(
            new_speed: Array,
            group: JointGroup = group,
            axis: balance.AxisMotion = axis,
            load: Array = load,
            rubbing: balance.Turning = rubbing,
        ) -> balance.AxisImpulse:
            moving = axis._replace(new_speed=new_speed)
            return balance.axis_impulse(group, moving, load, rubbing, step.command, step.timestep)

        found, by_speed = jax.jvp(act, (axis.new_speed,), (jnp.ones(group.size),))
        impulse.append(found.laws + found.dry)
        slope.append(by_speed.laws + by_speed.dry)
        row.append(wide)
        before.append(axis.speed)
        limit.append(found.limit)
        parts = [found.laws[:, None], *([] if group.friction is None else [found.dry[:, None]])]
        separate.append(jnp.concatenate([load, *parts], axis=1))
    every = jnp.concatenate
    return AxisRows(every(impulse), every(slope), every(row), every(limit), every(before), separate)


def shafts(closers: Elements, pose: Pose) -> Float[Array, "bodies*6 bodies*6"]:
    """Inertia of motors' shafts, as the bodies feel it."""
    wide, inertia = axes(closers, pose)
    return wide.T @ (inertia[:, None] * wide)


def on_bodies(closers: Elements, pose: Pose, reaction: Float[Array, "m"], along: AxisRows) -> Float[Array, "bodies 6"]:
    """Impulses of the joints that close loops on the bodies."""
    total = gap_jacobian(closers, pose).T @ reaction + along.row.T @ along.impulse
    return total.reshape(closers.body_count, 6)


def response(mass: Float[Array, "d d"], closed: Float[Array, "m d"], own: LoopLaw) -> Float[Array, "d d"]:
    """Changes of the rates by impulses along the coordinates of the closed mechanism; not differentiated.

    ``M⁻¹ − M⁻¹ Cᵀ (C M⁻¹ Cᵀ + Σ)⁻¹ C M⁻¹``, with as little compliance as redundant rows need.
    """
    mass, closed, own = jax.lax.stop_gradient((mass, closed, own))
    free = small_solve(mass, jnp.eye(len(mass)), definite=True)
    moved = free @ closed.T
    mobility = closed @ moved
    return free - moved @ small_solve(mobility + jnp.diag(own.softness(mobility)), moved.T)


def _wide(group: JointGroup, geometry: rows.Geometry, bodies: int) -> Float[Array, "n bodies*6"]:
    """The axes' rows over all bodies."""
    wide = jnp.zeros((group.size, bodies + 1, 6))
    members = np.arange(group.size)
    wide = wide.at[members, group.a.bodies].add(geometry.axis_a).at[members, group.b.bodies].add(geometry.axis_b)
    return wide[:, :bodies].reshape(group.size, 6 * bodies)


def by_group(closers: Elements, reaction: Float[Array, "m"]) -> list[Float[Array, "n r"]]:
    """Impulses of the rows of each group's joints."""
    impulses, start = [], 0
    for group in closers.groups:
        stop = start + group.size * group.gap_rows
        impulses.append(reaction[start:stop].reshape(group.size, group.gap_rows))
        start = stop
    return impulses
