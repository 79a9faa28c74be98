"""One transition of the mechanism, linearised: the dynamics residual of a time step and its derivatives.

Two residuals, both impulses [N s, N m s], both zero exactly where the stepper would go:

* ``inverse`` (the paper's): ``r = F(q, v, v')``, the impulse that the transition misses, with every multiplier taken at
  ``v'``. It carries ``1/Σ``, so stiff joints weigh the noise of the states by their stiffness and the fit breaks down.
* ``implicit``: ``r = M₀ (v' − φ(q, v))`` with ``φ`` the velocity that the stepper predicts, ``F(q, v, φ) = 0``. Equal
  to ``M M_Σ⁻¹ F`` when F is affine in ``v'``; joints of any stiffness are fine because constraint and friction forces
  are those of the predicted step. ``M₀`` is the constant :mod:`reference_mass`.

The prediction φ with the branches of dry friction and contacts is that of :mod:`predicted_step`. The implicit function
theorem gives ``φ_x = −F_v'⁻¹ F_x``; neither Newton's iteration nor the friction problem is differentiated.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance
from shadowfit.dynamics.contact_law import branch_at, contact_points, impulses_on
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import Moving, with_world
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.estimation.residuals.predicted_step import PredictedStep, predicted_step
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree

STATES = 3
"""What a body's state in a step consists of: pose, velocity and new velocity, six numbers each."""


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
    reached, size = dataclasses.replace(step, new_velocity=at.velocity), 6 * count

    def missing(increments: Float[Array, "x"]) -> Float[Array, "r"]:
        moves, parameters = jnp.split(increments, [STATES * size])
        turn, change, new_change = moves.reshape(STATES, count, 6)
        changed, acting = driven.moved(parameters, reached)
        moved = dataclasses.replace(
            acting,
            pose=reached.pose.plus(turn),
            velocity=reached.velocity + change,
            new_velocity=reached.new_velocity + new_change,
        )
        return _missing(changed, moved, at, discretization)

    value, table = slopes(missing, jnp.zeros(STATES * size + machine.layout.size))
    value = value - _lacking(elements, reached.with_world(), at, discretization)
    by_pose, by_velocity, by_new, by_parameters = jnp.split(table, size * np.arange(1, STATES + 1), axis=1)
    if equations.residual == "inverse":
        by_states = [part.reshape(size, count, 6) for part in (by_pose, by_velocity, by_new)]
        return Transition(value, by_states[0], by_states[1], by_states[2], by_parameters)
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
    missing = balance.missing(elements, step, discretization, at.rubbing, at.loads).impulse.ravel()
    if at.branch is None:
        return missing
    points = contact_points(elements, *with_world(step.pose, step.velocity), step.timestep)
    return missing - points.push(impulses_on(points, at.branch, step.new_velocity.ravel()))


def _lacking(elements: Elements, whole: Moving, at: PredictedStep, discretization: str) -> Float[Array, "r"]:
    """What the gaps still lack where their multipliers are known: it shows in the value, not in the derivatives."""
    lacking = jnp.zeros((elements.body_count, 6))
    for group, known in zip(elements.groups, at.loads, strict=True):
        if known is not None:
            point = balance.joint_point(group, whole, discretization)
            left = balance.load(group, point, whole.timestep) - known
            impulse = balance.joint_impulse(left, jnp.zeros(group.size), point.geometry)
            lacking = lacking + balance.on_bodies(elements, group, impulse)
    return lacking.ravel()
