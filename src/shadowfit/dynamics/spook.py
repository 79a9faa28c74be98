"""SPOOK, the paper's time-stepper: regularised constraints, linear in the new velocity.

    [M  −Aᵀ] [v₊]   [M v + h (f + f_g)        ]
    [A   Σ ] [λ ] = [−(4/h) Υ g + Υ G v  (gap)]        q₊ = q ⊞ h v₊

with dry friction and contacts as complementarity rows of the same system. Along a free axis all laws act together:
linearised about the start of the step, the axis' impulse is ``h τ(x, s) − K (s₊ − s)`` with

    K = J_shaft − h ∂τ/∂s − (h²/4) ∂τ/∂x .

This is the paper's ``−b h s₊`` for viscous friction, its motor row ``h τ_m − J_shaft (s₊ − s)``, and a spring's
compliant SPOOK row, in one; ``K = 0`` is an ordinary value because the row is scaled by ``√K``.

**Dissipation.** The scheme is of first order. A turning link drifts off its linearised constraint and is pulled back
over the relaxation time τ, which costs a pendulum energy in proportion to ``h τ²``; joints of compliance ε lose, in any
scheme, in proportion to ``ε τ``. Relaxation over less than about two steps is not stable for stiff joints.
"""

from __future__ import annotations

from typing import NamedTuple

from shadowfit.arrays import Array, Bool, Float
from shadowfit.dynamics import body_forces, rows
from shadowfit.dynamics.contact_rows import contact_rows
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_problem import (
    EqualityRows,
    FrictionRows,
    VelocityProblem,
    VelocitySolution,
    solve,
    stick_sigma,
)
from shadowfit.lazy_jax import jax, jnp

# Relative to the effective inertia of a joint's bodies about its axis.
STIFFNESS_FLOOR = 1e-14


def step(
    elements: Elements,
    state: State,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    guess: Bool[Array, "z"],
) -> tuple[State, VelocitySolution]:
    """One time step [s] under a constant command; ``guess`` is the active set to try first."""
    problem = velocity_problem(elements, state, command, timestep)
    solution = solve(elements, problem, guess, symmetric=True)
    velocity = solution.velocity[:-1]
    return State(state.pose.plus(timestep * velocity), velocity), solution


def velocity_problem(
    elements: Elements, state: State, command: Float[Array, "inputs"], timestep: Float[Array, ""]
) -> VelocityProblem:
    """The mixed LCP of one step."""
    pose, velocity = with_world(state.pose, state.velocity)
    inverse_mass = body_forces.inverse_mass(elements, state.pose)
    impulse = jnp.zeros_like(velocity).at[:-1].set(timestep * _force(elements, state, command))
    geometries = rows.geometries(elements.groups, pose)
    equality, friction = [], []
    for group, geometry in zip(elements.groups, geometries, strict=True):
        speed = rows.apply(geometry.axis_a, geometry.axis_b, group, velocity)
        stiffness, push = axis_impulse(group, geometry.position, speed, command, timestep)
        impulse = impulse.at[group.a.bodies].add(push[:, None] * geometry.axis_a)
        impulse = impulse.at[group.b.bodies].add(push[:, None] * geometry.axis_b)
        mobility = tangent_mobility(group, geometry, inverse_mass)
        limit = friction_rows(group, geometry.position, speed, command, mobility, timestep)
        # The floor keeps √K differentiable at K = 0; it acts like 1e-14 of the bodies' inertia.
        axis = _AxisRow(jnp.sqrt(stiffness + STIFFNESS_FLOOR / mobility)[:, None], push[:, None])
        equality.append(_equality_rows(group, geometry, velocity, axis, limit, timestep))
        friction.append(limit)
    contacts = contact_rows(elements, pose, velocity, inverse_mass, geometries, timestep)
    free = velocity + jnp.einsum("bij,bj->bi", inverse_mass, impulse)
    return VelocityProblem(inverse_mass, free, tuple(equality), tuple(friction), contacts)


def _force(elements: Elements, state: State, command: Array) -> Float[Array, "bodies 6"]:
    inertia = body_forces.world_inertia(elements, state.pose)
    torque = body_forces.gyroscopic_torque(inertia, state.velocity[:, 3:])
    return body_forces.applied_force(elements, state.pose, command).at[:, 3:].add(torque)


