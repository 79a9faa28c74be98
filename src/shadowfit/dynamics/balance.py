"""The momentum balance of a time step as a sum over elements: one function for a joint, one for a body.

For a transition from ``(q, v)`` to the velocity ``v'`` the impulse that is missing is

    F(q, v, v') = M (v' − v) − h (f + f_g) − Σ_joints [Gᵀ λ + Ḡᵀ (λ_axis + λ_t)],

zero exactly where the stepper would go. With ``Σ > 0`` every multiplier is a closed function of ``v'`` (the paper's inverse dynamics), so an element needs
only its own two bodies. Here an element *is* a joint group of one joint between body 0 and body 1, so that it shares all formulas with the
steppers; ``vmap`` runs it over the joints of a group and over time.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics import body_forces, exact, rows, spook
from shadowfit.dynamics.elements import Attachments, Elements, JointGroup, LawGroup
from shadowfit.dynamics.state import with_world
from shadowfit.geometry import Pose, rotations


class Multipliers(eqx.Module):
    """Impulses of one joint: gap rows [N s, N m s], laws on the axis, and dry friction.

    ``defect_gap`` are the gap multipliers from the gaps' defect, where ``gap`` has been replaced by better known values.
    """

    gap: Float[Array, "m"]
    defect_gap: Float[Array, "m"]
    axis: Float[Array, ""]
    tangent: Float[Array, ""]


def as_elements(group: JointGroup) -> JointGroup:
    """The joints of a group as elements: arrays of shape ``(n, 1, …)`` for ``vmap`` over the first axis."""
    arrays, static = eqx.partition(group, eqx.is_array)
    arrays = jax.tree.map(lambda x: x[:, None], arrays)
    group = eqx.combine(arrays, static)
    return JointGroup(
        kind=group.kind,
        a=Attachments((0,), group.a.levers, group.a.frames),
        b=Attachments((1,), group.b.levers, group.b.frames),
        compliance=group.compliance,
        damping=group.damping,
        viscous=group.viscous,
        friction=group.friction,
        laws=tuple(LawGroup(laws.law, (place,)) for place, laws in enumerate(group.laws)),
        joints=(0,),
        gap_rows=group.gap_rows,
        has_axis=group.has_axis,
        linear_rows=group.linear_rows,
    )


def element_commands(group: JointGroup, command: Float[Array, "inputs"]) -> Float[Array, "n laws"]:
    """Command of each law of each joint."""
    padded = jnp.append(command, 0.0)
    columns = [padded[laws.inputs] for laws in group.laws]
    return jnp.stack(columns, axis=1) if columns else jnp.zeros((group.size, 0))


def multipliers(
    element: JointGroup,
    pose: Pose,
    velocity: Float[Array, "2 6"],
    new_velocity: Float[Array, "2 6"],
    commands: Float[Array, "laws"],
    stick_sigma: Float[Array, ""],
    slip: Float[Array, ""] | None,
    timestep: Float[Array, ""],
    discretization: str,
    loads: Float[Array, "m"] | None = None,
) -> tuple[Multipliers, rows.Geometry]:
    """Impulses of one joint between bodies 0 and 1, and its geometry.

    ``slip`` fixes the branch of dry friction: +1 or −1 slides in that direction, 0 sticks; ``None`` takes the branch from ``v'``:
    ``λ_t = −clip(Ḡ v'/Σ_t, ± (Σ U |λ| + h·level))``. ``loads`` replaces the values (not the derivatives) of the gap multipliers: near the solution of a
    stiff joint ``−defect/Σ`` is the difference of large numbers, and a Newton iteration knows it better.
    """
    geometry = rows.geometry(element, pose)
    relaxed = rows.relaxation(element, timestep)
    speed = rows.apply(geometry.axis_a, geometry.axis_b, element, velocity)
    new_speed = rows.apply(geometry.axis_a, geometry.axis_b, element, new_velocity)
    if discretization == "spook":
        closing = rows.apply(geometry.gap_a, geometry.gap_b, element, velocity)
        new_closing = rows.apply(geometry.gap_a, geometry.gap_b, element, new_velocity)
        defect = new_closing + relaxed.upsilon * (4.0 / timestep * geometry.gap - closing)
        stiffness, push = spook.axis_impulse(element, geometry.position, speed, commands, timestep)
        axis = push - stiffness * new_speed
    else:
        before = rows.gaps(element, pose.plus(-timestep * velocity))
        after = rows.gaps(element, pose.plus(timestep * new_velocity))
        defect = exact.gap_defect(relaxed, geometry.gap, before, after, timestep)
        axis = exact.axis_impulse(element, geometry.position, speed, new_speed, commands, timestep)
    defect_gap = -defect / relaxed.sigma
    gap = defect_gap if loads is None else loads + (defect_gap - jax.lax.stop_gradient(defect_gap))
    tangent = jnp.zeros(())
    if element.friction is not None:
        weights, level = rows.friction_limits(element, speed)
        limit = jnp.sum(weights * jnp.abs(gap)) + timestep * level[0]
        stuck = -new_speed[0] / stick_sigma
        if slip is None:
            tangent = jnp.clip(stuck, -limit, limit)
        else:
            tangent = jnp.where(slip == 0.0, stuck, -slip * limit)
    axis_impulse = axis[0] if element.has_axis else jnp.zeros(())
    return Multipliers(gap[0], defect_gap[0], axis_impulse, tangent), geometry


def joint_impulse(
    gap: Float[Array, "m"], along: Float[Array, ""], geometry: rows.Geometry
) -> Float[Array, "2 6"]:
    """``Gᵀ λ + Ḡᵀ (λ_axis + λ_t)`` on bodies 0 and 1; ``along`` is the sum in parentheses."""
    on_a = gap @ geometry.gap_a[0] + along * geometry.axis_a[0]
    on_b = gap @ geometry.gap_b[0] + along * geometry.axis_b[0]
    return jnp.stack([on_a, on_b])


def body_balance(
    mass: Float[Array, ""],
    inertia: Float[Array, "3 3"],
    gravity: Float[Array, "3"],
    applied: Float[Array, "6"],
    orientation: Float[Array, "4"],
    velocity: Float[Array, "6"],
    new_velocity: Float[Array, "6"],
    timestep: Float[Array, ""],
    discretization: str,
) -> Float[Array, "6"]:
    """``M (v' − v) − h (f + f_g)`` of one body; gyroscopic torque at the start (SPOOK) or the middle of the step."""
    turn = rotations.matrix(orientation)
    world_inertia = turn @ inertia @ turn.T
    change = new_velocity - velocity
    spin = velocity[3:] if discretization == "spook" else 0.5 * (velocity[3:] + new_velocity[3:])
    gyroscopic = -jnp.cross(spin, world_inertia @ spin)
    linear = mass * change[:3] - timestep * (mass * gravity + applied[:3])
    angular = world_inertia @ change[3:] - timestep * (gyroscopic + applied[3:])
    return jnp.concatenate([linear, angular])


def stick_sigmas(elements: Elements, pose: Pose, timestep: Float[Array, ""]) -> tuple[Float[Array, "n"], ...]:
    """``Σ_t`` of each group's joints (ones where a group has no dry friction)."""
    whole, _ = with_world(pose, jnp.zeros((elements.body_count, 6)))
    inverse_mass = body_forces.inverse_mass(elements, pose)
    sigmas = []
    for group in elements.groups:
        if group.friction is None:
            sigmas.append(jnp.ones(group.size))
            continue
        mobility = spook.tangent_mobility(group, rows.geometry(group, whole), inverse_mass)
        sigmas.append(group.friction.stick_time / timestep * mobility)
    return tuple(sigmas)


def side_bodies(group: JointGroup) -> np.ndarray:
    """Body indices ``(n, 2)`` of the two sides of each joint."""
    return np.stack([group.a.bodies, group.b.bodies], axis=1)


def missing_impulse(
    elements: Elements,
    pose: Pose,
    velocity: Float[Array, "bodies 6"],
    new_velocity: Float[Array, "bodies 6"],
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    discretization: str,
) -> Float[Array, "bodies 6"]:
    """``F(q, v, v')`` [N s, N m s] of all bodies, without contacts."""
    whole, old = with_world(pose, velocity)
    new = jnp.concatenate([new_velocity, jnp.zeros((1, 6))])
    applied = body_forces.applied_wrench(elements, pose, command)
    bodies = elements.bodies
    balance = jax.vmap(body_balance, in_axes=(0, 0, None, 0, 0, 0, 0, None, None))(
        bodies.mass,
        bodies.inertia,
        elements.gravity,
        applied,
        pose.orientation,
        velocity,
        new_velocity,
        timestep,
        discretization,
    )
    impulse = jnp.zeros_like(old)
    for group, sigma in zip(elements.groups, stick_sigmas(elements, pose, timestep), strict=True):
        sides = side_bodies(group)

        def one(element, pose, old, new, commands, sigma):
            found, geometry = multipliers(element, pose, old, new, commands, sigma, None, timestep, discretization)
            return joint_impulse(found.gap, found.axis + found.tangent, geometry)

        pushes = jax.vmap(one)(
            as_elements(group), whole[sides], old[sides], new[sides], element_commands(group, command), sigma
        )
        impulse = impulse.at[sides].add(pushes)
    return balance - impulse[:-1]
