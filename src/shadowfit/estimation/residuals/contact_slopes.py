"""Impulses of all contacts on the bodies, with fixed branches, and their derivatives.

Forward mode over the bodies that contacts involve: rows, gaps and the regularisation of sticking all move with them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.dynamics.contact_law import Branch, contact_points, impulses_on
from shadowfit.dynamics.elements import Elements, StopElement
from shadowfit.geometry import Pose


class ContactSlopes(NamedTuple):
    """Impulse on the bodies, and its derivatives by pose, velocity and new velocity."""

    impulse: Float[Array, "r"]
    by_state: Float[Array, "3 r r"]


def contact_impulse(
    elements: Elements, pose: Pose, velocity: Array, new_velocity: Array, branch: Branch, timestep: Array
) -> Float[Array, "r"]:
    """Impulse of all contacts on the moving bodies."""
    points = contact_points(elements, pose, velocity, timestep)
    return points.push(impulses_on(points, branch, new_velocity[:-1].ravel()))


def contact_slopes(
    elements: Elements, pose: Pose, velocity: Array, new_velocity: Array, branch: Branch, timestep: Array
) -> ContactSlopes:
    """The impulse with its derivatives by the states of all bodies."""
    count = elements.body_count
    involved = _involved(elements)

    def impulse(moves: Float[Array, "3 k 6"]) -> tuple[Array, Array]:
        spread = jnp.zeros((3, count + 1, 6)).at[:, involved].set(moves)
        moved = (pose.plus(spread[0]), velocity + spread[1], new_velocity + spread[2])
        value = contact_impulse(elements, *moved, branch, timestep)
        return value, value

    slopes, value = jax.jacfwd(impulse, has_aux=True)(jnp.zeros((3, len(involved), 6)))
    wide = jnp.zeros((3, 6 * count, count, 6)).at[:, :, involved].set(jnp.moveaxis(slopes, 1, 0))
    return ContactSlopes(value, wide.reshape(3, 6 * count, 6 * count))


def _involved(elements: Elements) -> np.ndarray:
    """Moving bodies that contacts act on."""
    bodies: set[int] = set()
    for contact in elements.contacts:
        if isinstance(contact, StopElement):
            group = elements.groups[contact.group]
            bodies |= {int(side.bodies[contact.member]) for side in (group.a, group.b)}
        else:
            bodies |= {contact.plane, contact.body}
    return np.array(sorted(bodies - {elements.body_count}), int)
