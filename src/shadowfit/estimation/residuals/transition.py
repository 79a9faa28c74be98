"""One transition of the mechanism, linearised: the dynamics residual of a time step and its derivatives.

Two residuals, both impulses [N s, N m s], both zero exactly where the stepper would go:

* ``inverse`` (the paper's): ``r = F(q, v, v')``, the impulse that the transition misses, with every multiplier taken at
  ``v'``. It carries ``1/Σ``, so stiff joints weigh the noise of the states by their stiffness and the fit breaks down.
* ``implicit``: ``r = M₀ (v' − φ(q, v))`` with ``φ`` the velocity that the stepper predicts, ``F(q, v, φ) = 0``. Equal
  to ``M M_Σ⁻¹ F`` when F is affine in ``v'``; joints of any stiffness are fine because constraint and friction forces
  are those of the predicted step. ``M₀`` is the constant :mod:`reference_mass`.

The prediction φ with the branches of dry friction and contacts is that of :mod:`predicted_step`, derivatives of the
joints' impulses are those of :mod:`joint_slopes`. The implicit function theorem gives ``φ_x = −F_v'⁻¹ F_x``; neither
Newton's iteration nor the friction problem is differentiated.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, body_forces
from shadowfit.dynamics.contact_law import branch_at, contact_points
from shadowfit.dynamics.state import Moving
from shadowfit.estimation.residuals.contact_slopes import contact_impulse, contact_slopes
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.joint_slopes import (
    ActingJoints,
    Columns,
    Driven,
    incidence,
    joint_slopes,
    number_slopes,
    on_all_bodies,
    push_forward,
    tangent_columns,
)
from shadowfit.estimation.residuals.predicted_step import Known, PredictedStep, predicted_step
from shadowfit.geometry import Pose, rotations
from shadowfit.pytrees import PyTree


class Transition(PyTree):
    """Residual of one step (rows: bodies × 6) and its derivatives."""

    residual: Float[Array, "r"]
    by_pose: Float[Array, "r bodies 6"]
    by_velocity: Float[Array, "r bodies 6"]
    by_new_velocity: Float[Array, "r bodies 6"]
    by_parameters: Float[Array, "r p"]


def linearise(driven: Driven, columns: Columns, step: Moving, equations: Equations) -> Transition:
    """Residual of one transition with its derivatives."""
    elements, discretization = driven.elements, equations.discretization
    count = elements.body_count
    whole = step.with_world()
    known = tuple(balance.start_geometry(group, whole, discretization) for group in elements.groups)
    if equations.residual == "inverse":
        at = _where_it_went(driven, step)
    else:
        at = predicted_step(elements, step, known, discretization, equations.friction)
    value, by_state, by_parameters = _derivatives(driven, columns, step, at, known, discretization)
    if equations.residual == "inverse":
        by_pose, by_velocity, by_new = by_state.reshape(3, 6 * count, count, 6)
        return Transition(value, by_pose, by_velocity, by_new, by_parameters)
    by_pose, by_velocity, by_new = by_state
    # F(φ) = 0 to first order at φ = at − F_v'⁻¹ F; hence dφ = −F_v'⁻¹ F_x.
    right = jnp.concatenate([value[:, None], by_pose, by_velocity, by_parameters], axis=1)
    solved = small_solve(by_new, right, definite=True)
    prediction = at.velocity - solved[:, 0].reshape(count, 6)
    return _mass_weighted(driven.reference, step.new_velocity - prediction, solved[:, 1:])


def _where_it_went(driven: Driven, step: Moving) -> PredictedStep:
    """The new velocity itself in place of the stepper's, with the branches there."""
    elements, whole = driven.elements, step.with_world()
    branch = None
    if elements.contacts:
        points = contact_points(elements, whole.pose, whole.velocity, step.timestep)
        branch = branch_at(points, step.new_velocity.ravel())
    rubbing = tuple(balance.Sticking(sigma) for sigma in balance.stick_sigmas(elements, step.pose, step.timestep))
    return PredictedStep(step.new_velocity, tuple(None for _ in elements.groups), rubbing, branch)


