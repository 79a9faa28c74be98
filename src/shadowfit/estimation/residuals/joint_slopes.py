"""Derivatives of the impulse of a joint, by hand.

A joint's impulse is ``Gᵀλ + Ḡᵀl`` with λ and l functions of a few scalars, so most of its derivatives are products of
rows that are known anyway. Forward mode is left for what they do not give: how the rows themselves turn with the bodies
(λ and l held), the scalar functions of laws and friction, and the parameters. (Forward mode through the whole element
took several times as long to compile and to run.)
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.dynamics import balance, rows
from shadowfit.dynamics.discretization import SCHEMES
from shadowfit.dynamics.elements import Attachments, Elements, JointGroup
from shadowfit.dynamics.state import Moving
from shadowfit.geometry import Pose, rotations
from shadowfit.pytrees import PyTree


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which parameters act through what: places among the parameters of a recording."""

    geometry: tuple[int, ...] = ()
    """Attachment points and frames, lengths, centres of mass."""
    bodies: tuple[int, ...] = ()
    """Masses, inertias, gravity, external forces."""
    contacts: tuple[int, ...] = ()
    """What contacts depend on: their own numbers, masses, and the geometry of joints with stops."""


class Driven(PyTree):
    """Elements at the current parameters, with derivatives by these (last axis), and the derivatives of commands."""

    elements: Elements
    element_tangents: Elements
    reference: Float[Array, "bodies 6"]
    """M₀, the diagonal mass that weighs the implicit residual."""
    command_tangents: Float[Array, "inputs p"]


class ActingJoints(PyTree):
    """Joints of a group in a step, and what acts in them."""

    point: balance.JointPoint
    load: Float[Array, "n m"]
    """Gap multipliers λ."""
    rubbing: balance.Rubbing
    """How dry friction acts."""


def tangent_columns(tree: Any, columns: tuple[int, ...] | None = None) -> Any:
    """Derivatives stored along the last axis, as tangents along the first; all columns or some."""
    pick = slice(None) if columns is None else np.array(columns, int)
    return jax.tree.map(lambda x: jnp.moveaxis(x[..., pick], -1, 0), tree)


