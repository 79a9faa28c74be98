"""One transition of the mechanism, linearised: the dynamics residual of a time step and its derivatives.

Two residuals, both impulses [N s, N m s], both zero exactly where the stepper would go:

* ``inverse`` (the paper's): ``r = F(q, v, v')``, the impulse that the transition misses, with every multiplier taken at ``v'``. It carries ``1/Σ``, so stiff
  joints weigh the noise of the states by their stiffness and the fit breaks down.
* ``implicit``: ``r = M (v' − φ(q, v))`` with ``φ`` the velocity that the stepper predicts, ``F(q, v, φ) = 0``. Equal to ``M M_Σ⁻¹ F`` when F is affine in ``v'``; joints of any
  stiffness are fine because constraint and friction forces are those of the predicted step.

**Prediction.** Two iterations of Newton's method on ``F = 0`` from ``v'`` (one where F is affine), and a third by the derivatives' own pass; dry friction is solved in the space of the sliding axes (a box problem of the size of the number of frictional
joints, by projected Gauss–Seidel), after which each joint's branch (stuck, or sliding one way) is fixed.

**Derivatives.** One forward-mode pass over the elements (joints and bodies, `vmap`ped over elements of a type and time) gives ``F_q, F_v, F_v'`` and the derivatives by
the elements' own numbers; the implicit function theorem gives ``φ_x = −F_v'⁻¹ F_x``. Neither the Newton iteration nor the friction problem is differentiated.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from shadowfit.dynamics import balance, body_forces, rows
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import with_world
from shadowfit.geometry import Pose, rotations

Residual = Literal["implicit", "inverse"]

# Sweeps of the friction problem. It contracts like the coupling of the joints through the bodies; a remainder is
# taken up by the final Newton step.
FRICTION_SWEEPS = 30
# A friction impulse this close (relative) to its limit slides.
SLIDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Slots:
    """Which numbers of the elements depend on the free parameters: flat places of each group's element and of a body."""

    groups: tuple[tuple[int, ...], ...]
    bodies: tuple[int, ...]


class SlotDerivatives(eqx.Module):
    """Derivatives of those numbers by the parameters, for each element and body."""

    groups: tuple[Float[Array, "n slots p"], ...]
    bodies: Float[Array, "bodies slots p"]


class Transition(eqx.Module):
    """Residual of one step and its derivatives by configuration, velocity, new velocity and parameters (rows: bodies × 6)."""

    residual: Float[Array, "r"]
    by_pose: Float[Array, "r bodies 6"]
    by_velocity: Float[Array, "r bodies 6"]
    by_new_velocity: Float[Array, "r bodies 6"]
    by_parameters: Float[Array, "r p"]


class BodyNumbers(eqx.Module):
    """The numbers that one body's balance uses."""

    mass: Float[Array, ""]
    inertia: Float[Array, "3 3"]
    gravity: Float[Array, "3"]


def element_numbers(elements: Elements) -> tuple[tuple[Array, ...], Array]:
    """All numbers of the elements as flat vectors: ``(n, D)`` for each group, ``(bodies, D)``."""
    groups = tuple(jax.vmap(lambda e: ravel_pytree(_arrays(e))[0])(balance.as_elements(g)) for g in elements.groups)
    return groups, jax.vmap(lambda body: ravel_pytree(body)[0])(_bodies(elements))


def _arrays(element: JointGroup) -> Any:
    return eqx.filter(element, eqx.is_array)


def _bodies(elements: Elements) -> BodyNumbers:
    gravity = jnp.broadcast_to(elements.gravity, (elements.body_count, 3))
    return BodyNumbers(elements.bodies.mass, elements.bodies.inertia, gravity)


def _with_slots(tree: Any, slots: tuple[int, ...], values: Array) -> Any:
    """The tree with some entries of its flat vector replaced."""
    if not slots:
        return tree
    arrays, static = eqx.partition(tree, eqx.is_array)
    flat, unravel = ravel_pytree(arrays)
    return eqx.combine(unravel(flat.at[np.array(slots)].set(values)), static)


