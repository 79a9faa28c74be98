"""The initial state: its distance from the constraint surface, as an impulse (the paper's Section 3.3).

``Δq = Gᵀ(G Gᵀ)⁻¹ g`` and ``Δv = Gᵀ(G Gᵀ)⁻¹ G v`` weighted by ``M₀/h`` and ``M₀``; with ``configuration`` unknowns both
are distances of the first two configurations. Exact in the limit of a consistent start, where the derivative of the
projector does not contribute; that derivative is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import gap_jacobian, gap_values
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree

# Relative size below which a direction of the constraints counts as redundant.
REDUNDANT = 1e-9


class StartGaps(PyTree):
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


def start_gaps(machine: Parametrised, node: Nodes) -> StartGaps:
    """The gaps of one state."""
    elements = assemble(machine.mechanism())
    bodies = elements.body_count
    gap, jacobian = gap_values(elements, node.pose), gap_jacobian(elements, node.pose)
    by_parameters = jax.jacfwd(lambda d: gap_values(assemble(machine.moved(d)), node.pose))(
        jnp.zeros(machine.layout.size)
    )
    if node.velocity is None:
        closing: Array = jnp.zeros_like(gap)
        closing_by_pose = jnp.zeros_like(jacobian)
    else:
        velocity = node.velocity.ravel()
        closing = jacobian @ velocity
        closing_by_pose = jax.jacfwd(lambda d: gap_jacobian(elements, node.pose.plus(d.reshape(bodies, 6))) @ velocity)(
            jnp.zeros(6 * bodies)
        )
    return StartGaps(gap, jacobian, by_parameters, closing, closing_by_pose, machine.reference())


class Distance(NamedTuple):
    """An impulse that would close the joints of one node, and its derivatives."""

    residual: Float[np.ndarray, " r"]
    by_pose: Float[np.ndarray, "r r"]
    by_velocity: Float[np.ndarray, "r r"]
    by_parameters: Float[np.ndarray, "r p"]


def distance(gaps: StartGaps, node: int, timestep: float) -> Distance:
    """``M₀ Δq/h`` of one of the nodes."""
    momentum = _momentum(gaps, node) / timestep
    by_pose = momentum @ gaps.jacobian[node]
    return Distance(momentum @ gaps.gap[node], by_pose, np.zeros_like(by_pose), momentum @ gaps.by_parameters[node])


def closing_speed(gaps: StartGaps, node: int) -> Distance:
    """``M₀ Δv`` of one of the nodes."""
    momentum = _momentum(gaps, node)
    return Distance(
        momentum @ gaps.closing[node],
        momentum @ gaps.closing_by_pose[node],
        momentum @ gaps.jacobian[node],
        np.zeros((len(momentum), gaps.by_parameters.shape[-1])),
    )


def _momentum(gaps: StartGaps, node: int) -> Float[np.ndarray, "r g"]:
    """``M₀ Gᵀ(G Gᵀ)⁻¹`` without redundant directions; not a number where G is none."""
    jacobian = gaps.jacobian[node]
    if not np.all(np.isfinite(jacobian)):
        return np.full(jacobian.shape[::-1], np.nan)
    return np.asarray(gaps.mass[node]).reshape(-1, 1) * np.linalg.pinv(jacobian, rcond=REDUNDANT)
