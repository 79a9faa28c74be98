"""Sums over the joints' sides: what acts on the bodies, and rows of the joints for the velocities of all bodies."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import balance, rows
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.lazy_jax import jnp


def incidence(elements: Elements, group: JointGroup) -> np.ndarray:
    """``(n, 2, bodies)``: one where a side of a joint is on a body; the world has no place."""
    sides = balance.side_bodies(group)
    return (sides[..., None] == np.arange(elements.body_count)).astype(float)


def on_bodies(elements: Elements, group: JointGroup, impulse: Float[Array, "n 2 6"]) -> Float[Array, "bodies 6"]:
    """Impulses on the two bodies of each joint, summed for each body."""
    return jnp.einsum("nsb,nsr->br", incidence(elements, group), impulse)


def axis_rows(elements: Elements, group: JointGroup, geometry: rows.Geometry) -> Float[Array, "n bodies*6"]:
    """Ḡ of each joint, for the velocities of all bodies."""
    sides = jnp.stack([geometry.axis_a, geometry.axis_b], axis=-2)
    wide = jnp.einsum("nsb,nsr->nbr", incidence(elements, group), sides)
    return wide.reshape(group.size, 6 * elements.body_count)
