"""The exact-constraint stepper: SPOOK's regularisation without its linearisation, second order in the time-step.

SPOOK uses ``G_k v₊`` for the change of a gap, so a turning link drifts off by ``h² ω² l / 2`` a step. Here the gap itself is used, on both
sides of the step, and all forces act at the midpoint of the two velocities:

    gap:    (g(q ⊞ h v₊) − g)/h + Σ λ = −(4/h) Υ g + Υ (g − g(q ⊟ h v))/h
    axis:   λ = h τ(x + h (s₊ − s)/4, (s + s₊)/2) − J_shaft (s₊ − s)
    body:   M (v₊ − v) = h f + h f_g((v + v₊)/2) + Gᵀ λ            (G at q_k)

The velocities are those of the leapfrog: ``v_k`` belongs to the middle of the step before ``t_k``, ``h v_k = q_k ⊟ q_{k−1}``. Each Newton iteration solves the
mixed LCP of :mod:`velocity_problem`, so that sticking and contacts are found as in SPOOK. The iterations themselves are not differentiated:
the last one, started from the solution, carries the derivative (implicit function theorem).
"""

from __future__ import annotations

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from shadowfit.complementarity import Status
from shadowfit.dynamics import body_forces, rows, spook
from shadowfit.dynamics.contact_rows import contact_rows
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_problem import EqualityRows, VelocityProblem, VelocitySolution, solve
from shadowfit.geometry import Pose, rotations

MAX_ITERATIONS = 12
# Newton stops when the velocity changes by less than this, relative to its size (plus 1 m/s or rad/s).
TOLERANCE = 1e-11


class NewtonStatus(enum.IntEnum):
    """Status of a step whose Newton iterations did not settle; continues the numbers of the LCP's statuses."""

    NOT_SETTLED = max(Status) + 1


def step(
    elements: Elements,
    state: State,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    guess: Bool[Array, "z"],
) -> tuple[State, VelocitySolution]:
    """One time step [s] under a constant command; ``guess`` is the active set to try first."""
    frozen = jax.lax.stop_gradient((elements, state, command, timestep))
    velocity, active, settled = _settle(*frozen, guess)
    problem = velocity_problem(elements, state, command, timestep, velocity)
    solution = solve(elements, problem, active, symmetric=False)
    status = jnp.where(settled, solution.status, NewtonStatus.NOT_SETTLED)
    solution = eqx.tree_at(lambda s: s.status, solution, status)
    velocity = solution.velocity[:-1]
    return State(state.pose.plus(timestep * velocity), velocity), solution


def _settle(
    elements: Elements, state: State, command: Array, timestep: Array, guess: Array
) -> tuple[Float[Array, "bodies+1 6"], Bool[Array, "z"], Bool[Array, ""]]:
    """Newton iterations for ``v₊``, started from ``v``."""

    def unsettled(carry):
        _, _, change, count = carry
        return (change > TOLERANCE) & (count < MAX_ITERATIONS)

    def iterate(carry):
        velocity, active, _, count = carry
        problem = velocity_problem(elements, state, command, timestep, velocity)
        solution = solve(elements, problem, active, symmetric=False)
        change = jnp.max(jnp.abs(solution.velocity - velocity)) / (1.0 + jnp.max(jnp.abs(velocity)))
        return jax.lax.stop_gradient((solution.velocity, solution.active, change, count + 1))

    _, start = with_world(state.pose, state.velocity)
    velocity, active, change, _ = jax.lax.while_loop(
        unsettled, iterate, jax.lax.stop_gradient((start, guess, jnp.inf, 0))
    )
    # Ten times looser than the stopping rule: rounding may hold the last changes just above it.
    return velocity, active, change <= 10.0 * TOLERANCE


def velocity_problem(
    elements: Elements,
    state: State,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    iterate: Float[Array, "bodies+1 6"],
) -> VelocityProblem:
    """The step's conditions linearised about the velocity ``iterate``."""
    pose, velocity = with_world(state.pose, state.velocity)
    before, after = pose.plus(-timestep * velocity), pose.plus(timestep * iterate)
    geometries = tuple(rows.geometry(group, pose) for group in elements.groups)
    regular_inverse = body_forces.inverse_mass(elements, state.pose)
    equality, friction = [], []
    for group, geometry in zip(elements.groups, geometries, strict=True):
        speed = rows.apply(geometry.axis_a, geometry.axis_b, group, velocity)
        mobility = spook.tangent_mobility(group, geometry, regular_inverse)
        gap = _gap_rows(group, geometry, before, after, iterate, timestep)
        axis = _axis_rows(group, geometry, speed, iterate, command, mobility, timestep)
        equality.append(_join(gap, axis))
        friction.append(spook.friction_rows(group, speed, timestep))
    contacts = contact_rows(elements, pose, velocity, regular_inverse, geometries, timestep)
    inverse_mass, free = _free_motion(elements, state, command, timestep, iterate)
    return VelocityProblem(inverse_mass, free, tuple(equality), tuple(friction), contacts)


