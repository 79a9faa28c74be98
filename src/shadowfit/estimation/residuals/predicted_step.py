"""Where the stepper goes from a state, with the multipliers and branches of dry friction and contacts there.

Newton's method on ``F = 0`` from a guess of the new velocity: two iterations (one where F is affine), and another by
the pass that takes derivatives (:mod:`transition`). In each, dry friction is solved in the space of the sliding axes, a
box problem of the size of the number of frictional joints, by projected Gauss–Seidel. Each joint's branch (stuck, or
sliding one way) is then fixed.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, contact_problem, dry_friction, rows, sliding
from shadowfit.dynamics.contact_law import Branch, Impulses, contact_points
from shadowfit.dynamics.discretization import SCHEMES
from shadowfit.dynamics.dry_friction import DryAxes
from shadowfit.dynamics.elements import Elements
from shadowfit.dynamics.state import Moving, with_world
from shadowfit.estimation.residuals.equations import Friction
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree

# Linear solves of the contact problem, over all of Newton's iterations.
CONTACT_ROUNDS = 4


class PredictedStep(PyTree):
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

Known = tuple[balance.Geometries, ...]
"""Geometries of each group that do not depend on the new velocity."""


class _Pass(PyTree):
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

    def dry_axes(self, frictional: list[int]) -> Float[Array, "f r"]:
        """Axes of the joints of some groups, as rows over the bodies."""
        return jnp.concatenate([self.axes[i] for i in frictional] or [jnp.zeros((0, self.missing.size))])


def _evaluate(elements: Elements, step: Moving, known: Known, discretization: str) -> _Pass:
    """Frictionless ``F``, ``F_v'``, and the gap multipliers with their slopes."""
    command, size = step.command, 6 * elements.body_count

    def missing_and_loads(increments: Float[Array, "r"]) -> Float[Array, "x"]:
        moved = dataclasses.replace(step, new_velocity=step.new_velocity + increments.reshape(-1, 6))
        impulse, loads = balance.missing(elements, moved, discretization, [None] * len(known), start=known)
        return jnp.concatenate([impulse.ravel(), *(load.ravel() for load in loads)])

    whole, axes, speeds, limits = step.with_world(), [], [], []
    for group, start in zip(elements.groups, known, strict=True):
        point = balance.joint_point(group, whole, discretization, start)
        axes.append(rows.axis_rows(elements, group, point.geometry))
        speeds.append(point.speed)
        here = (group, point.geometry.position, point.speed, command)
        limits.append(None if group.friction is None else rows.friction_limits(*here))
    ends = size + np.cumsum([0, *(group.size * group.gap_rows for group in elements.groups)])
    (missing, *loads), (slope, *load_slopes) = (
        jnp.split(found, ends[:-1]) for found in slopes(missing_and_loads, jnp.zeros(size))
    )
    return _Pass(
        missing,
        slope,
        tuple(x.reshape(group.size, -1) for group, x in zip(elements.groups, loads, strict=True)),
        tuple(x.reshape(group.size, -1, size) for group, x in zip(elements.groups, load_slopes, strict=True)),
        tuple(axes),
        tuple(speeds),
        tuple(limits),
    )