def _slot_values(tree: Any, slots: tuple[int, ...]) -> Array:
    return ravel_pytree(eqx.filter(tree, eqx.is_array))[0][np.array(slots, int)]


# --- assembly: from element blocks to all bodies -----------------------------------------------------------------------


def _incidence(elements: Elements, group: JointGroup) -> np.ndarray:
    """``(n, 2, bodies)``: one where a side of a joint is on a body; the world has no place."""
    sides = balance.side_bodies(group)
    return (sides[..., None] == np.arange(elements.body_count)).astype(float)


def _sides(elements: Elements, group: JointGroup) -> tuple[int, ...]:
    """Sides with a body that moves in at least one joint of the group: the other's derivatives are never needed."""
    moving = balance.side_bodies(group) < elements.body_count
    return tuple(side for side in (0, 1) if moving[:, side].any())


# --- prediction ----------------------------------------------------------------------------------------------------------


class _Pass(eqx.Module):
    """Value and slope of F at one velocity, with what the friction problem needs."""

    missing: Float[Array, "r"]
    slope: Float[Array, "r r"]
    gaps: tuple[Float[Array, "n m"], ...]
    gap_slopes: tuple[Float[Array, "n m r"], ...]
    axes: tuple[Float[Array, "n r"], ...]


def _evaluate(
    elements: Elements,
    pose: Pose,
    velocity: Array,
    new_velocity: Array,
    command: Array,
    slips: tuple[Array | None, ...],
    sigmas: tuple[Array, ...],
    timestep: Array,
    discretization: str,
) -> _Pass:
    """``F``, ``F_v'`` and the gap multipliers with their slopes; dry friction only where ``slips`` fixes its branch."""
    count = elements.body_count
    whole, old = with_world(pose, velocity)
    applied = body_forces.applied_wrench(elements, pose, command)

    def body(numbers, applied, orientation, old, new):
        def value(new):
            args = (numbers.mass, numbers.inertia, numbers.gravity, applied, orientation, old, new)
            result = balance.body_balance(*args, timestep, discretization)
            return result, result

        slope, result = jax.jacfwd(value, has_aux=True)(new)
        return result, slope

    missing, diagonal = jax.vmap(body)(_bodies(elements), applied, pose.orientation, velocity, new_velocity)
    slope = jnp.einsum("brc,bd->brdc", diagonal, jnp.eye(count))
    gaps, gap_slopes, axes = [], [], []
    new = jnp.concatenate([new_velocity, jnp.zeros((1, 6))])
    for group, slip, sigma in zip(elements.groups, slips, sigmas, strict=True):
        pick = _sides(elements, group)
        bare = (
            group if slip is not None else eqx.tree_at(lambda g: g.friction, group, None, is_leaf=lambda x: x is None)
        )

        def joint(element, pose, old, new, commands, sigma, slip):
            def value(moving):
                now = new.at[np.array(pick)].set(moving)
                found, geometry = balance.multipliers(
                    element, pose, old, now, commands, sigma, slip, timestep, discretization
                )
                impulse = balance.joint_impulse(found.gap, found.axis + found.tangent, geometry)
                axis = jnp.stack([geometry.axis_a[0], geometry.axis_b[0]])
                return (impulse, found.gap), (impulse, found.gap, axis)

            slopes, values = jax.jacfwd(value, has_aux=True)(new[np.array(pick)])
            return values, slopes

        sides = balance.side_bodies(group)
        branch = jnp.zeros(group.size) if slip is None else slip
        (impulse, gap, axis), (by_new, gap_by_new) = jax.vmap(joint)(
            balance.as_elements(bare),
            whole[sides],
            old[sides],
            new[sides],
            balance.element_commands(group, command),
            sigma,
            branch,
        )
        place = _incidence(elements, group)
        picked = place[:, np.array(pick)]
        missing = missing - jnp.einsum("nsb,nsr->br", place, impulse)
        slope = slope - jnp.einsum("nsb,nsrtc,ntd->brdc", place, by_new, picked)
        gaps.append(gap)
        gap_slopes.append(jnp.einsum("nmtc,ntd->nmdc", gap_by_new, picked).reshape(group.size, -1, 6 * count))
        axes.append(jnp.einsum("nsb,nsr->nbr", place, axis).reshape(group.size, 6 * count))
    size = 6 * count
    return _Pass(missing.ravel(), slope.reshape(size, size), tuple(gaps), tuple(gap_slopes), tuple(axes))