def _free_motion(
    elements: Elements, state: State, command: Array, timestep: Array, iterate: Array
) -> tuple[Float[Array, "bodies+1 6 6"], Float[Array, "bodies+1 6"]]:
    """Inverse of the linearised inertia, and the velocity that one Newton step without constraints gives."""
    inertia = body_forces.world_inertia(elements, state.pose)
    new = iterate[:-1]
    spin = 0.5 * (state.velocity[:, 3:] + new[:, 3:])
    force = body_forces.applied_force(elements, state.pose, command)
    force = force.at[:, 3:].add(body_forces.gyroscopic_torque(inertia, spin))
    defect = body_forces.times_mass(elements, inertia, new - state.velocity) - timestep * force
    momentum = jnp.einsum("bij,bj->bi", inertia, spin)
    slope = rotations.cross_matrix(spin) @ inertia - rotations.cross_matrix(momentum)
    inverse = jnp.zeros((elements.body_count + 1, 6, 6))
    inverse = inverse.at[:-1, 3:, 3:].set(jnp.linalg.inv(inertia + 0.5 * timestep * slope))
    inverse = inverse.at[:-1, :3, :3].set((1.0 / elements.bodies.mass)[:, None, None] * jnp.eye(3))
    return inverse, iterate.at[:-1].add(-jnp.einsum("bij,bj->bi", inverse[:-1], defect))


def _gap_rows(
    group: JointGroup,
    geometry: rows.Geometry,
    before: Pose,
    after: Pose,
    iterate: Array,
    timestep: Array,
) -> EqualityRows:
    relaxed = rows.relaxation(group, timestep)
    next_geometry = rows.geometry(group, after)
    value = gap_defect(relaxed, geometry.gap, rows.gaps(group, before), next_geometry.gap, timestep)
    row_a = _through_rotation(next_geometry.gap_a, iterate[group.a.bodies], timestep)
    row_b = _through_rotation(next_geometry.gap_b, iterate[group.b.bodies], timestep)
    bias = value - rows.apply(row_a, row_b, group, iterate)
    return EqualityRows(row_a, row_b, geometry.gap_a, geometry.gap_b, relaxed.sigma, bias)


def gap_defect(relaxed: rows.Relaxation, now: Array, before: Array, after: Array, timestep: Array) -> Array:
    """``(g₊ − g)/h + Υ (4 g − (g − g₋))/h``, which equals ``−Σ λ``."""
    return (after - now + relaxed.upsilon * (3.0 * now + before)) / timestep


def _through_rotation(rows_after: Array, velocity: Array, timestep: Array) -> Array:
    """Rows at ``q ⊞ h v₊`` as rows for ``v₊``: the rotation vector ``h ω₊`` acts through the left Jacobian."""
    turning = rows_after[..., 3:] @ rotations.left_jacobian(timestep * velocity[:, 3:])
    return jnp.concatenate([rows_after[..., :3], turning], axis=-1)


def axis_impulse(
    group: JointGroup, position: Array, speed: Array, new_speed: Array, command: Array, timestep: Array
) -> Float[Array, "n"]:
    """Impulse along the axis: laws at the midpoint, and the shafts' inertia."""
    middle = position + 0.25 * timestep * (new_speed - speed)
    torque = rows.axis_torque(group, middle, 0.5 * (speed + new_speed), command)
    return timestep * torque - rows.axis_inertia(group) * (new_speed - speed)


def _axis_rows(
    group: JointGroup,
    geometry: rows.Geometry,
    speed: Array,
    iterate: Array,
    command: Array,
    mobility: Array,
    timestep: Array,
) -> EqualityRows | None:
    if not group.has_axis:
        return None
    new_speed = rows.apply(geometry.axis_a, geometry.axis_b, group, iterate)
    impulse, slope = jax.jvp(
        lambda s: axis_impulse(group, geometry.position, speed, s, command, timestep),
        (new_speed,),
        (jnp.ones(group.size),),
    )
    axis_a, axis_b = geometry.axis_a[:, None], geometry.axis_b[:, None]
    stiffness = -slope
    sigma = jnp.ones((group.size, 1))
    bias = -(impulse + stiffness * new_speed)[:, None]
    row_a, row_b = stiffness[:, None, None] * axis_a, stiffness[:, None, None] * axis_b
    law = EqualityRows(row_a, row_b, axis_a, axis_b, sigma, bias)
    if group.friction is None:
        return law
    stick = (group.friction.stick_time / timestep * mobility)[:, None]
    return _join(law, EqualityRows(axis_a, axis_b, axis_a, axis_b, stick, jnp.zeros_like(stick)))


def _join(first: EqualityRows, second: EqualityRows | None) -> EqualityRows:
    if second is None:
        return first
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y], axis=1), first, second)