def push_forward(function: Callable, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Derivatives of a function along stacked tangents (first axis)."""
    return jax.vmap(lambda tangent: jax.jvp(function, primals, tangent)[1])(tangents)


def _columnwise(function: Callable, at: Float[Array, "n k"]) -> tuple[Float[Array, "n"], Float[Array, "n k"]]:
    """Value and derivatives of a function that treats the rows of ``at`` independently."""

    def along(column: Array) -> Array:
        return jax.jvp(function, (at,), (jnp.broadcast_to(column, at.shape),))[1]

    return function(at), jax.vmap(along, out_axes=1)(jnp.eye(at.shape[1]))


def incidence(elements: Elements, group: JointGroup) -> np.ndarray:
    """``(n, 2, bodies)``: one where a side of a joint is on a body; the world has no place."""
    sides = balance.side_bodies(group)
    return (sides[..., None] == np.arange(elements.body_count)).astype(float)


@functools.lru_cache(maxsize=64)
def _pairs(sides: tuple[tuple[int, int], ...], count: int) -> np.ndarray:
    """``(bodies, bodies, k)``: the blocks (joint, side, side) of each pair of bodies; the last index means none."""
    entries: dict[tuple[int, int], list[int]] = {}
    for joint, pair in enumerate(sides):
        for s, first in enumerate(pair):
            for t, second in enumerate(pair):
                if first < count and second < count:
                    entries.setdefault((first, second), []).append(4 * joint + 2 * s + t)
    deepest = max((len(places) for places in entries.values()), default=1)
    table = np.full((count, count, deepest), 4 * len(sides))
    for (first, second), places in entries.items():
        table[first, second, : len(places)] = places
    return table


def on_all_bodies(
    elements: Elements, group: JointGroup, blocks: Float[Array, "x n 2 6 2 6"]
) -> Float[Array, "x bodies 6 bodies 6"]:
    """Sum the blocks of the joints (side, row, side, column) into those of the bodies.

    By gathering: products with the incidence matrix take several times as long for these small blocks.
    """
    sides = tuple((int(a), int(b)) for a, b in balance.side_bodies(group))
    table = _pairs(sides, elements.body_count)
    flat = jnp.moveaxis(blocks, 4, 3).reshape(blocks.shape[0], -1, 6, 6)
    flat = jnp.concatenate([flat, jnp.zeros_like(flat[:, :1])], axis=1)
    placed = sum(flat[:, table[..., k]] for k in range(table.shape[2]))
    return jnp.moveaxis(placed, 3, 2)


def through_loads(
    gap_rows: Float[Array, "n m 2 6"], loads_by: Float[Array, "x n m 2 6"]
) -> Float[Array, "x n 2 6 2 6"]:
    """``Gᵀ ∂λ``, summed over the few gap rows one by one, which is faster than a product of small matrices."""
    first = jnp.zeros((loads_by.shape[0], gap_rows.shape[0], 2, 6, 2, 6))
    return sum(
        (gap_rows[None, :, m, :, :, None, None] * loads_by[:, :, m, None, None] for m in range(gap_rows.shape[1])),
        first,
    )


def rows_of(geometry: rows.Geometry) -> Float[Array, "n m 2 6"]:
    """G of each joint, for its two bodies."""
    return jnp.stack([geometry.gap_a, geometry.gap_b], axis=-2)


def axis_of(geometry: rows.Geometry) -> Float[Array, "n 2 6"]:
    """Ḡ of each joint, for its two bodies."""
    return jnp.stack([geometry.axis_a, geometry.axis_b], axis=-2)


def _turned(blocks: Float[Array, "n m 2 6"], turn: Float[Array, "n 2 3 3"]) -> Float[Array, "n m 2 6"]:
    """Rows for a rotation of the later (or earlier) pose as rows for what causes it."""
    turning = jnp.einsum("nmsi,nsij->nmsj", blocks[..., 3:], turn)
    return jnp.concatenate([blocks[..., :3], turning], axis=-1)


def load_by_new(group: JointGroup, point: balance.JointPoint, whole: Moving) -> Float[Array, "n m 2 6"]:
    """``∂λ/∂v'``."""
    scale = (-1.0 / rows.relaxation(group, whole.timestep).sigma)[..., None, None]
    if point.after is None:
        return scale * rows_of(point.geometry)
    step = whole.timestep * whole.new_velocity[balance.side_bodies(group), 3:]
    return scale * _turned(rows_of(point.after), rotations.left_jacobian(step))


def _load_by_old_and_pose(
    group: JointGroup, point: balance.JointPoint, whole: Moving
) -> tuple[Float[Array, "n m 2 6"], Float[Array, "n m 2 6"]]:
    """``∂λ/∂v`` and ``∂λ/∂q``; for SPOOK the latter without the turning of G."""
    timestep = whole.timestep
    relaxed = rows.relaxation(group, timestep)
    scale = (-1.0 / relaxed.sigma)[..., None, None]
    upsilon = relaxed.upsilon[..., None, None]
    now = rows_of(point.geometry)
    if point.before is None or point.after is None:
        return -scale * upsilon * now, scale * upsilon * (4.0 / timestep) * now
    sides = balance.side_bodies(group)
    step_back, step_on = -timestep * whole.velocity[sides, 3:], timestep * whole.new_velocity[sides, 3:]
    before, after = rows_of(point.before), rows_of(point.after)
    carried = _turned(after, rotations.matrix(rotations.exp(step_on)))
    carried_back = _turned(before, rotations.matrix(rotations.exp(step_back)))
    by_pose = (carried - now + upsilon * (3.0 * now + carried_back)) / timestep
    return -scale * upsilon * _turned(before, rotations.left_jacobian(step_back)), scale * by_pose


def _scalars(point: balance.JointPoint) -> Float[Array, "n 3"]:
    return jnp.stack([point.geometry.position, point.speed, point.new_speed], axis=1)


def joint_slopes(
    elements: Elements, group: JointGroup, whole: Moving, acting: ActingJoints, discretization: str
) -> tuple[Float[Array, "n 2 6"], Float[Array, "3 n 2 6 2 6"]]:
    """Impulse of each joint on its two bodies, and its derivatives by pose, velocity and new velocity."""
    point, load, command, timestep = acting.point, acting.load, whole.command, whole.timestep
    axis = axis_of(point.geometry)
    law, law_by = _columnwise(
        lambda x: balance.law_impulse(group, balance.AxisMotion(*x.T), command, timestep, discretization),
        _scalars(point),
    )
    dry, dry_by = _columnwise(
        lambda x: balance.friction_impulse(
            group, balance.AxisMotion(*x[:, :3].T), x[:, 3:], acting.rubbing, command, timestep
        ),
        jnp.concatenate([_scalars(point), load], axis=1),
    )
    along = law + dry
    by_turn, load_by_turn, scalars_by_pose = _turning(elements, group, whole, load, along, discretization)
    load_by_old, load_by_pose = _load_by_old_and_pose(group, point, whole)
    load_by = jnp.stack([load_by_pose + load_by_turn, load_by_old, load_by_new(group, point, whole)])
    zero = jnp.zeros_like(axis)
    # position, speed and new speed of the axis by pose, velocity and new velocity
    scalars_by = jnp.stack(
        [scalars_by_pose, jnp.stack([zero, axis, zero], axis=1), jnp.stack([zero, zero, axis], axis=1)]
    )
    along_by = jnp.einsum("nk,xnktc->xntc", law_by + dry_by[:, :3], scalars_by)
    along_by = along_by + jnp.einsum("nm,xnmtc->xntc", dry_by[:, 3:], load_by)
    derivative = through_loads(rows_of(point.geometry), load_by)
    derivative = derivative + axis[None, :, :, :, None, None] * along_by[:, :, None, None]
    turning = jnp.stack([by_turn, jnp.zeros_like(by_turn), jnp.zeros_like(by_turn)])
    return balance.joint_impulse(load, along, point.geometry), derivative + turning


def _as_pairs(group: JointGroup) -> JointGroup:
    """The joints of a group as groups of one joint between bodies 0 and 1, for ``vmap``; without laws."""
    pairs = jax.tree.map(lambda x: x[:, None], group.having(laws=()))
    return dataclasses.replace(
        pairs,
        a=Attachments((0,), pairs.a.levers, pairs.a.frames),
        b=Attachments((1,), pairs.b.levers, pairs.b.frames),
        joints=(0,),
    )


def _turning(
    elements: Elements, group: JointGroup, whole: Moving, load: Array, along: Array, discretization: str
) -> tuple[Float[Array, "n 2 6 2 6"], Float[Array, "n m 2 6"], Float[Array, "n 3 2 6"]]:
    """Derivatives by the pose of ``Gᵀλ + Ḡᵀl`` (λ, l fixed), of SPOOK's multipliers through G, of the axis' scalars."""
    relaxed = rows.relaxation(group, whole.timestep)
    sides = balance.side_bodies(group)
    # Where one side is the world in all joints, its derivatives are not needed.
    moving = tuple(int(side) for side in np.flatnonzero((sides < elements.body_count).any(axis=0)))

    def on_both(values: Float[Array, "... sides 6"]) -> Float[Array, "... 2 6"]:
        if len(moving) == 2:
            return values
        still = jnp.zeros_like(values)
        return jnp.concatenate([values, still] if moving == (0,) else [still, values], axis=-2)

    def joint(
        pair: JointGroup,
        pose: Pose,
        velocities: tuple[Array, Array],
        impulses: tuple[Array, Array],
        relaxed: rows.Relaxation,
    ) -> tuple[Array, Array, Array]:
        (old, new), (load, along) = velocities, impulses

        def moved(increment: Array) -> tuple[Array, Array, Array]:
            geometry = rows.geometry(pair, pose.plus(on_both(increment)))
            axis = axis_of(geometry)[0]
            scalars = jnp.stack([geometry.position[0], jnp.sum(axis * old), jnp.sum(axis * new)])
            impulse = balance.joint_impulse(load[None], along[None], geometry)[0]
            if not SCHEMES[discretization].affine:
                return impulse, jnp.zeros_like(load), scalars
            closing = rows.apply(geometry.gap_a, geometry.gap_b, pair, new - relaxed.upsilon * old)
            return impulse, -closing[0] / relaxed.sigma, scalars

        slopes = jax.jacfwd(moved)(jnp.zeros((len(moving), 6)))
        return jax.tree.map(on_both, slopes)

    velocities = whole.velocity[sides], whole.new_velocity[sides]
    return jax.vmap(joint)(_as_pairs(group), whole.pose[sides], velocities, (load, along), relaxed)


def number_slopes(
    driven: Driven, columns: Columns, index: int, whole: Moving, acting: ActingJoints, discretization: str
) -> Float[Array, "p n 2 6"]:
    """Derivatives of each joint's impulse by the parameters.

    Most change only λ and l through scalars (friction, laws, compliance, commands); those of the geometry need the
    whole joint again.
    """
    group, point, command, timestep = driven.elements.groups[index], acting.point, whole.command, whole.timestep

    def along(group: JointGroup, point: balance.JointPoint, loads: Array, command: Array) -> Array:
        law = balance.law_impulse(group, point.axis, command, timestep, discretization)
        return law + balance.friction_impulse(group, point.axis, loads, acting.rubbing, command, timestep)

    def impulse(group: JointGroup, point: balance.JointPoint, command: Array) -> Array:
        defect = balance.load(group, point, timestep)
        loads = acting.load + (defect - jax.lax.stop_gradient(defect))
        return balance.joint_impulse(loads, along(group, point, loads, command), point.geometry)

    tangents = (tangent_columns(driven.element_tangents.groups[index]), driven.command_tangents.T)
    by_scalars = push_forward(lambda g, c: impulse(g, point, c), (group, command), tangents)
    if not columns.geometry:
        return by_scalars

    def again(group: JointGroup) -> Array:
        return impulse(group, balance.joint_point(group, whole, discretization), command)

    picked = tangent_columns(driven.element_tangents.groups[index], columns.geometry)
    return by_scalars.at[np.array(columns.geometry)].set(push_forward(again, (group,), (picked,)))
