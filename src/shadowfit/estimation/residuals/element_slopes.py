"""Derivatives of a step's balance by the states of the bodies, element by element.

F is a sum over bodies, each of which depends on its own state, and over joints, each of which depends on the states of
its two bodies. So each element is differentiated by itself (`kernels.row_slopes`), and the blocks are added up: forward
mode through the whole balance would go along all directions of all bodies for each element.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import balance, rows
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import Moving
from shadowfit.kernels import row_slopes
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree

STATES = 3
"""What a body's state in a step consists of: pose, velocity and new velocity, six numbers each."""


class Acting(PyTree):
    """What acts in the joints of a group, besides their own laws."""

    load: Float[Array, "n m"] | None
    """Gap multipliers λ, if they are known better than from the gaps' defect."""
    rubbing: balance.Rubbing
    """How dry friction acts."""


def acting_impulse(group: JointGroup, whole: Moving, acting: Acting, discretization: str) -> Float[Array, "n 2 6"]:
    """Impulse of each joint on its two bodies; known multipliers change as those of the gaps' defect do."""
    point = balance.joint_point(group, whole, discretization)
    loads = balance.load(group, point, whole.timestep)
    if acting.load is not None:
        loads = acting.load + (loads - jax.lax.stop_gradient(loads))
    along = balance.law_impulse(group, point.axis, whole.command, whole.timestep, discretization)
    dry = balance.friction_impulse(group, point.axis, loads, acting.rubbing, whole.command, whole.timestep)
    return balance.joint_impulse(loads, along + dry, point.geometry)


def joint_slopes(
    group: JointGroup, whole: Moving, acting: Acting, discretization: str
) -> tuple[Float[Array, "n 2 6"], Float[Array, "3 n 2 6 2 6"]]:
    """Impulse of each joint on its two bodies, and its derivatives by pose, velocity and new velocity of these."""
    apart, sides, count = _apart(group), _sides(group, whole), group.size

    def impulse(moves: Float[Array, "n 36"]) -> Float[Array, "n 12"]:
        by_state = jnp.moveaxis(moves.reshape(count, STATES, 2, 6), 1, 0).reshape(STATES, 2 * count, 6)
        return acting_impulse(apart, moved(sides, by_state), acting, discretization).reshape(count, 12)

    value, table = row_slopes(impulse, jnp.zeros((count, STATES * 12)))
    blocks = jnp.moveaxis(table.reshape(count, 2, 6, STATES, 2, 6), 3, 0)
    return value.reshape(count, 2, 6), blocks


def body_slopes(
    elements: Elements, step: Moving, discretization: str
) -> tuple[Float[Array, "bodies 6"], Float[Array, "3 bodies 6 6"]]:
    """The bodies' part of F, and its derivatives by pose, velocity and new velocity of each body."""
    count = elements.body_count

    def missing(moves: Float[Array, "bodies 18"]) -> Float[Array, "bodies 6"]:
        by_state = jnp.moveaxis(moves.reshape(count, STATES, 6), 1, 0)
        return balance.bodies_balance(elements, moved(step, by_state), discretization)

    value, table = row_slopes(missing, jnp.zeros((count, STATES * 6)))
    return value, jnp.moveaxis(table.reshape(count, 6, STATES, 6), 2, 0)


class Reaction(PyTree):
    """Multipliers of a group's gaps and impulses of its laws, with derivatives by the new velocities of both sides."""

    load: Float[Array, "n m"]
    law: Float[Array, "n"]
    load_by_new: Float[Array, "n m 2 6"]
    law_by_new: Float[Array, "n 2 6"]


def reaction(
    group: JointGroup, whole: Moving, known: tuple[rows.Geometry, rows.Geometry | None], discretization: str
) -> Reaction:
    """How joints without dry friction answer to the new velocity."""
    apart, sides, count = _apart(group), _sides(group, whole), group.size

    def load_and_law(moves: Float[Array, "n 12"]) -> Float[Array, "n m+1"]:
        answering = dataclasses.replace(sides, new_velocity=sides.new_velocity + moves.reshape(2 * count, 6))
        point = balance.joint_point(apart, answering, discretization, known)
        law = balance.law_impulse(apart, point.axis, whole.command, whole.timestep, discretization)
        return jnp.concatenate([balance.load(apart, point, whole.timestep), law[:, None]], axis=1)

    value, table = row_slopes(load_and_law, jnp.zeros((count, 12)))
    by_new = table.reshape(count, -1, 2, 6)
    return Reaction(value[:, :-1], value[:, -1], by_new[:, :-1], by_new[:, -1])


def _apart(group: JointGroup) -> JointGroup:
    """The same joints with bodies of their own: joint i between bodies 2i and 2i + 1."""
    first = range(0, 2 * group.size, 2)
    return dataclasses.replace(
        group,
        a=dataclasses.replace(group.a, body_indices=tuple(first)),
        b=dataclasses.replace(group.b, body_indices=tuple(i + 1 for i in first)),
    )


def _sides(group: JointGroup, whole: Moving) -> Moving:
    """The states of the two sides of each joint, one behind the other."""
    bodies = balance.side_bodies(group).ravel()
    return dataclasses.replace(
        whole, pose=whole.pose[bodies], velocity=whole.velocity[bodies], new_velocity=whole.new_velocity[bodies]
    )


def moved(step: Moving, moves: Float[Array, "3 bodies 6"]) -> Moving:
    """A step whose poses, velocities and new velocities are moved a little."""
    turn, change, new_change = moves
    return dataclasses.replace(
        step,
        pose=step.pose.plus(turn),
        velocity=step.velocity + change,
        new_velocity=step.new_velocity + new_change,
    )


# --- sums over elements ---


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


def rows_of(geometry: rows.Geometry) -> Float[Array, "n m 2 6"]:
    """G of each joint, for its two bodies."""
    return jnp.stack([geometry.gap_a, geometry.gap_b], axis=-2)


def axis_of(geometry: rows.Geometry) -> Float[Array, "n 2 6"]:
    """Ḡ of each joint, for its two bodies."""
    return jnp.stack([geometry.axis_a, geometry.axis_b], axis=-2)


def axis_rows(elements: Elements, group: JointGroup, geometry: rows.Geometry) -> Float[Array, "n bodies*6"]:
    """Ḡ of each joint, for the velocities of all bodies."""
    wide = jnp.einsum("nsb,nsr->nbr", incidence(elements, group), axis_of(geometry))
    return wide.reshape(group.size, 6 * elements.body_count)


def on_each_body(blocks: Float[Array, "*x bodies 6 6"]) -> Float[Array, "*x bodies 6 bodies 6"]:
    """Blocks of each body by its own state, among those of all bodies."""
    return jnp.einsum("...brc,bd->...brdc", blocks, np.eye(blocks.shape[-3]))
