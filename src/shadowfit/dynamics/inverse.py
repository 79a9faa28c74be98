"""Inverse dynamics: the external impulse that a given transition needs (the paper's Section 2.6).

``F(q, v, v') = M (v' − v) − Aᵀ λ_A − Bᵀ λ_B − h (f + f_g)`` with ``Σ_A λ_A = −(a + A v')``. Because ``v'`` is known,
joint friction (see ``balance``) and contacts (see ``contact_law``) are closed form.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import balance, contact_law
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import Moving, State, with_world
from shadowfit.lazy_jax import jnp
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
    moving = Moving(state.pose, state.velocity, new_velocity, command, step)
    missing = balance.missing_impulse(elements, moving, discretization)
    return missing - _contact_impulse(elements, state, new_velocity, step)


def _contact_impulse(
    elements: Elements, state: State, new_velocity: Float[Array, "bodies 6"], timestep: Array
) -> Float[Array, "bodies 6"]:
    """``Bᵀ λ_B`` of all contacts at a known new velocity."""
    if not elements.contacts:
        return jnp.zeros_like(new_velocity)
    points = contact_law.contact_points(elements, *with_world(state.pose, state.velocity), timestep)
    new = new_velocity.ravel()
    impulses = contact_law.impulses_on(points, contact_law.branch_at(points, new), new)
    return points.push(impulses).reshape(-1, 6)
