"""Energy and momentum of a state."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import body_forces, rows
from shadowfit.dynamics.elements import Elements
from shadowfit.dynamics.state import State, with_world
from shadowfit.lazy_jax import jax, jnp


def kinetic(elements: Elements, state: State) -> Float[Array, ""]:
    """Kinetic energy [J] of the bodies and of the motors' shafts."""
    inertia = body_forces.world_inertia(elements, state.pose)
    momentum = body_forces.times_mass(elements, inertia, state.velocity)
    energy = 0.5 * jnp.sum(momentum * state.velocity)
    pose, velocity = with_world(state.pose, state.velocity)
    for group, geometry in zip(elements.groups, rows.geometries(elements.groups, pose), strict=True):
        speed = rows.apply(geometry.axis_a, geometry.axis_b, group, velocity)
        energy = energy + 0.5 * jnp.sum(rows.axis_inertia(group) * speed**2)
    return energy


def potential(elements: Elements, state: State) -> Float[Array, ""]:
    """Potential energy [J] of gravity and of the springs on joint axes, zero at the origin."""
    energy = -jnp.sum(elements.bodies.mass * (state.pose.position @ elements.gravity))
    pose, _ = with_world(state.pose, state.velocity)
    for group, geometry in zip(elements.groups, rows.geometries(elements.groups, pose), strict=True):
        for laws in group.laws:
            stored = jax.vmap(lambda law, x: law.energy(x))(laws.law, geometry.position[laws.members])
            energy = energy + jnp.sum(stored)
    return energy


def angular_momentum(elements: Elements, state: State) -> Float[Array, "3"]:
    """Angular momentum [kg m²/s] of the bodies about the world's origin."""
    inertia = body_forces.world_inertia(elements, state.pose)
    momentum = body_forces.times_mass(elements, inertia, state.velocity)
    return jnp.sum(jnp.cross(state.pose.position, momentum[:, :3]) + momentum[:, 3:], axis=0)