class Prediction(eqx.Module):
    """Where the stepper goes, to within one Newton step."""

    velocity: Float[Array, "bodies 6"]
    loads: tuple[Float[Array, "n m"], ...]
    """Gap multipliers of each group's joints."""
    slips: tuple[Float[Array, "n"] | None, ...]
    """Branch of dry friction: +1, −1 sliding, 0 stuck; None for groups without friction."""
    sigmas: tuple[Float[Array, "n"], ...]
    """Σ_t of each group's joints."""


def predict(
    elements: Elements,
    pose: Pose,
    velocity: Float[Array, "bodies 6"],
    start: Float[Array, "bodies 6"],
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    discretization: str,
) -> Prediction:
    """The stepper's new velocity from a guess, with multipliers and friction branches."""
    sigmas = balance.stick_sigmas(elements, pose, timestep)
    frictional = any(group.friction is not None for group in elements.groups)

    def newton(now: Array, slips: tuple[Array | None, ...]) -> tuple[Array, tuple[Array, ...], _Pass]:
        found = _evaluate(elements, pose, velocity, now, command, slips, sigmas, timestep, discretization)
        moved = -jnp.linalg.solve(found.slope, found.missing)
        return now + moved.reshape(-1, 6), _loads(found, moved), found

    slips: tuple[Array | None, ...] = tuple(None for _ in elements.groups)
    predicted, loads, found = newton(start, slips)
    if frictional:
        pushed, slips = _friction(elements, pose, velocity, predicted.ravel(), loads, found, sigmas, timestep)
        predicted = predicted + pushed.reshape(-1, 6)
        loads = _loads(found, (predicted - start).ravel())
    if discretization != "spook":
        predicted, loads, _ = newton(predicted, slips)
    return Prediction(predicted, loads, slips, sigmas)


def _loads(found: _Pass, moved: Array) -> tuple[Array, ...]:
    """Gap multipliers after a Newton step."""
    return tuple(gap + slope @ moved for gap, slope in zip(found.gaps, found.gap_slopes, strict=True))