def _mass_weighted(
    mass: Float[Array, "bodies 6"],
    difference: Float[Array, "bodies 6"],
    minus_prediction: Float[Array, "r columns"],
) -> Transition:
    """``r = M₀ (v' − φ)``; ``minus_prediction`` holds −dφ by pose, velocity and parameters."""
    count = difference.shape[0]
    size = 6 * count
    weighted = mass.ravel()[:, None] * minus_prediction
    return Transition(
        (mass * difference).ravel(),
        weighted[:, :size].reshape(size, count, 6),
        weighted[:, size : 2 * size].reshape(size, count, 6),
        jnp.diag(mass.ravel()).reshape(size, count, 6),
        weighted[:, 2 * size :],
    )


def _derivatives(
    driven: Driven, columns: Columns, step: Moving, at: PredictedStep, known: Known, discretization: str
) -> tuple[Float[Array, "r"], Float[Array, "3 r r"], Float[Array, "r p"]]:
    """``F`` and its derivatives by pose, velocity and new velocity, and by parameters."""
    elements = driven.elements
    size = 6 * elements.body_count
    reached = dataclasses.replace(step, new_velocity=at.velocity)
    whole, timestep = reached.with_world(), step.timestep
    value, by_state, by_parameters = _body_derivatives(driven, columns, reached, discretization)
    for index, group in enumerate(elements.groups):
        place = incidence(elements, group)
        point = balance.joint_point(group, whole, discretization, known[index])
        defect_load = balance.load(group, point, timestep)
        known_load = at.loads[index]
        acting = ActingJoints(point, defect_load if known_load is None else known_load, at.rubbing[index])
        impulse, by_states = joint_slopes(elements, group, whole, acting, discretization)
        # The value shows what the gaps still lack, for the final Newton step; the derivatives do not.
        impulse = impulse + balance.joint_impulse(defect_load - acting.load, jnp.zeros(group.size), point.geometry)
        value = value - jnp.einsum("nsb,nsr->br", place, impulse)
        by_state = by_state - on_all_bodies(elements, group, by_states)
        by_numbers = number_slopes(driven, columns, index, whole, acting, discretization)
        by_parameters = by_parameters - jnp.einsum("nsb,pnsr->brp", place, by_numbers)
    value, by_state = value.ravel(), by_state.reshape(3, size, size)
    by_parameters = by_parameters.reshape(size, -1)
    if at.branch is None:
        return value, by_state, by_parameters
    states = (whole.pose, whole.velocity, whole.new_velocity, at.branch, timestep)
    touching = contact_slopes(elements, *states)
    if columns.contacts:
        tangents = tangent_columns(driven.element_tangents, columns.contacts)
        by_numbers = push_forward(lambda e: contact_impulse(e, *states), (elements,), (tangents,))
        by_parameters = jnp.asarray(by_parameters).at[:, np.array(columns.contacts)].add(-by_numbers.T)
    return value - touching.impulse, by_state - touching.by_state, by_parameters


def _body_derivatives(
    driven: Driven, columns: Columns, step: Moving, discretization: str
) -> tuple[Float[Array, "bodies 6"], Float[Array, "3 bodies 6 bodies 6"], Float[Array, "bodies 6 p"]]:
    """The bodies' part of F and its derivatives; each body depends on its own state alone."""
    elements, pose, timestep = driven.elements, step.pose, step.timestep
    value = balance.bodies_balance(elements, step, discretization)
    slopes = balance.body_slopes(elements, step, discretization)
    by_pose = jnp.concatenate([jnp.zeros_like(slopes.by_turn), slopes.by_turn], axis=2)
    of_each = jnp.stack([by_pose, slopes.by_velocity, slopes.by_new_velocity])
    by_state = jnp.einsum("xbrc,bd->xbrdc", of_each, jnp.eye(elements.body_count))
    by_parameters = jnp.zeros((*step.velocity.shape, driven.command_tangents.shape[1]))
    if columns.bodies:
        tangents = tangent_columns(driven.element_tangents, columns.bodies)
        by_numbers = push_forward(lambda e: balance.bodies_balance(e, step, discretization), (elements,), (tangents,))
        by_parameters = by_parameters.at[..., np.array(columns.bodies)].add(jnp.moveaxis(by_numbers, 0, -1))
    if elements.forces:
        by_turn, by_command = jax.jacfwd(
            lambda turn, c: body_forces.applied_wrench(
                elements, Pose(pose.position, rotations.plus(pose.orientation, turn)), c
            ),
            argnums=(0, 1),
        )(jnp.zeros_like(pose.position), step.command)
        by_state = by_state.at[0, ..., 3:].add(-timestep * by_turn)
        by_parameters = by_parameters - timestep * by_command @ driven.command_tangents
    return value, by_state, by_parameters
