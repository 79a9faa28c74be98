"""One transition of the mechanism, linearised: the dynamics residual of a time step and its derivatives.

Two residuals, both impulses [N s, N m s], both zero exactly where the stepper would go:

* ``inverse`` (the paper's): ``r = F(q, v, v')``, the impulse that the transition misses, with every multiplier taken at
  ``v'``. It carries ``1/Σ``, so stiff joints weigh the noise of the states by their stiffness and the fit breaks down.
* ``implicit``: ``r = M₀ (v' − φ(q, v))`` with ``φ`` the velocity that the stepper predicts, ``F(q, v, φ) = 0``. Equal
  to ``M M_Σ⁻¹ F`` when F is affine in ``v'``; joints of any stiffness are fine because constraint and friction forces
  are those of the predicted step. ``M₀`` is the constant :mod:`reference_mass`.

**Prediction.** Newton's method on ``F = 0`` from ``v'``: two iterations (one where F is affine), and another by the
derivatives' own pass. In each, dry friction is solved in the space of the sliding axes, a box problem of the size of
the number of frictional joints, by projected Gauss–Seidel. Each joint's branch (stuck, or sliding one way) is then
fixed.

**Derivatives.** A joint's impulse is ``Gᵀλ + Ḡᵀl`` with λ and l functions of a few scalars, so most of its
derivatives are products of rows that are known anyway. Forward mode is left for what they do not give: how the rows
themselves turn with the bodies (λ and l held), the scalar functions of laws and friction, and the parameters. The
implicit function theorem gives ``φ_x = −F_v'⁻¹ F_x``; neither Newton's iteration nor the friction problem is
differentiated. (Forward mode through the whole element took several times as long to compile and to run.)
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, body_forces, contact_problem, dry_friction, rows, sliding
from shadowfit.dynamics.contact_law import Branch, Impulses, branch_at, contact_points
from shadowfit.dynamics.discretization import SCHEMES
from shadowfit.dynamics.dry_friction import DryAxes
from shadowfit.dynamics.elements import Attachments, Elements, JointGroup
from shadowfit.dynamics.state import with_world
from shadowfit.estimation.residuals.contact_slopes import contact_impulse, contact_slopes
from shadowfit.geometry import Pose, rotations

Residual = Literal["implicit", "inverse"]
Friction = Literal["stepper", "mean"]
"""Dry friction of a step: as the stepper has it, or a mean over the step (:mod:`shadowfit.dynamics.sliding`)."""

# Linear solves of the contact problem, over all of Newton's iterations.
CONTACT_ROUNDS = 4


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which parameters act through what: places among the parameters of a recording."""

    geometry: tuple[int, ...] = ()
    """Attachment points and frames, lengths, centres of mass."""
    bodies: tuple[int, ...] = ()
    """Masses, inertias, gravity, external forces."""
    contacts: tuple[int, ...] = ()
    """What contacts depend on: their own numbers, masses, and the geometry of joints with stops."""


class Driven(eqx.Module):
    """What the parameters change besides the states: elements and commands, with derivatives (last axis)."""

    elements: Elements
    element_tangents: Elements
    reference: Float[Array, "bodies 6"]
    """M₀, the diagonal mass that weighs the implicit residual."""
    command: Float[Array, "inputs"]
    command_tangents: Float[Array, "inputs p"]


class Transition(eqx.Module):
    """Residual of one step (rows: bodies × 6) and its derivatives."""

    residual: Float[Array, "r"]
    by_pose: Float[Array, "r bodies 6"]
    by_velocity: Float[Array, "r bodies 6"]
    by_new_velocity: Float[Array, "r bodies 6"]
    by_parameters: Float[Array, "r p"]


def tangent_columns(tree: Any, columns: tuple[int, ...] | None = None) -> Any:
    """Derivatives stored along the last axis, as tangents along the first; all columns or some."""
    pick = slice(None) if columns is None else np.array(columns, int)
    return jax.tree.map(lambda x: jnp.moveaxis(x[..., pick], -1, 0), tree)