def _friction(
    elements: Elements,
    pose: Pose,
    velocity: Array,
    predicted: Array,
    all_loads: tuple[Array, ...],
    found: _Pass,
    sigmas: tuple[Array, ...],
    timestep: Array,
) -> tuple[Array, tuple[Array | None, ...]]:
    """Velocity change by dry friction, and each joint's branch.

    With ``Y = F_v'⁻¹ Ḡᵀ`` the sliding speeds are ``s = Ḡ v₀ + Ḡ Y λ_t`` and the gap multipliers ``λ = λ₀ + (∂λ/∂v') Y λ_t``; sought is
    ``λ_t = −clip(s/Σ_t, ± (Σ U |λ| + h·level))``.
    """
    groups = [i for i, group in enumerate(elements.groups) if group.friction is not None]
    whole, old = with_world(pose, velocity)
    axes = jnp.concatenate([found.axes[i] for i in groups])
    response = jnp.linalg.solve(found.slope, axes.T)
    coupling = axes @ response
    speeds = axes @ predicted
    sigma = jnp.concatenate([sigmas[i] for i in groups])
    weights, levels, loads, load_slopes = [], [], [], []
    for i in groups:
        group = elements.groups[i]
        geometry = rows.geometry(group, whole)
        limits = rows.friction_limits(group, rows.apply(geometry.axis_a, geometry.axis_b, group, old))
        weights.append(limits[0])
        levels.append(timestep * limits[1])
        loads.append(all_loads[i])
        load_slopes.append(found.gap_slopes[i] @ response)

    def limits(impulses: Array) -> Array:
        parts = [
            jnp.sum(weight * jnp.abs(load + slope @ impulses), axis=1) + level
            for weight, load, slope, level in zip(weights, loads, load_slopes, levels, strict=True)
        ]
        return jnp.concatenate(parts)

    def sweep(_: int, impulses: Array) -> Array:
        for j in range(axes.shape[0]):
            others = speeds[j] + coupling[j] @ impulses - coupling[j, j] * impulses[j]
            limit = limits(impulses)[j]
            value = jnp.clip(-others / (coupling[j, j] + sigma[j]), -limit, limit)
            impulses = impulses.at[j].set(value)
        return impulses

    impulses = jax.lax.fori_loop(0, FRICTION_SWEEPS, sweep, jnp.zeros(axes.shape[0]))
    limit = limits(impulses)
    sliding = jnp.abs(impulses) >= limit * (1.0 - SLIDING)
    slip = jnp.where(sliding, -jnp.sign(impulses), 0.0)
    # A joint without load has a zero limit: it slides freely in the direction it has.
    slip = jnp.where(limit == 0.0, jnp.where(speeds < 0.0, -1.0, 1.0), slip)
    branches: list[Array | None] = [None] * len(elements.groups)
    start = 0
    for i in groups:
        size = elements.groups[i].size
        branches[i] = slip[start : start + size]
        start += size
    return response @ impulses, tuple(branches)


# --- linearisation -------------------------------------------------------------------------------------------------------


def linearise(
    elements: Elements,
    slots: Slots,
    slot_derivatives: SlotDerivatives,
    pose: Pose,
    velocity: Float[Array, "bodies 6"],
    new_velocity: Float[Array, "bodies 6"],
    command: Float[Array, "inputs"],
    command_derivatives: Float[Array, "inputs p"],
    timestep: Float[Array, ""],
    residual: Residual,
    discretization: str,
) -> Transition:
    """Residual of one transition with its derivatives."""
    if residual == "inverse":
        none = tuple(None for _ in elements.groups)
        at = Prediction(new_velocity, none, none, balance.stick_sigmas(elements, pose, timestep))
    else:
        at = predict(elements, pose, velocity, new_velocity, command, timestep, discretization)
    value, by_pose, by_velocity, by_new, by_parameters = _derivatives(
        elements,
        slots,
        slot_derivatives,
        pose,
        velocity,
        at,
        (command, command_derivatives),
        timestep,
        discretization,
    )
    count = elements.body_count
    if residual == "inverse":
        shape = (6 * count, count, 6)
        return Transition(
            value, by_pose.reshape(shape), by_velocity.reshape(shape), by_new.reshape(shape), by_parameters
        )
    columns = jnp.concatenate([value[:, None], by_pose, by_velocity, by_parameters], axis=1)
    solved = jnp.linalg.solve(by_new, columns)
    # F(φ) = 0 to first order at φ = at − solved[:, 0]; hence dφ = −solved.
    prediction = at.velocity - solved[:, 0].reshape(count, 6)
    return _mass_weighted(elements, slots, slot_derivatives, pose, new_velocity - prediction, solved[:, 1:])


