"""Free axes of the joints at one configuration: how impulses along them act on the bodies."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import rows
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.state import with_world
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree


class Axes(PyTree):
    """The free axis of each joint; zero where it has none."""

    directions: Float[Array, "*n joints r"]
    """Ḡ: speeds of the axes by velocities of the bodies, and impulses on the bodies by those along the axes."""
    drag: Float[Array, "*n joints"]
    """What laws take off a force for each unit of speed, near rest [N m s/rad, N s/m]."""


def axes(machine: Parametrised, pose: Pose) -> Axes:
    """The axes at the current parameters."""
    mechanism = machine.mechanism()
    elements = assemble(mechanism)
    count, joints = elements.body_count, len(mechanism.joints)
    whole, _ = with_world(pose, jnp.zeros((count, 6)))
    directions, drag = jnp.zeros((joints, 6 * count)), jnp.zeros(joints)
    quiet = jnp.zeros(len(mechanism.inputs))
    for group in elements.groups:
        if not group.has_axis:
            continue
        geometry, which = rows.geometry(group, whole), np.array(group.joints)
        wide = rows.axis_rows(elements, group, geometry)
        _, slope = jax.jvp(
            lambda speed, group=group, at=geometry.position: rows.axis_torque(group, at, speed, quiet),
            (jnp.zeros(group.size),),
            (jnp.ones(group.size),),
        )
        directions, drag = directions.at[which].set(wide), drag.at[which].set(-slope)
    return Axes(directions, drag)