def _push_forward(function: Callable, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Derivatives of a function along stacked tangents (first axis); what is not an array stays as it is."""
    arrays, static = eqx.partition(primals, eqx.is_array)
    moving = eqx.filter(tangents, eqx.is_array)

    def one(tangent: Any) -> Any:
        return jax.jvp(lambda x: function(*eqx.combine(x, static)), (arrays,), (tangent,))[1]

    return jax.vmap(one)(moving)


def _columnwise(function: Callable, at: Float[Array, "n k"]) -> tuple[Float[Array, "n"], Float[Array, "n k"]]:
    """Value and derivatives of a function that treats the rows of ``at`` independently."""

    def along(column: Array) -> Array:
        return jax.jvp(function, (at,), (jnp.broadcast_to(column, at.shape),))[1]

    return function(at), jax.vmap(along, out_axes=1)(jnp.eye(at.shape[1]))


def _incidence(elements: Elements, group: JointGroup) -> np.ndarray:
    """``(n, 2, bodies)``: one where a side of a joint is on a body; the world has no place."""
    sides = balance.side_bodies(group)
    return (sides[..., None] == np.arange(elements.body_count)).astype(float)


@functools.lru_cache(maxsize=64)
def _pairs(sides: tuple[tuple[int, int], ...], count: int) -> np.ndarray:
    """``(bodies, bodies, k)``: the blocks (joint, side, side) of each pair of bodies; the last index means none."""
    entries: dict[tuple[int, int], list[int]] = {}
    for joint, pair in enumerate(sides):
        for s, first in enumerate(pair):
            for t, second in enumerate(pair):
                if first < count and second < count:
                    entries.setdefault((first, second), []).append(4 * joint + 2 * s + t)
    deepest = max((len(found) for found in entries.values()), default=1)
    table = np.full((count, count, deepest), 4 * len(sides))
    for (first, second), found in entries.items():
        table[first, second, : len(found)] = found
    return table


def _on_all_bodies(
    elements: Elements, group: JointGroup, blocks: Float[Array, "x n 2 6 2 6"]
) -> Float[Array, "x bodies 6 bodies 6"]:
    """Sum the blocks of the joints (side, row, side, column) into those of the bodies.

    By gathering: products with the incidence matrix take several times as long for these small blocks.
    """
    sides = tuple((int(a), int(b)) for a, b in balance.side_bodies(group))
    table = _pairs(sides, elements.body_count)
    flat = jnp.moveaxis(blocks, 4, 3).reshape(blocks.shape[0], -1, 6, 6)
    flat = jnp.concatenate([flat, jnp.zeros_like(flat[:, :1])], axis=1)
    placed = sum(flat[:, table[..., k]] for k in range(table.shape[2]))
    return jnp.moveaxis(placed, 3, 2)


def _through_loads(
    gap_rows: Float[Array, "n m 2 6"], loads_by: Float[Array, "x n m 2 6"]
) -> Float[Array, "x n 2 6 2 6"]:
    """``Gᵀ ∂λ``, summed over the few gap rows one by one, which is faster than a product of small matrices."""
    first = jnp.zeros((loads_by.shape[0], gap_rows.shape[0], 2, 6, 2, 6))
    return sum(
        (gap_rows[None, :, m, :, :, None, None] * loads_by[:, :, m, None, None] for m in range(gap_rows.shape[1])),
        first,
    )


# --- how multipliers depend on states ---


def _rows_of(geometry: rows.Geometry) -> Float[Array, "n m 2 6"]:
    return jnp.stack([geometry.gap_a, geometry.gap_b], axis=-2)


def _axis_of(geometry: rows.Geometry) -> Float[Array, "n 2 6"]:
    return jnp.stack([geometry.axis_a, geometry.axis_b], axis=-2)


def _turned(blocks: Float[Array, "n m 2 6"], turn: Float[Array, "n 2 3 3"]) -> Float[Array, "n m 2 6"]:
    """Rows for a rotation of the later (or earlier) pose as rows for what causes it."""
    turning = jnp.einsum("nmsi,nsij->nmsj", blocks[..., 3:], turn)
    return jnp.concatenate([blocks[..., :3], turning], axis=-1)


def _load_by_new(
    group: JointGroup, point: balance.JointPoint, new_velocity: Array, timestep: Array
) -> Float[Array, "n m 2 6"]:
    """``∂λ/∂v'``."""
    scale = (-1.0 / rows.relaxation(group, timestep).sigma)[..., None, None]
    if point.after is None:
        return scale * _rows_of(point.geometry)
    step = timestep * new_velocity[balance.side_bodies(group), 3:]
    return scale * _turned(_rows_of(point.after), rotations.left_jacobian(step))


def _load_by_old_and_pose(
    group: JointGroup, point: balance.JointPoint, velocity: Array, new_velocity: Array, timestep: Array
) -> tuple[Float[Array, "n m 2 6"], Float[Array, "n m 2 6"]]:
    """``∂λ/∂v`` and ``∂λ/∂q``; for SPOOK the latter without the turning of G."""
    relaxed = rows.relaxation(group, timestep)
    scale = (-1.0 / relaxed.sigma)[..., None, None]
    upsilon = relaxed.upsilon[..., None, None]
    now = _rows_of(point.geometry)
    if point.before is None or point.after is None:
        return -scale * upsilon * now, scale * upsilon * (4.0 / timestep) * now
    sides = balance.side_bodies(group)
    step_back, step_on = -timestep * velocity[sides, 3:], timestep * new_velocity[sides, 3:]
    before, after = _rows_of(point.before), _rows_of(point.after)
    carried = _turned(after, rotations.matrix(rotations.exp(step_on)))
    carried_back = _turned(before, rotations.matrix(rotations.exp(step_back)))
    by_pose = (carried - now + upsilon * (3.0 * now + carried_back)) / timestep
    return -scale * upsilon * _turned(before, rotations.left_jacobian(step_back)), scale * by_pose


def _scalars(point: balance.JointPoint) -> Float[Array, "n 3"]:
    return jnp.stack([point.geometry.position, point.speed, point.new_speed], axis=1)


# --- prediction ---


class Prediction(eqx.Module):
    """Where the stepper goes, to within one Newton step."""

    velocity: Float[Array, "bodies 6"]
    loads: tuple[Float[Array, "n m"] | None, ...]
    """Gap multipliers of each group's joints, if they are known better than from the gaps' defect."""
    rubbing: tuple[balance.Rubbing, ...]
    """How the dry friction of each group's joints acts."""
    branch: Branch | None
    """Branches of the contact points; None without contacts."""


_Carry = tuple[Array, tuple[Array, ...], tuple[Array, Array], tuple[Array, Impulses] | None, Branch | None]
"""Velocity, gap multipliers, branches and mobilities of axes, impulses of friction and contacts, contacts' branches."""

_Known = tuple[tuple[rows.Geometry, rows.Geometry | None], ...]
"""Geometries of each group that do not depend on the new velocity."""


class _Pass(eqx.Module):
    """Frictionless F and its slope at one velocity, with what the friction problem needs."""

    missing: Float[Array, "r"]
    slope: Float[Array, "r r"]
    loads: tuple[Float[Array, "n m"], ...]
    load_slopes: tuple[Float[Array, "n m r"], ...]
    axes: tuple[Float[Array, "n r"], ...]
    speeds: tuple[Float[Array, "n"], ...]
    """Speeds of the axes at the start of the step."""
    limits: tuple[tuple[Float[Array, "n m"], Float[Array, "n"]] | None, ...]
    """Weights of the gap multipliers and level of dry friction; None for groups without."""


def _evaluate(
    elements: Elements,
    pose: Pose,
    velocity: Array,
    new_velocity: Array,
    command: Array,
    known: _Known,
    timestep: Array,
    discretization: str,
) -> _Pass:
    """Frictionless ``F``, ``F_v'``, and the gap multipliers with their slopes."""
    count = elements.body_count
    size = 6 * count
    whole, old = with_world(pose, velocity)
    new = jnp.concatenate([new_velocity, jnp.zeros((1, 6))])
    missing = balance.bodies_balance(elements, pose, velocity, new_velocity, command, timestep, discretization)
    slopes = balance.body_slopes(elements, pose, velocity, new_velocity, timestep, discretization)
    slope = jnp.einsum("brc,bd->brdc", slopes.by_new_velocity, jnp.eye(count))
    loads, load_slopes, axes, speeds, limits = [], [], [], [], []
    for group, start in zip(elements.groups, known, strict=True):
        point = balance.joint_point(group, whole, old, new, timestep, discretization, start)
        law, law_slope = jax.jvp(
            lambda s, group=group, point=point: balance.law_impulse(
                group, point.geometry.position, point.speed, s, command, timestep, discretization
            ),
            (point.new_speed,),
            (jnp.ones(group.size),),
        )
        place = _incidence(elements, group)
        load = balance.load(group, point, timestep)
        load_by_new = _load_by_new(group, point, new, timestep)
        axis = _axis_of(point.geometry)
        impulse = balance.joint_impulse(load, law, point.geometry)
        missing = missing - jnp.einsum("nsb,nsr->br", place, impulse)
        by_new = _through_loads(_rows_of(point.geometry), load_by_new[None])
        by_new = by_new + law_slope[:, None, None, None, None] * axis[:, :, :, None, None] * axis[:, None, None]
        slope = slope - _on_all_bodies(elements, group, by_new)[0]
        loads.append(load)
        load_slopes.append(jnp.einsum("nmtc,ntd->nmdc", load_by_new, place).reshape(group.size, -1, size))
        axes.append(jnp.einsum("nsb,nsr->nbr", place, axis).reshape(group.size, size))
        speeds.append(point.speed)
        own = (group, point.geometry.position, point.speed, command)
        limits.append(None if group.friction is None else rows.friction_limits(*own))
    return _Pass(
        missing.ravel(),
        slope.reshape(size, size),
        tuple(loads),
        tuple(load_slopes),
        tuple(axes),
        tuple(speeds),
        tuple(limits),
    )


def predict(
    elements: Elements,
    pose: Pose,
    velocity: Float[Array, "bodies 6"],
    start: Float[Array, "bodies 6"],
    command: Float[Array, "inputs"],
    known: _Known,
    timestep: Float[Array, ""],
    discretization: str,
    friction: Friction,
) -> Prediction:
    """The stepper's new velocity from a guess, with multipliers and friction branches."""
    sigmas = balance.stick_sigmas(elements, pose, timestep)
    frictional = [i for i, group in enumerate(elements.groups) if group.friction is not None]
    iterations = 1 if SCHEMES[discretization].affine else 2
    points = contact_points(elements, *with_world(pose, velocity), timestep) if elements.contacts else None

    def newton(_: int, carry: _Carry) -> _Carry:
        now = carry[0].ravel()
        found = _evaluate(elements, pose, velocity, carry[0], command, known, timestep, discretization)
        axes = jnp.concatenate([found.axes[i] for i in frictional] or [jnp.zeros((0, now.size))])
        pushing = axes if points is None else jnp.concatenate([axes, contact_problem.point_rows(points)])
        solved = small_solve(found.slope, jnp.concatenate([found.missing[:, None], pushing.T], axis=1), definite=True)
        free, response = now - solved[:, 0], solved[:, 1 : 1 + len(axes)]
        dry = _dry_axes(elements, frictional, now, axes, response, found, sigmas, timestep, friction)
        if points is None:
            reached, slip = dry_friction.settle(dry, free)
            impulses, branch = None, None
        else:
            assert carry[3] is not None
            answers = contact_problem.responses(points, solved[:, 1 + len(axes) :])
            problem = contact_problem.ContactProblem(found.slope, free, points, answers, dry)
            iterate, branches = contact_problem.settle(problem, carry[3], CONTACT_ROUNDS // iterations)
            reached, impulses = iterate.velocity, (iterate.friction, iterate.contacts)
            slip, branch = branches.slip, branches.branch
        moved = reached - now
        loads = tuple(load + slope @ moved for load, slope in zip(found.loads, found.load_slopes, strict=True))
        return reached.reshape(-1, 6), loads, (slip, jnp.diagonal(dry.coupling)), impulses, branch

    count = sum(elements.groups[i].size for i in frictional)
    no_loads = tuple(jnp.zeros((group.size, group.gap_rows)) for group in elements.groups)
    apart, impulses = None, None
    if points is not None:
        apart = Branch(jnp.zeros_like(points.bias), jnp.zeros_like(points.tangent[:, :, 0]))
        impulses = contact_problem.no_impulses(points, count)
    first_carry = (start, no_loads, (jnp.zeros(count), jnp.zeros(count)), impulses, apart)
    reached, loads, (slip, mobility), _, branch = jax.lax.fori_loop(0, iterations, newton, first_carry)
    rubbing: list[balance.Rubbing] = [balance.Sticking(sigma) for sigma in sigmas]
    first = 0
    for i in frictional:
        own = slice(first, first + elements.groups[i].size)
        still = balance.Sticking(sigmas[i], slip[own])
        rubbing[i] = balance.Turning(mobility[own]) if _turns(elements, friction) else still
        first = own.stop
    return Prediction(reached, loads, tuple(rubbing), branch)


def _turns(elements: Elements, friction: Friction) -> bool:
    """Whether friction is a mean over the step instead of the stepper's; speeds jump where bodies collide."""
    return friction == "mean" and not elements.contacts


def _dry_axes(
    elements: Elements,
    frictional: list[int],
    here: Float[Array, "r"],
    axes: Float[Array, "f r"],
    response: Float[Array, "r f"],
    found: _Pass,
    sigmas: tuple[Array, ...],
    timestep: Array,
    friction: Friction,
) -> DryAxes:
    """Dry friction of the joints, linearised at a velocity."""
    none = [jnp.zeros(0)]
    coupling = axes @ response
    rule: dry_friction.Clipped | dry_friction.Averaged
    if not _turns(elements, friction):
        rule = dry_friction.Clipped(jnp.concatenate([sigmas[i] for i in frictional] or none))
    else:
        laws = [elements.groups[i].friction for i in frictional]
        times = jnp.concatenate([law.stick_time for law in laws if law is not None] or none)
        width = sliding.stick_width(times, jnp.diagonal(coupling), jnp.ones(len(axes)), timestep)
        rule = dry_friction.Averaged(jnp.concatenate([found.speeds[i] for i in frictional] or none), width)
    limits = [limit for limit in found.limits if limit is not None]
    return DryAxes(
        axes,
        rule,
        response,
        coupling,
        tuple(weight for weight, _ in limits),
        tuple(timestep * level for _, level in limits),
        tuple(found.loads[i] for i in frictional),
        tuple(found.load_slopes[i] for i in frictional),
        tuple(found.load_slopes[i] @ response for i in frictional),
        here,
    )


# --- linearisation ---


def linearise(
    driven: Driven,
    columns: Columns,
    pose: Pose,
    velocity: Float[Array, "bodies 6"],
    new_velocity: Float[Array, "bodies 6"],
    timestep: Float[Array, ""],
    residual: Residual,
    discretization: str,
    friction: Friction = "stepper",
) -> Transition:
    """Residual of one transition with its derivatives."""
    elements = driven.elements
    count = elements.body_count
    whole, old = with_world(pose, velocity)
    known = tuple(balance.start_geometry(group, whole, old, timestep, discretization) for group in elements.groups)
    if residual == "inverse":
        none = tuple(None for _ in elements.groups)
        branch = None
        if elements.contacts:
            branch = branch_at(contact_points(elements, whole, old, timestep), new_velocity.ravel())
        sigmas = balance.stick_sigmas(elements, pose, timestep)
        at = Prediction(new_velocity, none, tuple(balance.Sticking(sigma) for sigma in sigmas), branch)
    else:
        at = predict(elements, pose, velocity, new_velocity, driven.command, known, timestep, discretization, friction)
    value, by_state, by_parameters = _derivatives(driven, columns, pose, velocity, at, known, timestep, discretization)
    if residual == "inverse":
        by_pose, by_velocity, by_new = by_state.reshape(3, 6 * count, count, 6)
        return Transition(value, by_pose, by_velocity, by_new, by_parameters)
    by_pose, by_velocity, by_new = by_state
    # F(φ) = 0 to first order at φ = at − F_v'⁻¹ F; hence dφ = −F_v'⁻¹ F_x.
    right = jnp.concatenate([value[:, None], by_pose, by_velocity, by_parameters], axis=1)
    solved = small_solve(by_new, right, definite=True)
    prediction = at.velocity - solved[:, 0].reshape(count, 6)
    return _mass_weighted(driven.reference, new_velocity - prediction, solved[:, 1:])


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
    driven: Driven,
    columns: Columns,
    pose: Pose,
    velocity: Array,
    at: Prediction,
    known: _Known,
    timestep: Array,
    discretization: str,
) -> tuple[Float[Array, "r"], Float[Array, "3 r r"], Float[Array, "r p"]]:
    """``F`` and its derivatives by pose, velocity and new velocity, and by parameters."""
    elements = driven.elements
    size = 6 * elements.body_count
    value, by_state, by_parameters = _body_derivatives(
        driven, columns, pose, velocity, at.velocity, timestep, discretization
    )
    whole, old = with_world(pose, velocity)
    new = jnp.concatenate([at.velocity, jnp.zeros((1, 6))])
    for index, group in enumerate(elements.groups):
        place = _incidence(elements, group)
        friction = at.rubbing[index]
        point = balance.joint_point(group, whole, old, new, timestep, discretization, known[index])
        defect_load = balance.load(group, point, timestep)
        known_load = at.loads[index]
        load = defect_load if known_load is None else known_load
        impulse, by_states = _joint_derivatives(
            elements, group, whole, old, new, driven.command, point, load, friction, timestep, discretization
        )
        # The value shows what the gaps still lack, for the final Newton step; the derivatives do not.
        impulse = impulse + balance.joint_impulse(defect_load - load, jnp.zeros(group.size), point.geometry)
        value = value - jnp.einsum("nsb,nsr->br", place, impulse)
        by_state = by_state - _on_all_bodies(elements, group, by_states)
        by_numbers = _number_derivatives(
            driven, columns, index, (whole, old, new), point, load, friction, timestep, discretization
        )
        by_parameters = by_parameters - jnp.einsum("nsb,pnsr->brp", place, by_numbers)
    value, by_state = value.ravel(), by_state.reshape(3, size, size)
    by_parameters = by_parameters.reshape(size, -1)
    if at.branch is None:
        return value, by_state, by_parameters
    states = (whole, old, new, at.branch, timestep)
    touching = contact_slopes(elements, *states)
    if columns.contacts:
        tangents = tangent_columns(driven.element_tangents, columns.contacts)
        by_numbers = _push_forward(lambda e: contact_impulse(e, *states), (elements,), (tangents,))
        by_parameters = jnp.asarray(by_parameters).at[:, np.array(columns.contacts)].add(-by_numbers.T)
    return value - touching.impulse, by_state - touching.by_state, by_parameters


def _body_derivatives(
    driven: Driven,
    columns: Columns,
    pose: Pose,
    velocity: Array,
    new_velocity: Array,
    timestep: Array,
    discretization: str,
) -> tuple[Float[Array, "bodies 6"], Float[Array, "3 bodies 6 bodies 6"], Float[Array, "bodies 6 p"]]:
    """The bodies' part of F and its derivatives; each body depends on its own state alone."""
    elements, command = driven.elements, driven.command
    value = balance.bodies_balance(elements, pose, velocity, new_velocity, command, timestep, discretization)
    slopes = balance.body_slopes(elements, pose, velocity, new_velocity, timestep, discretization)
    by_pose = jnp.concatenate([jnp.zeros_like(slopes.by_turn), slopes.by_turn], axis=2)
    own = jnp.stack([by_pose, slopes.by_velocity, slopes.by_new_velocity])
    by_state = jnp.einsum("xbrc,bd->xbrdc", own, jnp.eye(elements.body_count))
    by_parameters = jnp.zeros((*velocity.shape, driven.command_tangents.shape[1]))
    if columns.bodies:
        tangents = tangent_columns(driven.element_tangents, columns.bodies)
        by_numbers = _push_forward(
            lambda e: balance.bodies_balance(e, pose, velocity, new_velocity, command, timestep, discretization),
            (elements,),
            (tangents,),
        )
        by_parameters = by_parameters.at[..., np.array(columns.bodies)].add(jnp.moveaxis(by_numbers, 0, -1))
    if elements.forces:
        by_turn, by_command = jax.jacfwd(
            lambda turn, c: body_forces.applied_wrench(
                elements, Pose(pose.position, rotations.plus(pose.orientation, turn)), c
            ),
            argnums=(0, 1),
        )(jnp.zeros_like(pose.position), command)
        by_state = by_state.at[0, ..., 3:].add(-timestep * by_turn)
        by_parameters = by_parameters - timestep * by_command @ driven.command_tangents
    return value, by_state, by_parameters


def _joint_derivatives(
    elements: Elements,
    group: JointGroup,
    pose: Pose,
    old: Array,
    new: Array,
    command: Array,
    point: balance.JointPoint,
    load: Float[Array, "n m"],
    friction: balance.Rubbing,
    timestep: Array,
    discretization: str,
) -> tuple[Float[Array, "n 2 6"], Float[Array, "3 n 2 6 2 6"]]:
    """Impulse of each joint on its two bodies, and its derivatives by pose, velocity and new velocity."""
    axis = _axis_of(point.geometry)
    law, law_by = _columnwise(
        lambda x: balance.law_impulse(group, x[:, 0], x[:, 1], x[:, 2], command, timestep, discretization),
        _scalars(point),
    )
    dry, dry_by = _columnwise(
        lambda x: balance.friction_impulse(group, (x[:, 0], x[:, 1], x[:, 2]), x[:, 3:], friction, command, timestep),
        jnp.concatenate([_scalars(point), load], axis=1),
    )
    along = law + dry
    by_turn, load_by_turn, scalars_by_pose = _turning(
        elements, group, pose, old, new, load, along, timestep, discretization
    )
    load_by_old, load_by_pose = _load_by_old_and_pose(group, point, old, new, timestep)
    load_by = jnp.stack([load_by_pose + load_by_turn, load_by_old, _load_by_new(group, point, new, timestep)])
    zero = jnp.zeros_like(axis)
    # position, speed and new speed of the axis by pose, velocity and new velocity
    scalars_by = jnp.stack(
        [scalars_by_pose, jnp.stack([zero, axis, zero], axis=1), jnp.stack([zero, zero, axis], axis=1)]
    )
    along_by = jnp.einsum("nk,xnktc->xntc", law_by + dry_by[:, :3], scalars_by)
    along_by = along_by + jnp.einsum("nm,xnmtc->xntc", dry_by[:, 3:], load_by)
    derivative = _through_loads(_rows_of(point.geometry), load_by)
    derivative = derivative + axis[None, :, :, :, None, None] * along_by[:, :, None, None]
    turning = jnp.stack([by_turn, jnp.zeros_like(by_turn), jnp.zeros_like(by_turn)])
    return balance.joint_impulse(load, along, point.geometry), derivative + turning


def _as_pairs(group: JointGroup) -> JointGroup:
    """The joints of a group as groups of one joint between bodies 0 and 1, for ``vmap``; without laws."""
    bare = eqx.tree_at(lambda g: g.laws, group, ())
    arrays, static = eqx.partition(bare, eqx.is_array)
    pairs = eqx.combine(jax.tree.map(lambda x: x[:, None], arrays), static)
    return dataclasses.replace(
        pairs,
        a=Attachments((0,), pairs.a.levers, pairs.a.frames),
        b=Attachments((1,), pairs.b.levers, pairs.b.frames),
        joints=(0,),
    )


def _turning(
    elements: Elements,
    group: JointGroup,
    pose: Pose,
    old: Array,
    new: Array,
    load: Array,
    along: Array,
    timestep: Array,
    discretization: str,
) -> tuple[Float[Array, "n 2 6 2 6"], Float[Array, "n m 2 6"], Float[Array, "n 3 2 6"]]:
    """Derivatives by the pose of ``Gᵀλ + Ḡᵀl`` (λ, l fixed), of SPOOK's multipliers through G, of the axis' scalars."""
    relaxed = rows.relaxation(group, timestep)
    sides = balance.side_bodies(group)
    # Where one side is the world in all joints, its derivatives are not needed.
    moving = tuple(int(side) for side in np.flatnonzero((sides < elements.body_count).any(axis=0)))

    def on_both(values: Float[Array, "... sides 6"]) -> Float[Array, "... 2 6"]:
        if len(moving) == 2:
            return values
        still = jnp.zeros_like(values)
        return jnp.concatenate([values, still] if moving == (0,) else [still, values], axis=-2)

    def joint(
        pair: JointGroup, pose: Pose, old: Array, new: Array, load: Array, along: Array, sigma: Array, upsilon: Array
    ) -> tuple[Array, Array, Array]:
        def moved(increment: Array) -> tuple[Array, Array, Array]:
            geometry = rows.geometry(pair, pose.plus(on_both(increment)))
            axis = _axis_of(geometry)[0]
            scalars = jnp.stack([geometry.position[0], jnp.sum(axis * old), jnp.sum(axis * new)])
            impulse = balance.joint_impulse(load[None], along[None], geometry)[0]
            if not SCHEMES[discretization].affine:
                return impulse, jnp.zeros_like(load), scalars
            closing = rows.apply(geometry.gap_a, geometry.gap_b, pair, new - upsilon * old)
            return impulse, -closing[0] / sigma, scalars

        slopes = jax.jacfwd(moved)(jnp.zeros((len(moving), 6)))
        return jax.tree.map(on_both, slopes)

    return jax.vmap(joint)(
        _as_pairs(group), pose[sides], old[sides], new[sides], load, along, relaxed.sigma, relaxed.upsilon
    )


def _number_derivatives(
    driven: Driven,
    columns: Columns,
    index: int,
    states: tuple[Pose, Array, Array],
    point: balance.JointPoint,
    load: Float[Array, "n m"],
    friction: balance.Rubbing,
    timestep: Array,
    discretization: str,
) -> Float[Array, "p n 2 6"]:
    """Derivatives of each joint's impulse by the parameters.

    Most change only λ and l through scalars (friction, laws, compliance, commands); those of the geometry need the
    whole joint again.
    """
    group = driven.elements.groups[index]

    def along(group: JointGroup, point: balance.JointPoint, loads: Array, command: Array) -> Array:
        scalars = (point.geometry.position, point.speed, point.new_speed)
        law = balance.law_impulse(group, *scalars, command, timestep, discretization)
        return law + balance.friction_impulse(group, scalars, loads, friction, command, timestep)

    def impulse(group: JointGroup, point: balance.JointPoint, command: Array) -> Array:
        found = balance.load(group, point, timestep)
        loads = load + (found - jax.lax.stop_gradient(found))
        return balance.joint_impulse(loads, along(group, point, loads, command), point.geometry)

    tangents = (tangent_columns(driven.element_tangents.groups[index]), driven.command_tangents.T)
    by_scalars = _push_forward(lambda g, c: impulse(g, point, c), (group, driven.command), tangents)
    if not columns.geometry:
        return by_scalars

    def whole(group: JointGroup) -> Array:
        again = balance.joint_point(group, *states, timestep, discretization)
        return impulse(group, again, driven.command)

    picked = tangent_columns(driven.element_tangents.groups[index], columns.geometry)
    return by_scalars.at[np.array(columns.geometry)].set(_push_forward(whole, (group,), (picked,)))
