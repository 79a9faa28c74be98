"""Impulses along the axes of rigid joints: laws and dry friction, with how they change with the motion."""

from __future__ import annotations

import functools

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, rows
from shadowfit.dynamics.composites import column, composites_of, coordinate_bodies, dot, hanging, held_by
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import Hung, Tree
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree


class AxisImpulses(PyTree):
    """Impulses l of all coordinates, and how they change."""

    impulse: Float[Array, "d"]
    slope: Float[Array, "d"]
    """By the new speed of the axis."""
    by_wrench: list[Float[Array, "6"]]
    """By the wrench that the joint transmits, about the origin."""
    axes: list[tuple[tuple[int, Float[Array, "6"]], ...]]
    """Bodies of each coordinate's axis, and the rows that turn their velocities into its speed."""
    by_group: list[Float[Array, "n r"]]
    """Impulses along the gap rows, of laws, and of dry friction, of each group's joints."""


def axis_impulses(
    tree: Tree,
    elements: Elements,
    now: Hung,
    wrenches: list[Float[Array, "6"]],
    step: Moving,
    mobility: Float[Array, "d"],
) -> AxisImpulses:
    """Laws and dry friction; friction in proportion to the load takes it from the wrenches that joints transmit.

    ``mobility`` is the change of each coordinate's rate by an impulse along it.
    """
    size, count = tree.size, len(tree.links)
    command, timestep = step.command, step.timestep
    whole = step.with_world()
    impulse, slope = [jnp.zeros(())] * size, [jnp.zeros(())] * size
    by_wrench: list[Array] = [jnp.zeros(6)] * size
    axes: list[tuple[tuple[int, Array], ...]] = [()] * size
    by_group: list[Array] = []
    for group in elements.groups:
        across = rows.load_rows(group, whole.pose, tree.signs(group.joints))
        transmitted = jnp.stack([wrenches[tree.holding(joint).body] for joint in group.joints])
        loads = jnp.einsum("nmi,ni->nm", across, transmitted)
        if not group.has_axis:
            by_group.append(loads)
            continue
        geometry = rows.geometry(group, whole.pose)
        axis = balance.axis_motion(group, geometry, whole)
        places = [tree.coordinate(joint) for joint in group.joints]
        limit = balance.friction_limit(group, axis, loads, command, timestep)
        laws, dry, by_speed, by_limit = _slopes(group, axis, limit, mobility[np.array(places)], step)
        total = laws + dry
        # Every joint's own loads change its limit: one direction for each row.
        directions = [jnp.zeros_like(loads).at[:, row].set(1.0) for row in range(loads.shape[1])]
        by_load = jnp.stack([_by_load(group, axis, loads, row, step) for row in directions], axis=1)
        turned = jnp.einsum("n,nm,nmi->ni", by_limit, by_load, across)
        rubbing = [] if group.friction is None else [dry[:, None]]
        by_group.append(jnp.concatenate([loads[:, : group.gap_rows], laws[:, None], *rubbing], axis=1))
        for member, place in enumerate(places):
            impulse[place], slope[place], by_wrench[place] = total[member], by_speed[member], turned[member]
            sides = ((group.a.bodies[member], geometry.axis_a), (group.b.bodies[member], geometry.axis_b))
            axes[place] = tuple((int(body), axis[member]) for body, axis in sides if body < count)
    return AxisImpulses(
        jnp.stack(impulse) if size else jnp.zeros(0),
        jnp.stack(slope) if size else jnp.zeros(0),
        by_wrench,
        axes,
        by_group,
    )


def _by_load(
    group: JointGroup, axis: balance.AxisMotion, loads: Float[Array, "n l"], change: Float[Array, "n l"], step: Moving
) -> Float[Array, "n"]:
    """Change of the largest friction with a change of the loads."""
    limit = functools.partial(balance.friction_limit, group, axis, command=step.command, timestep=step.timestep)
    return jax.jvp(limit, (loads,), (change,))[1]


def _slopes(
    group: JointGroup, axis: balance.AxisMotion, limit: Float[Array, "n"], mobility: Float[Array, "n"], step: Moving
) -> tuple[Float[Array, "n"], Float[Array, "n"], Float[Array, "n"], Float[Array, "n"]]:
    """Laws and dry friction along the axes, and how they change with new speeds and largest friction."""

    def act(new_speed: Array, limit: Array) -> tuple[Array, Array]:
        moving, turning = axis._replace(new_speed=new_speed), balance.Turning(mobility)
        laws = balance.law_impulse(group, moving, step.command, step.timestep, "exact")
        return laws, balance.dry_friction(group, moving, limit, turning, step.timestep)

    ones = jnp.ones(group.size)
    (laws, dry), by_speed = jax.jvp(lambda s: act(s, limit), (axis.new_speed,), (ones,))
    _, by_limit = jax.jvp(lambda x: act(axis.new_speed, x)[1], (limit,), (ones,))
    return laws, dry, by_speed[0] + by_speed[1], by_limit


def mass_of(tree: Tree, elements: Elements, now: Hung) -> Float[Array, "d d"]:
    """Inertia of the coordinates, shafts of motors included."""
    size = tree.size
    still = jnp.zeros((elements.body_count, 6))
    composites = hanging(tree, composites_of(elements, now.pose, now.pose, still, still, jnp.zeros(())))
    shafts: list[Array] = [jnp.zeros(())] * size
    for group in elements.groups:
        if group.has_axis:
            inertia = rows.axis_inertia(group)
            for member, joint in enumerate(group.joints):
                shafts[tree.coordinate(joint)] = inertia[member]
    bodies, above = coordinate_bodies(tree), held_by(tree)
    entries: list[list[Array]] = [[jnp.zeros(())] * size for _ in range(size)]
    for i in range(size):
        momentum = column(composites[bodies[i]], now.twists[i])
        for j in range(size):
            if bodies[j] in above[bodies[i]]:
                entries[i][j] = entries[j][i] = dot(now.twists[j], momentum)
        entries[i][i] = entries[i][i] + shafts[i]
    return jnp.stack([jnp.stack(row) for row in entries]) if size else jnp.zeros((0, 0))


def inverse_of(mass: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Changes of the coordinates' rates by impulses along them."""
    return small_solve(mass[::-1, ::-1], jnp.eye(len(mass)))[::-1, ::-1]
