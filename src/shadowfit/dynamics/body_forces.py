"""What acts on single bodies: inertia, gravity, gyroscopic and external forces."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import Elements
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jax, jnp


def world_inertia(elements: Elements, pose: Pose) -> Float[Array, "bodies 3 3"]:
    """``J(q) = R J Rᵀ`` [kg m²]."""
    turn = rotations.matrix(pose.orientation)
    return turn @ elements.bodies.inertia @ turn.mT


def inverse_mass(elements: Elements, pose: Pose) -> Float[Array, "bodies+1 6 6"]:
    """``M⁻¹`` of each body; zero for the world, which is the last one."""
    turn = rotations.matrix(pose.orientation)
    inverse_inertia = turn @ elements.bodies.inverse_inertia @ turn.mT
    inverse = 1.0 / elements.bodies.mass
    blocks = jnp.zeros((elements.body_count + 1, 6, 6))
    blocks = blocks.at[:-1, 3:, 3:].set(inverse_inertia)
    return blocks.at[:-1, :3, :3].set(inverse[:, None, None] * jnp.eye(3))


def mass_matrix(mass: Float[Array, "bodies"], inertia: Float[Array, "bodies 3 3"]) -> Float[Array, "bodies 6 6"]:
    """``M`` of each body from its mass [kg] and its inertia in the world's axes [kg m²]."""
    zero = jnp.zeros_like(inertia)
    return jnp.block([[mass[:, None, None] * jnp.eye(3), zero], [zero, inertia]])


def times_mass(
    elements: Elements, inertia: Float[Array, "bodies 3 3"], velocity: Float[Array, "bodies 6"]
) -> Float[Array, "bodies 6"]:
    """``M v`` [N s, N m s]."""
    linear = elements.bodies.mass[:, None] * velocity[:, :3]
    return jnp.concatenate([linear, jnp.einsum("bij,bj->bi", inertia, velocity[:, 3:])], axis=1)


def gyroscopic_torque(inertia: Float[Array, "bodies 3 3"], spin: Float[Array, "bodies 3"]) -> Float[Array, "bodies 3"]:
    """``−ω × J ω`` [N m]."""
    return -jnp.cross(spin, jnp.einsum("bij,bj->bi", inertia, spin))


def applied_force(elements: Elements, pose: Pose, command: Float[Array, "inputs"]) -> Float[jax.Array, "bodies 6"]:
    """Gravity and external wrenches [N, N m]."""
    gravity = elements.bodies.mass[:, None] * elements.gravity
    return applied_wrench(elements, pose, command).at[:, :3].add(gravity)


def applied_wrench(elements: Elements, pose: Pose, command: Float[Array, "inputs"]) -> Float[jax.Array, "bodies 6"]:
    """External wrenches [N, N m] in the world frame."""
    total = jnp.zeros((elements.body_count, 6))
    for element in elements.forces:
        wrench, body = element.wrench, element.body
        parts = [wrench.force, wrench.torque]
        if wrench.frame == "body":
            parts = [rotations.rotate(pose.orientation[body], part) for part in parts]
        # Index −1 (no input) reads the appended one.
        size = jnp.append(command, 1.0)[element.input]
        total = total.at[body].add(size * jnp.concatenate(parts))
    return total
