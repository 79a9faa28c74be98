"""Sums over all that hangs on a joint, and inertia that is gathered that way along a tree.

A change of the coordinates moves a body by twists s̃ at its new configuration and changes the wrench about the world's
origin that it misses by ``C s̃``, with

    C = [m 1, −m [x']×; m [x]×, K − m [x]× [x']×],     K = (J + h/2 ∂(ω × J ω)/∂ω) J_l⁻¹,

x and x' its centre of mass before and after. That is 16 numbers, which add up: a mass, two moments, and a matrix.
"""

from __future__ import annotations

from typing import NamedTuple

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import body_forces
from shadowfit.dynamics.elements import Elements
from shadowfit.dynamics.tree import Tree
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jax, jnp


class VelocityMaps(NamedTuple):
    """How the new velocities depend on twists about the origin: ``v = s + ω × x``, ``ω' = J⁻¹ ω``."""

    position: Float[Array, "bodies 3"]
    turning: Float[Array, "bodies 3 3"]

    @classmethod
    def at(cls, after: Pose, new_velocity: Float[Array, "bodies 6"], timestep: Float[Array, ""]) -> VelocityMaps:
        """Velocities that lead to given poses in a step."""
        return cls(after.position, rotations.left_jacobian_inverse(timestep * new_velocity[:, 3:]))

    def row(self, body: int, given: Float[Array, "6"]) -> Float[Array, "6"]:
        """A row for the velocity of a body as a row for twists."""
        linear, angular = given[:3], given[3:]
        return jnp.concatenate([linear, jnp.cross(self.position[body], linear) + self.turning[body].T @ angular])


def coordinate_bodies(tree: Tree) -> list[int]:
    """Body that each coordinate belongs to."""
    return [link.body for link in tree.links for _ in link.freedom]


def about_origin(wrenches: Float[Array, "bodies 6"], position: Float[Array, "bodies 3"]) -> Float[Array, "bodies 6"]:
    """Impulses on the bodies' centres of mass as wrenches about the world's origin."""
    force = wrenches[:, :3]
    return jnp.concatenate([force, wrenches[:, 3:] + jnp.cross(position, force)], axis=1)


def hanging(tree: Tree, values: Float[Array, "bodies n"]) -> list[Float[Array, "n"]]:
    """For each body the sum over all that it holds."""
    total = list(values)
    for link in reversed(tree.links):
        if link.base < len(total):
            total[link.base] = total[link.base] + total[link.body]
    return total


def dot(a: Array, b: Array) -> Float[Array, ""]:
    """``a·b``."""
    return jnp.sum(a * b)


def composites_of(
    elements: Elements, now: Pose, after: Pose, velocity: Array, new_velocity: Array, timestep: Array
) -> Float[Array, "bodies 16"]:
    """C of each body: mass, its moments at ``q_k`` and ``q_{k+1}`` [kg m], and a matrix [kg m²]."""

    def one(mass: Array, inertia: Array, x: Array, x_after: Array, spin: Array, new_spin: Array) -> Array:
        middle = 0.5 * (spin + new_spin)
        cross = rotations.cross_matrix
        gyroscopic = cross(middle) @ inertia - cross(inertia @ middle)
        turning = inertia + 0.5 * timestep * gyroscopic
        matrix = turning @ rotations.left_jacobian_inverse(timestep * new_spin)
        matrix = matrix + mass * (jnp.sum(x * x_after) * jnp.eye(3) - x_after[:, None] * x)
        return jnp.concatenate([mass[None], mass * x, mass * x_after, matrix.ravel()])

    inertia = body_forces.world_inertia(elements, now)
    return jax.vmap(one)(
        elements.bodies.mass, inertia, now.position, after.position, velocity[:, 3:], new_velocity[:, 3:]
    )


def column(composite: Float[Array, "16"], twist: Float[Array, "6"]) -> Float[Array, "6"]:
    """``C s``."""
    mass, moment, moment_after, matrix = _parts(composite)
    linear, angular = twist[:3], twist[3:]
    force = mass * linear + jnp.cross(angular, moment_after)
    return jnp.concatenate([force, jnp.cross(moment, linear) + matrix @ angular])


def row(wrench: Float[Array, "6"], composite: Float[Array, "16"]) -> Float[Array, "6"]:
    """``eᵀ C``."""
    mass, moment, moment_after, matrix = _parts(composite)
    linear, angular = wrench[:3], wrench[3:]
    on_linear = mass * linear + jnp.cross(angular, moment)
    return jnp.concatenate([on_linear, jnp.cross(moment_after, linear) + matrix.T @ angular])


def _parts(composite: Float[Array, "16"]) -> tuple[Array, Array, Array, Array]:
    return composite[0], composite[1:4], composite[4:7], composite[7:].reshape(3, 3)


def held_by(tree: Tree) -> dict[int, set[int]]:
    """For each body itself and all that it hangs on."""
    chains: dict[int, set[int]] = {len(tree.links): set()}
    for link in tree.links:
        chains[link.body] = {link.body} | chains[link.base]
    return chains
