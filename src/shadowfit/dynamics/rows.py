"""Constraint rows of joints: gaps, Jacobians, and the impulses along free axes, for one type of joint at a time.

Every function works on a whole :class:`~elements.JointGroup` (first axis: joints of the group). ``G`` is the Jacobian
of the gap function, ``Ḡ`` the row of the free axis; both are split into the parts that act on the parent (a) and
child (b).
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import Attachments, Elements, JointGroup, LawGroup
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.joint_types import Frame, FrameRows, JointType
from shadowfit.pytrees import PyTree, field
from shadowfit.trees import map_leaves, structure_of


class Geometry(PyTree):
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


def load_rows(group: JointGroup, pose: Pose, signs: np.ndarray) -> Float[Array, "n m+1 6"]:
    """Rows that turn wrenches about the origin, on what hangs on the joints, into loads on frame b: along the gap rows
    and then along the free axis, if there is one.

    Gap rows are orthonormal for frame b. Signs are −1 where frame a hangs on the joint, which is pushed the other way.
    """
    frame_a, frame_b = frames(group.a, pose)[0], frames(group.b, pose)[0]

    def on_b(kind: JointType, a: Frame, b: Frame) -> Float[Array, "m+1 6"]:
        across = kind.gap_rows(a, b).b
        return jnp.concatenate([across, kind.axis(a, b).b]) if group.has_axis else across

    pushed = signs[:, None, None] * jax.vmap(on_b)(group.kind, frame_a, frame_b)
    linear, angular = pushed[..., :3], pushed[..., 3:]
    return jnp.concatenate([linear + jnp.cross(frame_b.point[:, None], angular), angular], axis=-1)


def _both_frames(group: JointGroup | _JoinedGroup, pose: Pose) -> tuple[Frame, Frame, Float[Array, "n 2 3"]]:
    """World frames of parents and children, and the levers of both; the two sides are computed as one."""
    frame, lever = frames(_concatenated([group.a, group.b]), pose)
    size = len(group.a.body_indices)
    a, b = map_leaves(lambda x: x[:size], frame), map_leaves(lambda x: x[size:], frame)
    return a, b, jnp.stack([lever[:size], lever[size:]], axis=1)


def gaps(group: JointGroup, pose: Pose) -> Float[Array, "n m"]:
    """``g(q)`` [m, rad] of each joint."""
    frame_a, frame_b, _ = _both_frames(group, pose)
    return jax.vmap(lambda kind, a, b: kind.gap(a, b))(group.kind, frame_a, frame_b)


def geometry(group: JointGroup | _JoinedGroup, pose: Pose) -> Geometry:
    """Gaps, their Jacobian, and the free axis, of each joint."""

    def one(kind: JointType, a: Frame, b: Frame, levers: Float[Array, "2 3"]) -> Geometry:
        rows = kind.gap_rows(a, b)
        if group.has_axis:
            axis, position = kind.axis(a, b), kind.coordinate(a, b)
        else:
            axis, position = FrameRows(jnp.zeros((1, 6)), jnp.zeros((1, 6))), jnp.zeros(())
        twists = jnp.stack([jnp.concatenate([rows.a, axis.a]), jnp.concatenate([rows.b, axis.b])])
        on_a, on_b = _on_bodies(twists, levers)
        return Geometry(kind.gap(a, b), on_a[:-1], on_b[:-1], position, on_a[-1], on_b[-1])

    return jax.vmap(one)(group.kind, *_both_frames(group, pose))


def _on_bodies(rows: Float[Array, "2 m 6"], levers: Float[Array, "2 3"]) -> Float[Array, "2 m 6"]:
    """Rows for twists of the attachment frames as rows for the bodies' velocities (of their centres of mass)."""
    turning = rows[..., 3:] + jnp.cross(levers[:, None], rows[..., :3])
    return jnp.concatenate([rows[..., :3], turning], axis=-1)


def geometries(groups: tuple[JointGroup, ...], pose: Pose) -> tuple[Geometry, ...]:
    """:func:`geometry` of all groups. Groups of one joint type are evaluated together, so that it is compiled once."""
    alike: dict[object, list[int]] = {}
    for place, group in enumerate(groups):
        alike.setdefault((group.has_axis, structure_of(group.kind)), []).append(place)
    placed: dict[int, Geometry] = {}
    for places in alike.values():
        together = geometry(_joined([groups[place] for place in places]), pose)
        start = 0
        for place in places:
            stop = start + groups[place].size
            placed[place] = map_leaves(lambda x, start=start, stop=stop: x[start:stop], together)
            start = stop
    return tuple(placed[place] for place in range(len(groups)))


class _JoinedGroup(PyTree):
    """What :func:`geometry` needs of a group."""

    kind: JointType
    a: Attachments
    b: Attachments
    has_axis: bool = field(static=True)


def _joined(groups: list[JointGroup]) -> JointGroup | _JoinedGroup:
    if len(groups) == 1:
        return groups[0]

    kind = map_leaves(lambda *x: jnp.concatenate(x), *(group.kind for group in groups))
    a, b = (_concatenated([getattr(group, side) for group in groups]) for side in ("a", "b"))
    return _JoinedGroup(kind, a, b, groups[0].has_axis)


