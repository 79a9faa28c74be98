"""The exact-constraint stepper: SPOOK's regularisation without its linearisation, second order in the time-step.

SPOOK uses ``G_k v₊`` for the change of a gap, so a turning link drifts off by ``h² ω² l / 2`` a step. Here the gap
itself is used, on both sides of the step, and all forces act at the midpoint of the two velocities:

    gap:    (g(q ⊞ h v₊) − g)/h + Σ λ = −(4/h) Υ g + Υ (g − g(q ⊟ h v))/h
    axis:   λ = h τ(x + h (s₊ − s)/4, (s + s₊)/2) − J_shaft (s₊ − s)
    body:   M (v₊ − v) = h f + h f_g((v + v₊)/2) + Gᵀ λ            (G at q_k)

The velocities are those of the leapfrog: ``v_k`` belongs to the middle of the step before ``t_k``, ``h v_k = q_k ⊟
q_{k−1}``. Each Newton iteration solves the mixed LCP of :mod:`velocity_problem`, so that sticking and contacts are
found as in SPOOK. The iterations themselves are not differentiated: one more, started from the solution, has the
solution's derivative (implicit function theorem); it is made only when a derivative is asked for.
"""

from __future__ import annotations

import enum
from typing import Any

from shadowfit.arrays import Array, Bool, Float
from shadowfit.complementarity import Status
from shadowfit.dynamics import body_forces, rows, spook
from shadowfit.dynamics.contact_rows import contact_rows
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_problem import (
    EqualityRows,
    FrictionRows,
    VelocityProblem,
    VelocitySolution,
    no_impulses,
    solve,
)
from shadowfit.geometry import matrices, rotations
from shadowfit.lazy_jax import at_first_call, jax, jnp, with_jvp
from shadowfit.trees import map_leaves

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
    solution = _settled(elements, state, command, timestep, guess)
    velocity = solution.velocity[:-1]
    return State(state.pose.plus(timestep * velocity), velocity), solution


@at_first_call(lambda function: with_jvp(function, _settled_jvp))
def _settled(elements: Elements, state: State, command: Array, timestep: Array, guess: Array) -> VelocitySolution:
    """Newton iterations for ``v₊``, started from ``v``."""

    def unsettled(carry: tuple[VelocitySolution, jax.Array, jax.Array]) -> Array:
        _, change, count = carry
        return (change > TOLERANCE) & (count < MAX_ITERATIONS)

    def improve(
        carry: tuple[VelocitySolution, jax.Array, jax.Array],
    ) -> tuple[VelocitySolution, jax.Array, jax.Array]:
        last, _, count = carry
        solution = _iteration(elements, state, command, timestep, last)
        change = jnp.max(jnp.abs(solution.velocity - last.velocity)) / (1.0 + jnp.max(jnp.abs(last.velocity)))
        return solution, change, count + 1

    _, start = with_world(state.pose, state.velocity)
    first = (no_impulses(elements, start, guess), jnp.asarray(jnp.inf), jnp.asarray(0))
    solution, change, _ = jax.lax.while_loop(unsettled, improve, first)
    # Ten times looser than the stopping rule: rounding may hold the last changes just above it.
    unfinished = (solution.status == Status.SOLVED) & ~(change <= 10.0 * TOLERANCE)
    status = jnp.where(unfinished, NewtonStatus.NOT_SETTLED, solution.status).astype(solution.status.dtype)
    return solution.having(status=status)


def _settled_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[VelocitySolution, VelocitySolution]:
    solution = _settled(*primals)

    def last_iteration(elements: Elements, state: State, command: Array, timestep: Array) -> VelocitySolution:
        return _iteration(elements, state, command, timestep, solution)

    _, change = jax.jvp(last_iteration, primals[:-1], tangents[:-1])
    return solution, change


def _iteration(
    elements: Elements, state: State, command: Array, timestep: Array, last: VelocitySolution
) -> VelocitySolution:
    """One Newton iteration from the velocity and active set of the last one."""
    problem = velocity_problem(elements, state, command, timestep, last.velocity)
    return solve(elements, problem, last.active, symmetric=False)


