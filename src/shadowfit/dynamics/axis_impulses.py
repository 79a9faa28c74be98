"""Impulses along the axes of rigid joints: laws and dry friction, with how they change with the motion."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import exact, rows, sliding
from shadowfit.dynamics.composites import column, composites_of, coordinate_bodies, dot, hanging, held_by
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import Moving, with_world
from shadowfit.dynamics.tree import Hung, Tree
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree
from shadowfit.records import record


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
    whole, old = with_world(now.pose, step.velocity)
    _, new = with_world(now.pose, step.new_velocity)
    impulse, slope = [jnp.zeros(())] * size, [jnp.zeros(())] * size
    by_wrench: list[Array] = [jnp.zeros(6)] * size
    axes: list[tuple[tuple[int, Array], ...]] = [()] * size
    by_group: list[Array] = []
    for group in elements.groups:
        across = _across(tree, group, whole, now)
        transmitted = jnp.stack([wrenches[tree.holding(joint).body] for joint in group.joints])
        loads = jnp.einsum("nmi,ni->nm", across, transmitted)
        # What hangs on frame a is pushed the other way.
        signs = np.array([1.0 if tree.holding(joint).forward else -1.0 for joint in group.joints])[:, None]
        if not group.has_axis:
            by_group.append(signs * loads)
            continue
        geometry = rows.geometry(group, whole)
        speed = rows.apply(geometry.axis_a, geometry.axis_b, group, old)
        new_speed = rows.apply(geometry.axis_a, geometry.axis_b, group, new)
        places = [tree.coordinate(joint) for joint in group.joints]
        act = _Axis(group, geometry.position, speed, mobility[np.array(places)], command, timestep).impulse
        ones = jnp.ones(group.size)
        limit, by_load = _limit(group, geometry.position, speed, loads, command, timestep)
        total, by_speed = jax.jvp(lambda s, act=act, limit=limit: act(s, limit), (new_speed,), (ones,))
        _, by_limit = jax.jvp(lambda x, act=act, s=new_speed: act(s, x), (limit,), (ones,))
        turned = jnp.einsum("n,nm,nmi->ni", by_limit, by_load, across)
        laws = act(new_speed, jnp.zeros(group.size))
        rubbing = [] if group.friction is None else [(total - laws)[:, None]]
        by_group.append(jnp.concatenate([signs * loads, laws[:, None], *rubbing], axis=1))
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


def _limit(
    group: JointGroup, position: Array, speed: Array, loads: Array, command: Array, timestep: Array
) -> tuple[Array, Array]:
    """Largest impulse of dry friction of each joint, and its derivative by the loads."""
    if group.friction is None:
        return jnp.zeros(group.size), jnp.zeros_like(loads)
    weights, level = rows.friction_limits(group, position, speed, command)
    return jnp.sum(weights * jnp.abs(loads), axis=1) + timestep * level, weights * jnp.sign(loads)


@record(frozen=True)
class _Axis:
    """Axes of a group's joints in a step."""

    group: JointGroup
    position: Float[Array, "n"]
    speed: Float[Array, "n"]
    mobility: Float[Array, "n"]
    command: Float[Array, "inputs"]
    timestep: Float[Array, ""]

    def impulse(self, new_speed: Float[Array, "n"], limit: Float[Array, "n"]) -> Float[Array, "n"]:
        """Impulses along them, with dry friction of a largest impulse."""
        laws = exact.axis_impulse(self.group, self.position, self.speed, new_speed, self.command, self.timestep)
        if self.group.friction is None:
            return laws
        width = sliding.stick_width(self.group.friction.stick_time, self.mobility * limit, self.timestep)
        return laws - limit * sliding.mean_direction(self.speed, new_speed, width)


def _across(tree: Tree, group: JointGroup, whole: Pose, now: Hung) -> Float[Array, "n m 6"]:
    """Rows of the joints' gaps (which are orthonormal for frame b) for wrenches about the origin."""
    frame_a, frame_b = rows.frames(group.a, whole)[0], rows.frames(group.b, whole)[0]
    across = jax.vmap(lambda kind, a, b: kind.gap_rows(a, b).b)(group.kind, frame_a, frame_b)
    center = jnp.stack([now.centers[tree.holding(joint).body] for joint in group.joints])
    linear, angular = across[..., :3], across[..., 3:]
    return jnp.concatenate([linear + jnp.cross(center[:, None], angular), angular], axis=-1)


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