def axis_impulse(
    group: JointGroup, position: Array, speed: Array, command: Array, timestep: Array
) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    """``K`` and ``c`` of the axis' impulse ``c − K s₊``, with ``c = h τ + K s``."""
    if not group.has_axis:
        return jnp.zeros(group.size), jnp.zeros(group.size)
    ones = jnp.ones(group.size)
    torque, by_speed = jax.jvp(lambda s: rows.axis_torque(group, position, s, command), (speed,), (ones,))
    _, by_position = jax.jvp(lambda x: rows.axis_torque(group, x, speed, command), (position,), (ones,))
    slope = -timestep * by_speed - 0.25 * timestep**2 * by_position
    # A law that feeds energy in is taken explicitly: only dissipation and restoring forces are implicit. At zero the
    # derivative is that of the implicit side, where friction coefficients may go.
    stiffness = rows.axis_inertia(group) + jnp.where(slope >= 0.0, slope, 0.0)
    return stiffness, timestep * torque + stiffness * speed


def tangent_mobility(
    group: JointGroup, geometry: rows.Geometry, inverse_mass: Float[Array, "bodies+1 6 6"]
) -> Float[Array, "n"]:
    """``Ḡ M⁻¹ Ḡᵀ`` over the joint's two bodies: the inverse of their effective inertia about the axis."""
    total = jnp.zeros(group.size)
    for side, row in ((group.a, geometry.axis_a), (group.b, geometry.axis_b)):
        total = total + jnp.einsum("ni,nij,nj->n", row, inverse_mass[side.bodies], row)
    return total


def friction_rows(
    group: JointGroup,
    position: Float[Array, "n"],
    speed: Float[Array, "n"],
    command: Float[Array, "inputs"],
    mobility: Float[Array, "n"],
    timestep: Array,
) -> FrictionRows | None:
    """Limit of the friction impulse, ``U`` and ``h·level``, and ``Σ_t = stick_time/(h m)``, m the inertia moved."""
    if group.friction is None:
        return None
    weights, level = rows.friction_limits(group, position, speed, command)
    frictionless = (level == 0.0) & jnp.all(weights == 0.0, axis=1)
    stick = stick_sigma(group.friction.stick_time, frictionless, mobility, timestep)
    return FrictionRows(weights, timestep * level, stick)


class _AxisRow(NamedTuple):
    """The row of the laws along an axis."""

    scale: Float[Array, "n 1"]
    """√K."""
    explicit: Float[Array, "n 1"]
    """c, which acts whatever the new velocity is."""


def _equality_rows(
    group: JointGroup,
    geometry: rows.Geometry,
    velocity: Array,
    axis: _AxisRow,
    friction: FrictionRows | None,
    timestep: Array,
) -> EqualityRows:
    relaxed = rows.relaxation(group, timestep)
    closing = rows.apply(geometry.gap_a, geometry.gap_b, group, velocity)
    row_a, row_b = [geometry.gap_a], [geometry.gap_b]
    sigma = [relaxed.sigma]
    bias = [relaxed.upsilon * (4.0 / timestep * geometry.gap - closing)]
    scales: list[Array] = [jnp.ones_like(closing)]
    explicit: list[Array] = [jnp.zeros_like(closing)]
    zero = jnp.zeros((group.size, 1))
    if group.has_axis:
        row_a.append((axis.scale * geometry.axis_a)[:, None])
        row_b.append((axis.scale * geometry.axis_b)[:, None])
        sigma.append(jnp.ones((group.size, 1)))
        bias.append(zero)
        scales.append(axis.scale)
        explicit.append(axis.explicit)
    if friction is not None:
        row_a.append(geometry.axis_a[:, None])
        row_b.append(geometry.axis_b[:, None])
        sigma.append(friction.stick[:, None])
        bias.append(zero)
        scales.append(jnp.ones_like(zero))
        explicit.append(zero)
    a, b = jnp.concatenate(row_a, axis=1), jnp.concatenate(row_b, axis=1)
    return EqualityRows(a, b, a, b, *(jnp.concatenate(x, axis=1) for x in (sigma, bias, scales, explicit)))
