"""Constraint rows of joints: gaps, Jacobians, and the impulses along free axes, for one type of joint at a time.

Every function works on a whole :class:`~elements.JointGroup` (first axis: joints of the group). ``G`` is the Jacobian of the
gap function, ``Ḡ`` the row of the free axis; both are split into the parts that act on the parent (a) and child (b).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import Attachments, JointGroup
from shadowfit.geometry import Pose, rotations
from shadowfit.mechanism.joint_types import Frame, FrameRows


class Geometry(eqx.Module):
    """Gaps and rows of the joints of a group at one configuration."""

    gap: Float[Array, "n m"]
    gap_a: Float[Array, "n m 6"]
    gap_b: Float[Array, "n m 6"]
    position: Float[Array, "n"]
    axis_a: Float[Array, "n 6"]
    axis_b: Float[Array, "n 6"]


def frames(side: Attachments, pose: Pose) -> tuple[Frame, Float[Array, "n 3"]]:
    """World frames of one side's attachments, and the levers from the centres of mass [m, world]."""
    rotation = rotations.matrix(pose.orientation)[side.bodies]
    lever = jnp.einsum("nij,nj->ni", rotation, side.levers)
    return Frame(pose.position[side.bodies] + lever, rotation @ side.frames), lever


def _on_body(rows: Float[Array, "m 6"], lever: Float[Array, "3"]) -> Float[Array, "m 6"]:
    """Rows for a twist of the attachment frame as rows for the body's velocity (of its centre of mass)."""
    return rows.at[:, 3:].add(jnp.cross(lever[None], rows[:, :3]))


def gaps(group: JointGroup, pose: Pose) -> Float[Array, "n m"]:
    """``g(q)`` [m, rad] of each joint."""
    frame_a, _ = frames(group.a, pose)
    frame_b, _ = frames(group.b, pose)
    return jax.vmap(lambda kind, a, b: kind.gap(a, b))(group.kind, frame_a, frame_b)


def geometry(group: JointGroup, pose: Pose) -> Geometry:
    """Gaps, their Jacobian, and the free axis, of each joint."""
    frame_a, lever_a = frames(group.a, pose)
    frame_b, lever_b = frames(group.b, pose)

    def one(kind, a, b, lever_a, lever_b):
        rows: FrameRows = kind.gap_rows(a, b)
        if group.has_axis:
            axis: FrameRows = kind.axis(a, b)
            position = kind.coordinate(a, b)
        else:
            axis, position = FrameRows(jnp.zeros((1, 6)), jnp.zeros((1, 6))), jnp.zeros(())
        return Geometry(
            kind.gap(a, b),
            _on_body(rows.a, lever_a),
            _on_body(rows.b, lever_b),
            position,
            _on_body(axis.a, lever_a)[0],
            _on_body(axis.b, lever_b)[0],
        )

    return jax.vmap(one)(group.kind, frame_a, frame_b, lever_a, lever_b)


def apply(
    rows_a: Float[Array, "n *m 6"],
    rows_b: Float[Array, "n *m 6"],
    group: JointGroup,
    velocity: Float[Array, "bodies+1 6"],
) -> Float[Array, "n *m"]:
    """``G v``: rows of each joint times the velocities of its two bodies."""
    on_a = jnp.einsum("n...i,ni->n...", rows_a, velocity[group.a.bodies])
    return on_a + jnp.einsum("n...i,ni->n...", rows_b, velocity[group.b.bodies])


class Relaxation(eqx.Module):
    """``Σ = (4/h²) ε Υ`` [1/kg, 1/(kg m²)] and ``Υ = 1/(1 + 4τ/h)`` of the gap rows of a group."""

    sigma: Float[Array, "n m"]
    upsilon: Float[Array, "n 1"]


def relaxation(group: JointGroup, timestep: Float[Array, ""]) -> Relaxation:
    """SPOOK's regularisation and stabilisation."""
    upsilon = (1.0 / (1.0 + 4.0 * group.damping / timestep))[:, None]
    return Relaxation(4.0 / timestep**2 * group.compliance * upsilon, upsilon)


def axis_torque(
    group: JointGroup,
    position: Float[Array, "n"],
    speed: Float[Array, "n"],
    command: Float[Array, "inputs"],
) -> Float[Array, "n"]:
    """Torque [N m] or force [N] of viscous friction and all laws along the free axis of each joint."""
    torque = -group.viscous * speed
    for laws in group.laws:
        # Index −1 (no input) reads the appended zero.
        commands = jnp.append(command, 0.0)[laws.inputs]
        torque = torque + jax.vmap(lambda law, x, s, u: law.torque(x, s, u))(laws.law, position, speed, commands)
    return torque


def axis_inertia(group: JointGroup) -> Float[Array, "n"]:
    """Inertia of motors' shafts along the free axis of each joint."""
    inertia = jnp.zeros(group.size)
    for laws in group.laws:
        inertia = inertia + jax.vmap(lambda law: law.inertia())(laws.law)
    return inertia


def friction_weights(group: JointGroup, coefficient: Float[Array, "n"]) -> Float[Array, "n m"]:
    """``U``: how much each gap multiplier adds to the friction limit.

    ``(rμ … μ …)`` for an axis of rotation, ``(μ … μ/r …)`` for one of translation.
    """
    radius = group.friction.dry_radius
    lengths, angles = (radius, jnp.ones_like(radius))
    if group.kind.axis_kind == "translation":
        lengths, angles = jnp.ones_like(radius), 1.0 / radius
    columns = [lengths] * group.linear_rows + [angles] * (group.gap_rows - group.linear_rows)
    if not columns:
        return jnp.zeros((group.size, 0))
    return coefficient[:, None] * jnp.stack(columns, axis=1)


def friction_limits(
    group: JointGroup, speed: Float[Array, "n"]
) -> tuple[Float[Array, "n m"], Float[Array, "n"]]:
    """Weights ``U`` of the gap multipliers and constant level [N m or N] of dry friction at the axes' speeds."""
    coefficient, level = jax.vmap(lambda law, s: law.limit(s))(group.friction, speed)
    return friction_weights(group, coefficient), level
