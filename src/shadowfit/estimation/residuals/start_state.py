"""Rows of the initial state: its distance from the constraint surface, as an impulse (the paper's Section 3.3).

``Δq = Gᵀ(G Gᵀ)⁻¹ g`` and ``Δv = Gᵀ(G Gᵀ)⁻¹ G v`` weighted by ``M₀/h`` and ``M₀``; with ``configuration`` unknowns both
are distances of the first two configurations. Exact in the limit of a consistent start, where the derivative of the
projector does not contribute; that derivative is left out.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import gap_jacobian, gap_values
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals.linearise import Nodes, Plan, write
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.mechanism.mechanism import Mechanism

# Relative size below which a direction of the constraints counts as redundant.
REDUNDANT = 1e-9


class StartParts(eqx.Module):
    """Gaps of a state with their derivatives, and the masses that weigh them."""

    gap: Float[Array, "*n g"]
    jacobian: Float[Array, "*n g r"]
    """G."""
    by_parameters: Float[Array, "*n g p"]
    closing: Float[Array, "*n g"]
    """G v; zero where velocities are no unknowns."""
    closing_by_pose: Float[Array, "*n g r"]
    mass: Float[Array, "*n bodies 6"]
    """M₀, as in the dynamics residual."""


def start_parts(plan: Plan, mechanism: Mechanism, numbers: Array, turns: Array, node: Nodes) -> StartParts:
    """The parts of one state."""
    zero = jnp.zeros(plan.parameters)
    elements = assemble(write(plan, mechanism, numbers, turns, zero))
    bodies = elements.body_count
    gap, jacobian = gap_values(elements, node.pose), gap_jacobian(elements, node.pose)
    by_parameters = jax.jacfwd(lambda d: gap_values(assemble(write(plan, mechanism, numbers, turns, d)), node.pose))(
        zero
    )
    if node.velocity is None:
        closing, closing_by_pose = jnp.zeros_like(gap), jnp.zeros_like(jacobian)
    else:
        velocity = node.velocity.ravel()
        closing = jacobian @ velocity
        closing_by_pose = jax.jacfwd(lambda d: gap_jacobian(elements, node.pose.plus(d.reshape(bodies, 6))) @ velocity)(
            jnp.zeros(6 * bodies)
        )
    mass = reference_mass(assemble(mechanism).bodies)
    return StartParts(gap, jacobian, by_parameters, closing, closing_by_pose, mass)


def start_rows(plan: Plan, parts: StartParts, dynamics_weight: Float[np.ndarray, "r r"], timestep: float) -> Rows:
    """Rows of the first ``window − 1`` nodes, whose parts are given, and of the parameters."""
    size, window = parts.jacobian.shape[-1], plan.window - 1
    bodies = size // 6
    own_velocity = plan.own_velocity
    found = []
    for node in range(1 if own_velocity else 2):
        projector = _pseudo_inverse(parts.jacobian[node])
        momentum = parts.mass[node].reshape(size, 1) * projector
        states = np.zeros((size, window, bodies, 12 if own_velocity else 6))
        states[:, node, :, :6] = (momentum @ parts.jacobian[node]).reshape(size, bodies, 6)
        values = (states, momentum @ parts.by_parameters[node], momentum @ parts.gap[node])
        found.append([x / timestep for x in values])
        if own_velocity:
            moving = np.zeros_like(states)
            moving[:, node, :, 6:] = states[:, node, :, :6]
            moving[:, node, :, :6] = (momentum @ parts.closing_by_pose[node]).reshape(size, bodies, 6)
            found.append([moving, np.zeros_like(values[1]), momentum @ parts.closing[node]])
    states, parameters, residual = (
        np.concatenate([dynamics_weight @ part[i].reshape(size, -1) for part in found]) for i in range(3)
    )
    return Rows(states.reshape(2 * size, window, -1), parameters, residual.ravel())


def _pseudo_inverse(jacobian: Float[np.ndarray, "g r"]) -> Float[np.ndarray, "r g"]:
    """``Gᵀ(G Gᵀ)⁻¹`` without redundant directions; not a number where G is none."""
    if not np.all(np.isfinite(jacobian)):
        return np.full(jacobian.shape[::-1], np.nan)
    return np.linalg.pinv(jacobian, rcond=REDUNDANT)