def velocity_problem(
    elements: Elements,
    state: State,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    iterate: Float[Array, "bodies+1 6"],
) -> VelocityProblem:
    """The step's conditions linearised about the velocity ``iterate``."""
    pose, velocity = with_world(state.pose, state.velocity)
    # The three configurations are evaluated as one: their arithmetic is small, but its compilation is not.
    poses = map_leaves(lambda *x: jnp.stack(x), pose.plus(-timestep * velocity), pose, pose.plus(timestep * iterate))
    at = jax.vmap(lambda pose: rows.geometries(elements.groups, pose))(poses)
    before, geometries, after = (map_leaves(lambda x, i=i: x[i], at) for i in range(3))
    turning = rotations.left_jacobian(timestep * iterate[:, 3:])
    regular_inverse = body_forces.inverse_mass(elements, state.pose)
    equality, friction = [], []
    for group, old, geometry, new in zip(elements.groups, before, geometries, after, strict=True):
        speed, new_speed = (rows.apply(geometry.axis_a, geometry.axis_b, group, v) for v in (velocity, iterate))
        mobility = spook.tangent_mobility(group, geometry, regular_inverse)
        gap = _gap_rows(group, (old, geometry, new), turning, iterate, timestep)
        limit = spook.friction_rows(group, geometry.position, speed, command, mobility, timestep)
        axis = _axis_rows(group, geometry, (speed, new_speed), command, limit, timestep)
        equality.append(_join(gap, axis))
        friction.append(limit)
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
    inverse = inverse.at[:-1, 3:, 3:].set(matrices.inverse(inertia + 0.5 * timestep * slope))
    inverse = inverse.at[:-1, :3, :3].set((1.0 / elements.bodies.mass)[:, None, None] * jnp.eye(3))
    return inverse, jnp.asarray(iterate).at[:-1].add(-jnp.einsum("bij,bj->bi", inverse[:-1], defect))


def _gap_rows(
    group: JointGroup,
    at: tuple[rows.Geometry, rows.Geometry, rows.Geometry],
    turning: Float[Array, "bodies+1 3 3"],
    iterate: Array,
    timestep: Array,
) -> EqualityRows:
    before, now, after = at
    relaxed = rows.relaxation(group, timestep)
    value = gap_defect(relaxed, now.gap, before.gap, after.gap, timestep)
    row_a = _through_rotation(after.gap_a, turning[group.a.bodies])
    row_b = _through_rotation(after.gap_b, turning[group.b.bodies])
    bias = value - rows.apply(row_a, row_b, group, iterate)
    return EqualityRows(row_a, row_b, now.gap_a, now.gap_b, relaxed.sigma, bias)


def gap_defect(relaxed: rows.Relaxation, now: Array, before: Array, after: Array, timestep: Array) -> Array:
    """``(g₊ − g)/h + Υ (4 g − (g − g₋))/h``, which equals ``−Σ λ``."""
    return (after - now + relaxed.upsilon * (3.0 * now + before)) / timestep


def _through_rotation(rows_after: Float[Array, "n m 6"], turning: Float[Array, "n 3 3"]) -> Float[Array, "n m 6"]:
    """Rows at ``q ⊞ h v₊`` as rows for ``v₊``: the rotation vector ``h ω₊`` acts through its left Jacobian."""
    return jnp.concatenate([rows_after[..., :3], rows_after[..., 3:] @ turning], axis=-1)


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
    speeds: tuple[Array, Array],
    command: Array,
    friction: FrictionRows | None,
    timestep: Array,
) -> EqualityRows | None:
    if not group.has_axis:
        return None
    speed, new_speed = speeds
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
    if friction is None:
        return law
    stick = friction.stick[:, None]
    return _join(law, EqualityRows(axis_a, axis_b, axis_a, axis_b, stick, jnp.zeros_like(stick)))


def _join(first: EqualityRows, second: EqualityRows | None) -> EqualityRows:
    if second is None:
        return first
    return map_leaves(lambda x, y: jnp.concatenate([x, y], axis=1), first, second)