def _mass_weighted(
    elements: Elements,
    slots: Slots,
    slot_derivatives: SlotDerivatives,
    pose: Pose,
    difference: Float[Array, "bodies 6"],
    minus_prediction: Float[Array, "r columns"],
) -> Transition:
    """``r = M(q) (v' − φ)`` with ``dr = M dv' − M dφ + dM (v' − φ)``; ``minus_prediction`` holds −dφ by pose, velocity, parameters."""
    count = elements.body_count

    def momentum(numbers: BodyNumbers, orientation: Array, difference: Array) -> Array:
        turn = rotations.matrix(orientation)
        return jnp.concatenate([numbers.mass * difference[:3], turn @ (numbers.inertia @ (turn.T @ difference[3:]))])

    def body(numbers, orientation, difference):
        def changed(inputs):
            own = _with_slots(numbers, slots.bodies, inputs[3:])
            result = momentum(own, rotations.plus(orientation, inputs[:3]), difference)
            return result, result

        zero = jnp.concatenate([jnp.zeros(3), _slot_values(numbers, slots.bodies)])
        slope, value = jax.jacfwd(changed, has_aux=True)(zero)
        mass = jax.vmap(lambda column: momentum(numbers, orientation, column))(jnp.eye(6)).T
        return value, slope, mass

    value, slope, mass = jax.vmap(body)(_bodies(elements), pose.orientation, difference)
    identity = jnp.eye(count)
    weighted = jnp.einsum("brc,bck->brk", mass, minus_prediction.reshape(count, 6, -1)).reshape(6 * count, -1)
    size = 6 * count
    turning = jnp.einsum("brc,bd->brdc", slope[..., :3], identity).reshape(size, count, 3)
    by_pose = weighted[:, :size].reshape(size, count, 6).at[:, :, 3:].add(turning)
    own = jnp.einsum("brk,bkp->brp", slope[..., 3:], slot_derivatives.bodies).reshape(size, -1)
    return Transition(
        value.ravel(),
        by_pose,
        weighted[:, size : 2 * size].reshape(size, count, 6),
        jnp.einsum("brc,bd->brdc", mass, identity).reshape(size, count, 6),
        weighted[:, 2 * size :] + own,
    )


def _derivatives(
    elements: Elements,
    slots: Slots,
    slot_derivatives: SlotDerivatives,
    pose: Pose,
    velocity: Array,
    at: Prediction,
    driven: tuple[Array, Array],
    timestep: Array,
    discretization: str,
) -> tuple[Array, Array, Array, Array, Array]:
    """``F`` and its derivatives by pose, velocity, new velocity (each ``6·bodies`` wide) and parameters."""
    command, command_derivatives = driven
    count = elements.body_count
    size = 6 * count
    value, by_state, by_parameters = _body_derivatives(
        elements, slots, slot_derivatives, (pose, velocity, at.velocity), driven, timestep, discretization
    )
    whole, old = with_world(pose, velocity)
    new = jnp.concatenate([at.velocity, jnp.zeros((1, 6))])
    for group, own_slots, slot_slopes, slip, sigma, loads in zip(
        elements.groups, slots.groups, slot_derivatives.groups, at.slips, at.sigmas, at.loads, strict=True
    ):
        pick = np.array(_sides(elements, group))
        moving = 6 * len(pick)

        def joint(element, pose, old, new, commands, sigma, slip, loads):
            def changed(inputs):
                states = inputs[: 3 * moving].reshape(3, len(pick), 6)
                numbers = inputs[3 * moving : 3 * moving + len(own_slots)]
                own_commands = inputs[3 * moving + len(own_slots) :]
                turned = pose.plus(jnp.zeros((2, 6)).at[pick].set(states[0]))
                found, geometry = balance.multipliers(
                    _with_slots(element, own_slots, numbers),
                    turned,
                    old.at[pick].set(states[1]),
                    new.at[pick].set(states[2]),
                    own_commands,
                    sigma,
                    slip,
                    timestep,
                    discretization,
                    loads,
                )
                along = found.axis + found.tangent
                impulse = balance.joint_impulse(found.gap, along, geometry)
                # The value shows what the gaps still lack, for the final Newton step; the derivative does not.
                return impulse, balance.joint_impulse(found.defect_gap, along, geometry)

            inputs = jnp.concatenate(
                [
                    jnp.zeros(moving),
                    old[pick].ravel(),
                    new[pick].ravel(),
                    _slot_values(element, own_slots),
                    commands,
                ]
            )
            return jax.jacfwd(changed, has_aux=True)(inputs)

        sides = balance.side_bodies(group)
        commands = balance.element_commands(group, command)
        optional = (None if slip is None else 0, None if loads is None else 0)
        slope, impulse = jax.vmap(joint, in_axes=(0, 0, 0, 0, 0, 0, *optional))(
            balance.as_elements(group), whole[sides], old[sides], new[sides], commands, sigma, slip, loads
        )
        place = _incidence(elements, group)
        picked = place[:, pick]
        value = value - jnp.einsum("nsb,nsr->br", place, impulse)
        states = slope[..., : 3 * moving].reshape(*slope.shape[:3], 3, len(pick), 6)
        by_state = by_state - jnp.einsum("nsb,nsrxtc,ntd->xbrdc", place, states, picked)
        local = slope[..., 3 * moving : 3 * moving + len(own_slots)]
        on_parameters = jnp.einsum("nsrk,nkp->nsrp", local, slot_slopes)
        by_command = slope[..., 3 * moving + len(own_slots) :]
        law_slopes = jax.vmap(lambda column: balance.element_commands(group, column), in_axes=1, out_axes=2)(
            command_derivatives
        )
        on_parameters = on_parameters + jnp.einsum("nsrl,nlp->nsrp", by_command, law_slopes)
        by_parameters = by_parameters - jnp.einsum("nsb,nsrp->brp", place, on_parameters)
    by_pose, by_velocity, by_new = by_state.reshape(3, size, size)
    return value.ravel(), by_pose, by_velocity, by_new, by_parameters.reshape(size, -1)