def _concatenated(parts: list[Attachments]) -> Attachments:
    bodies = tuple(index for part in parts for index in part.body_indices)
    levers = jnp.concatenate([part.levers for part in parts])
    return Attachments(bodies, levers, jnp.concatenate([part.frames for part in parts]))


def apply(
    rows_a: Float[Array, "n *m 6"],
    rows_b: Float[Array, "n *m 6"],
    group: JointGroup,
    velocity: Float[Array, "bodies+1 6"],
) -> Float[Array, "n *m"]:
    """``G v``: rows of each joint times the velocities of its two bodies."""
    on_a = jnp.einsum("n...i,ni->n...", rows_a, velocity[group.a.bodies])
    return on_a + jnp.einsum("n...i,ni->n...", rows_b, velocity[group.b.bodies])


class Relaxation(PyTree):
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
    """Torque [N m] or force [N] of viscous friction and all laws along the free axis of each joint.

    Dry friction that is larger in one direction has a part that is a constant force (:meth:`FrictionLaw.uneven`).
    """
    torque = -group.viscous * speed
    if group.friction is not None:
        torque = torque - jax.vmap(lambda law: law.uneven())(group.friction)
    for laws in group.laws:
        torque = jnp.asarray(torque).at[laws.members].add(_law_torque(laws, position, speed, command))
    return torque


def _law_torque(laws: LawGroup, position: Array, speed: Array, command: Array) -> Float[Array, "k"]:
    # Index −1 (no input) reads the appended zero.
    commands = jnp.append(command, 0.0)[laws.inputs]
    evaluate = jax.vmap(lambda law, x, s, u: law.torque(x, s, u))
    return evaluate(laws.law, position[laws.members], speed[laws.members], commands)


def share_of_load(elements: Elements) -> Float[Array, ""]:
    """The largest part of what an axis passes on that its friction takes of it."""
    none, one = jnp.zeros(()), jnp.ones(())
    shares = [
        jax.vmap(lambda law: law.gear(none, none, one))(g.friction) for g in elements.groups if g.friction is not None
    ]
    return jnp.max(jnp.concatenate(shares)) if shares else none


def motor_torque(
    group: JointGroup, position: Float[Array, "n"], speed: Float[Array, "n"], command: Float[Array, "inputs"]
) -> Float[Array, "n"]:
    """Torque [N m] or force [N] of the motors of each joint, which goes through its gear."""
    torque = jnp.zeros(group.size)
    for laws in group.laws:
        if laws.law.drives:
            torque = jnp.asarray(torque).at[laws.members].add(_law_torque(laws, position, speed, command))
    return torque


def axis_inertia(group: JointGroup) -> Float[Array, "n"]:
    """Inertia of motors' shafts along the free axis of each joint."""
    inertia = jnp.zeros(group.size)
    for laws in group.laws:
        inertia = inertia.at[laws.members].add(jax.vmap(lambda law: law.inertia())(laws.law))
    return inertia


def friction_weights(group: JointGroup, coefficient: Float[Array, "n"]) -> Float[Array, "n m"]:
    """``U``: how much each gap multiplier adds to the friction limit.

    ``(rμ … μ …)`` for an axis of rotation, ``(μ … μ/r …)`` for one of translation.
    """
    assert group.friction is not None
    radius = group.friction.dry_radius
    lengths, angles = (radius, jnp.ones_like(radius))
    if group.kind.axis_kind == "translation":
        lengths, angles = jnp.ones_like(radius), 1.0 / radius
    columns = [lengths] * group.linear_rows + [angles] * (group.gap_rows - group.linear_rows)
    if not columns:
        return jnp.zeros((group.size, 0))
    return coefficient[:, None] * jnp.stack(columns, axis=1)


def friction_limits(
    group: JointGroup,
    position: Float[Array, "n"],
    speed: Float[Array, "n"],
    command: Float[Array, "inputs"],
    load: Float[Array, "n"] | None = None,
) -> tuple[Float[Array, "n m"], Float[Array, "n"]]:
    """Weights ``U`` of the gap multipliers and level [N m or N] of dry friction at the start of a step.

    ``load`` is what the axes pass on [N m, N]; only joints of a tree tell it, and friction that follows from it needs
    them (:mod:`rigid_joints`).
    """
    load = jnp.zeros(group.size) if load is None else load
    coefficient, level = jax.vmap(lambda law, s: law.limit(s))(group.friction, speed)
    motor = motor_torque(group, position, speed, command)
    geared = jax.vmap(lambda law, *torques: law.gear(*torques))(group.friction, speed, motor, load)
    return friction_weights(group, coefficient), level + geared


def axis_rows(elements: Elements, group: JointGroup, geometry: Geometry) -> Float[Array, "n bodies*6"]:
    """Ḡ of each joint, for the velocities of all bodies."""
    wide = jnp.zeros((group.size, elements.body_count + 1, 6))
    joints = np.arange(group.size)
    wide = wide.at[joints, group.a.bodies].add(geometry.axis_a).at[joints, group.b.bodies].add(geometry.axis_b)
    return wide[:, :-1].reshape(group.size, 6 * elements.body_count)
