"""Inverse dynamics: the external impulse that a given transition needs (the paper's Section 2.6).

``F(q, v, v') = M (v' − v) − Aᵀ λ_A − Bᵀ λ_B − h (f + f_g)`` with ``Σ_A λ_A = −(a + A v')``. Joint friction is closed
form (see ``balance``); for contacts a small LCP per contact point remains, ``Σ_B λ_B = w_B − b − B v'``, ``0 ≤ λ_B ⟂
w_B ≥ 0``, because ``v'`` is known and couples nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.complementarity import solve_lcp
from shadowfit.dynamics import balance, body_forces, rows
from shadowfit.dynamics.contact_rows import contact_rows
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_problem import ContactRows
from shadowfit.mechanism.mechanism import Mechanism


def inverse_dynamics(
    mechanism: Mechanism,
    state: State,
    new_velocity: Float[Array, "bodies 6"],
    command: Float[Array, "inputs"],
    timestep: float,
    discretization: str = "spook",
) -> Float[Array, "bodies 6"]:
    """External impulse [N s, N m s] on each body that takes the state's velocity to ``new_velocity`` in one step."""
    elements = assemble(mechanism)
    step = jnp.asarray(timestep, float)
    missing = balance.missing_impulse(elements, state.pose, state.velocity, new_velocity, command, step, discretization)
    return missing - _contact_impulse(elements, state, new_velocity, step)


def _contact_impulse(
    elements: Elements, state: State, new_velocity: Float[Array, "bodies 6"], timestep: Array
) -> Float[Array, "bodies 6"]:
    """``Bᵀ λ_B`` of all contacts at a known new velocity."""
    pose, velocity = with_world(state.pose, state.velocity)
    new = jnp.concatenate([new_velocity, jnp.zeros((1, 6))])
    geometries = tuple(rows.geometry(group, pose) for group in elements.groups)
    inverse_mass = body_forces.inverse_mass(elements, state.pose)
    total = jnp.zeros_like(new)
    for contact in contact_rows(elements, pose, velocity, inverse_mass, geometries, timestep):
        total = total + _one_contact(contact, new)
    return total[:-1]


def _one_contact(contact: ContactRows, new_velocity: Float[Array, "bodies+1 6"]) -> Float[Array, "bodies+1 6"]:
    closing = contact.bias + jnp.einsum("cbi,bi->c", contact.normal, new_velocity)
    if contact.tangent is None:
        normal = jnp.maximum(-closing / contact.sigma, 0.0)
        return jnp.einsum("cbi,c->bi", contact.normal, normal)
    sliding = jnp.einsum("ctbi,bi->ct", contact.tangent, new_velocity)

    def point(sigma: Array, tangent_sigma: Array, closing: Array, sliding: Array) -> Array:
        """Unknowns: the normal impulse, four tangent impulses, and σ."""
        matrix = jnp.diag(jnp.concatenate([sigma[None], jnp.full(4, tangent_sigma), jnp.zeros(1)]))
        matrix = matrix.at[1:5, 5].set(1.0).at[5, 1:5].set(-1.0).at[5, 0].set(contact.coefficient)
        return solve_lcp(matrix, jnp.concatenate([closing[None], sliding, jnp.zeros(1)])).z[:5]

    impulses = jax.vmap(point)(contact.sigma, contact.tangent_sigma, closing, sliding)
    along_normal = jnp.einsum("cbi,c->bi", contact.normal, impulses[:, 0])
    return along_normal + jnp.einsum("ctbi,ct->bi", contact.tangent, impulses[:, 1:])