def _body_derivatives(
    elements: Elements,
    slots: Slots,
    slot_derivatives: SlotDerivatives,
    point: tuple[Pose, Array, Array],
    driven: tuple[Array, Array],
    timestep: Array,
    discretization: str,
) -> tuple[Array, Array, Array]:
    """Bodies' part of F ``(bodies, 6)``, its derivatives by states ``(3, bodies, 6, bodies, 6)`` and parameters."""
    pose, velocity, new_velocity = point
    command, command_derivatives = driven
    applied = body_forces.applied_wrench(elements, pose, command)

    def body(numbers, applied, orientation, old, new):
        def changed(inputs):
            turned = rotations.plus(orientation, inputs[:3])
            own = _with_slots(numbers, slots.bodies, inputs[15:])
            args = (own.mass, own.inertia, own.gravity, applied, turned, inputs[3:9], inputs[9:15])
            result = balance.body_balance(*args, timestep, discretization)
            return result, result

        inputs = jnp.concatenate([jnp.zeros(3), old, new, _slot_values(numbers, slots.bodies)])
        return jax.jacfwd(changed, has_aux=True)(inputs)

    slope, value = jax.vmap(body)(_bodies(elements), applied, pose.orientation, velocity, new_velocity)
    by_pose = jnp.concatenate([jnp.zeros((*slope.shape[:2], 3)), slope[..., :3]], axis=-1)
    stacked = jnp.stack([by_pose, slope[..., 3:9], slope[..., 9:15]])
    by_state = jnp.einsum("xbrc,bd->xbrdc", stacked, jnp.eye(elements.body_count))
    by_parameters = jnp.einsum("brk,bkp->brp", slope[..., 15:], slot_derivatives.bodies)
    if elements.forces:
        by_state, by_parameters = _wrench_derivatives(
            elements, pose, command, command_derivatives, by_state, by_parameters, timestep
        )
    return value, by_state, by_parameters


def _wrench_derivatives(
    elements: Elements,
    pose: Pose,
    command: Array,
    command_derivatives: Array,
    by_state: Array,
    by_parameters: Array,
    timestep: Array,
) -> tuple[Array, Array]:
    """External wrenches turn with body-fixed directions and follow their inputs."""

    def wrench(turn: Array, command: Array) -> Array:
        turned = Pose(pose.position, rotations.plus(pose.orientation, turn))
        return -timestep * body_forces.applied_wrench(elements, turned, command)

    by_turn, by_command = jax.jacfwd(wrench, argnums=(0, 1))(jnp.zeros_like(pose.position), command)
    by_state = by_state.at[0, ..., 3:].add(by_turn)
    return by_state, by_parameters + by_command @ command_derivatives