def predicted_step(
    elements: Elements, step: Moving, known: Known, discretization: str, friction: Friction
) -> PredictedStep:
    """The stepper's new velocity, guessed by that of the step, with multipliers and friction branches."""
    timestep = step.timestep
    sigmas = balance.stick_sigmas(elements, step.pose, timestep)
    frictional = _frictional(elements)
    iterations = 1 if SCHEMES[discretization].affine else 2
    points = contact_points(elements, *with_world(step.pose, step.velocity), timestep) if elements.contacts else None

    def newton(_: int, carry: _Carry) -> _Carry:
        now = carry[0].ravel()
        here = _evaluate(elements, dataclasses.replace(step, new_velocity=carry[0]), known, discretization)
        axes = here.dry_axes(frictional)
        pushing = axes if points is None else jnp.concatenate([axes, contact_problem.point_rows(points)])
        solved = small_solve(here.slope, jnp.concatenate([here.missing[:, None], pushing.T], axis=1), definite=True)
        free, response = now - solved[:, 0], solved[:, 1 : 1 + len(axes)]
        rule = _friction_rule(elements, here, jnp.diagonal(axes @ response), sigmas, timestep, friction)
        dry = _dry_axes(elements, here, rule, now, response, timestep)
        if points is None:
            reached, slip = dry_friction.settle(dry, free)
            impulses, branch = None, None
        else:
            assert carry[3] is not None
            answers = contact_problem.responses(points, solved[:, 1 + len(axes) :])
            problem = contact_problem.ContactProblem(here.slope, free, points, answers, dry)
            iterate, branches = contact_problem.settle(problem, carry[3], CONTACT_ROUNDS // iterations)
            reached, impulses = iterate.velocity, (iterate.friction, iterate.contacts)
            slip, branch = branches.slip, branches.branch
        moved = reached - now
        loads = tuple(load + slope @ moved for load, slope in zip(here.loads, here.load_slopes, strict=True))
        return reached.reshape(-1, 6), loads, (slip, jnp.diagonal(dry.coupling)), impulses, branch

    count = sum(elements.groups[i].size for i in frictional)
    no_loads = tuple(jnp.zeros((group.size, group.gap_rows)) for group in elements.groups)
    apart, impulses = None, None
    if points is not None:
        apart = Branch(jnp.zeros_like(points.bias), jnp.zeros_like(points.tangent[:, :, 0]))
        impulses = contact_problem.no_impulses(points, count)
    first_carry = (step.new_velocity, no_loads, (jnp.zeros(count), jnp.zeros(count)), impulses, apart)
    reached, loads, (slip, mobility), _, branch = jax.lax.fori_loop(0, iterations, newton, first_carry)
    rubbing: list[balance.Rubbing] = [balance.Sticking(sigma) for sigma in sigmas]
    first = 0
    for i in frictional:
        group = slice(first, first + elements.groups[i].size)
        still = balance.Sticking(sigmas[i], slip[group])
        rubbing[i] = balance.Turning(mobility[group]) if _turns(elements, friction) else still
        first = group.stop
    return PredictedStep(reached, loads, tuple(rubbing), branch)


def _turns(elements: Elements, friction: Friction) -> bool:
    """Whether friction is a mean over the step instead of the stepper's; speeds jump where bodies collide."""
    return friction == "mean" and not elements.contacts


def _frictional(elements: Elements) -> list[int]:
    """Groups whose joints have dry friction."""
    return [i for i, group in enumerate(elements.groups) if group.friction is not None]


def _friction_rule(
    elements: Elements,
    here: _Pass,
    mobility: Float[Array, "f"],
    sigmas: tuple[Array, ...],
    timestep: Array,
    friction: Friction,
) -> dry_friction.Clipped | dry_friction.Averaged:
    """How the impulses of the frictional axes follow from their speeds."""
    none, frictional = [jnp.zeros(0)], _frictional(elements)
    if not _turns(elements, friction):
        return dry_friction.Clipped(jnp.concatenate([sigmas[i] for i in frictional] or none))
    laws = [elements.groups[i].friction for i in frictional]
    times = jnp.concatenate([law.stick_time for law in laws if law is not None] or none)
    width = sliding.stick_width(times, mobility, timestep)
    return dry_friction.Averaged(jnp.concatenate([here.speeds[i] for i in frictional] or none), width)


def _dry_axes(
    elements: Elements,
    here: _Pass,
    rule: dry_friction.Clipped | dry_friction.Averaged,
    velocity: Float[Array, "r"],
    response: Float[Array, "r f"],
    timestep: Array,
) -> DryAxes:
    """Dry friction of the joints, linearised at a velocity."""
    frictional = _frictional(elements)
    axes = here.dry_axes(frictional)
    limits = [limit for limit in here.limits if limit is not None]
    return DryAxes(
        axes,
        rule,
        response,
        axes @ response,
        tuple(weight for weight, _ in limits),
        tuple(timestep * level for _, level in limits),
        tuple(here.loads[i] for i in frictional),
        tuple(here.load_slopes[i] for i in frictional),
        tuple(here.load_slopes[i] @ response for i in frictional),
        velocity,
    )
