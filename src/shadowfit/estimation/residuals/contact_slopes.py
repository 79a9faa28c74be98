"""Impulses of all contacts on the bodies, with fixed branches, and their derivatives.

Forward mode over the bodies that contacts involve: rows, gaps and the regularisation of sticking all move with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.contact_law import Branch, contact_points, impulses_on
from shadowfit.dynamics.elements import Elements, StopElement
from shadowfit.dynamics.state import Moving
from shadowfit.estimation.residuals.element_slopes import STATES, moved
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp


class ContactSlopes(NamedTuple):
    """Impulse on the bodies, and its derivatives by pose, velocity and new velocity."""

    impulse: Float[Array, "r"]
    by_state: Float[Array, "3 r r"]


def contact_impulse(elements: Elements, whole: Moving, branch: Branch) -> Float[Array, "r"]:
    """Impulse of all contacts on the moving bodies; the step includes the world."""
    points = contact_points(elements, whole.pose, whole.velocity, whole.timestep)
    return points.push(impulses_on(points, branch, whole.new_velocity[:-1].ravel()))


def contact_slopes(elements: Elements, whole: Moving, branch: Branch) -> ContactSlopes:
    """The impulse with its derivatives by the states of all bodies."""
    count = elements.body_count
    involved = _involved(elements)

    def impulse(moves: Float[Array, "k"]) -> Array:
        spread = jnp.zeros((STATES, count + 1, 6)).at[:, involved].set(moves.reshape(STATES, len(involved), 6))
        return contact_impulse(elements, moved(whole, spread), branch)

    value, table = slopes(impulse, jnp.zeros(STATES * len(involved) * 6))
    by_involved = jnp.moveaxis(table.reshape(6 * count, STATES, len(involved), 6), 1, 0)
    wide = jnp.zeros((STATES, 6 * count, count, 6)).at[:, :, involved].set(by_involved)
    return ContactSlopes(value, wide.reshape(STATES, 6 * count, 6 * count))


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
