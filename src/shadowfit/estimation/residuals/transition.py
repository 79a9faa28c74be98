"""One transition of the mechanism, linearised: the dynamics residual of a time step and its derivatives.

Two residuals, both impulses [N s, N m s], both zero exactly where the stepper would go:

* ``inverse`` (the paper's): ``r = F(q, v, v')``, the impulse that the transition misses, with every multiplier taken at
  ``v'``. It carries ``1/Σ``, so stiff joints weigh the noise of the states by their stiffness and the fit breaks down.
* ``implicit``: ``r = M₀ (v' − φ(q, v))`` with ``φ`` the velocity that the stepper predicts, ``F(q, v, φ) = 0``. Equal
  to ``M M_Σ⁻¹ F`` when F is affine in ``v'``; joints of any stiffness are fine because constraint and friction forces
  are those of the predicted step. ``M₀`` is the constant :mod:`reference_mass`.

The prediction φ with the branches of dry friction and contacts is that of :mod:`predicted_step`, derivatives by states
are those of the elements (:mod:`element_slopes`), summed. The implicit function theorem gives ``φ_x = −F_v'⁻¹ F_x``;
neither Newton's iteration nor the friction problem is differentiated.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance
from shadowfit.dynamics.contact_law import branch_at, contact_points
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import Moving
from shadowfit.estimation.residuals.contact_slopes import contact_impulse, contact_slopes
from shadowfit.estimation.residuals.element_slopes import (
    STATES,
    Acting,
    acting_impulse,
    body_slopes,
    incidence,
    joint_slopes,
    on_all_bodies,
    on_each_body,
)
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.estimation.residuals.predicted_step import PredictedStep, predicted_step
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree


class Driven(PyTree):
    """A machine with its free parameters, and what the parameters of its inputs make of a step's command."""

    machine: Parametrised
    command_slopes: Float[Array, "inputs columns"]
    """Derivatives of the command by the parameters that act through the inputs."""

    def moved(self, increments: Float[Array, "p"], step: Moving) -> tuple[Elements, Moving]:
        """Elements and step at the parameters plus increments."""
        acting = increments[np.array(self.machine.layout.inputs, int)]
        command = step.command + self.command_slopes @ acting
        return assemble(self.machine.moved(increments)), dataclasses.replace(step, command=command)


class Transition(PyTree):
    """Residual of one step (rows: bodies × 6) and its derivatives."""

    residual: Float[Array, "r"]
    by_pose: Float[Array, "r bodies 6"]
    by_velocity: Float[Array, "r bodies 6"]
    by_new_velocity: Float[Array, "r bodies 6"]
    by_parameters: Float[Array, "r p"]


def linearise(driven: Driven, step: Moving, equations: Equations) -> Transition:
    """Residual of one transition with its derivatives."""
    machine, discretization = driven.machine, equations.discretization
    elements = assemble(machine.mechanism())
    count = elements.body_count
    if equations.residual == "inverse":
        at = _where_it_went(elements, step)
    else:
        whole = step.with_world()
        known = tuple(balance.start_geometry(group, whole, discretization) for group in elements.groups)
        at = predicted_step(elements, step, known, discretization, equations.friction)
    reached = dataclasses.replace(step, new_velocity=at.velocity)
    value, by_state = _by_state(elements, reached, at, discretization)
    _, by_parameters = slopes(
        lambda d: _missing(*driven.moved(d, reached), at, discretization), jnp.zeros(machine.layout.size)
    )
    by_pose, by_velocity, by_new = by_state
    if equations.residual == "inverse":
        by_pose, by_velocity, by_new = by_state.reshape(STATES, 6 * count, count, 6)
        return Transition(value, by_pose, by_velocity, by_new, by_parameters)
    # F(φ) = 0 to first order at φ = at − F_v'⁻¹ F; hence dφ = −F_v'⁻¹ F_x.
    right = jnp.concatenate([value[:, None], by_pose, by_velocity, by_parameters], axis=1)
    solved = small_solve(by_new, right, definite=True)
    prediction = at.velocity - solved[:, 0].reshape(count, 6)
    return _mass_weighted(machine.reference(), step.new_velocity - prediction, solved[:, 1:])


def _where_it_went(elements: Elements, step: Moving) -> PredictedStep:
    """The new velocity itself in place of the stepper's, with the branches there."""
    whole = step.with_world()
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


def _missing(elements: Elements, step: Moving, at: PredictedStep, discretization: str) -> Float[Array, "r"]:
    """``F`` of a step, with the multipliers, the friction and the contacts of a prediction."""
    whole = step.with_world()
    missing = balance.bodies_balance(elements, step, discretization)
    for group, load, rubbing in zip(elements.groups, at.loads, at.rubbing, strict=True):
        impulse = acting_impulse(group, whole, Acting(load, rubbing), discretization)
        missing = missing - jnp.einsum("nsb,nsr->br", incidence(elements, group), impulse)
    if at.branch is None:
        return missing.ravel()
    return missing.ravel() - contact_impulse(elements, whole, at.branch)


def _by_state(
    elements: Elements, step: Moving, at: PredictedStep, discretization: str
) -> tuple[Float[Array, "r"], Float[Array, "3 r r"]]:
    """``F``, and its derivatives by pose, velocity and new velocity of all bodies."""
    whole, size = step.with_world(), 6 * elements.body_count
    value, by_own = body_slopes(elements, step, discretization)
    by_state = on_each_body(by_own)
    for group, load, rubbing in zip(elements.groups, at.loads, at.rubbing, strict=True):
        impulse, by_sides = joint_slopes(group, whole, Acting(load, rubbing), discretization)
        if load is not None:
            # The value shows what the gaps still lack, for the final Newton step; the derivatives do not.
            point = balance.joint_point(group, whole, discretization)
            lacking = balance.load(group, point, step.timestep) - load
            impulse = impulse + balance.joint_impulse(lacking, jnp.zeros(group.size), point.geometry)
        value = value - jnp.einsum("nsb,nsr->br", incidence(elements, group), impulse)
        by_state = by_state - on_all_bodies(elements, group, by_sides)
    value, by_state = value.ravel(), by_state.reshape(STATES, size, size)
    if at.branch is None:
        return value, by_state
    touching = contact_slopes(elements, whole, at.branch)
    return value - touching.impulse, by_state - touching.by_state
