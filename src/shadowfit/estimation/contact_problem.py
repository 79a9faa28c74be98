"""Contacts and dry friction of a predicted step: which points touch, which stick, which slide.

Sought is the velocity with

    S (v − v₀) = Σ_points [Cᵀ λ_n(v) + Dᵀ λ_t(v)] + Ḡᵀ λ_f(v)

where ``v₀`` is where the bodies would go without contacts and friction, ``S = ∂F/∂v'`` and the impulses are the
piecewise linear functions of :mod:`~shadowfit.dynamics.contact_law` and :mod:`dry_friction`. Some sweeps of projected
Gauss–Seidel come near; what they do not settle soon is how redundant points (four corners on a plane) share their
load. So the branches they give are taken, the linear system of these branches is solved, and branches are corrected by
one Gauss–Seidel step of each point alone, some times. The last correction is left to the caller's own Newton step.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics.contact_law import Branch, Impulses, Points, impulses_on, projected, slip_of
from shadowfit.estimation import dry_friction
from shadowfit.estimation.dry_friction import DryAxes

# Linear solves on the branches that Gauss–Seidel finds.
ROUNDS = 4


class Responses(eqx.Module):
    """How the bodies answer to impulses at the points, and the inverse stiffness of each point alone."""

    normal: Float[Array, "p r"]
    tangent: Float[Array, "q 2 r"]
    normal_step: Float[Array, "p"]
    tangent_step: Float[Array, "q"]


class Settled(eqx.Module):
    """A velocity, and the branches on which to solve for the next one."""

    velocity: Float[Array, "r"]
    slip: Float[Array, "f"]
    branch: Branch


def point_rows(points: Points) -> Float[Array, "3p r"]:
    """All rows of the points, in the order in which :func:`responses` takes the solutions."""
    return jnp.concatenate([points.normal, points.tangent.reshape(-1, points.normal.shape[1])])


def responses(points: Points, solved: Float[Array, "r 3p"]) -> Responses:
    """From ``S⁻¹`` times the rows of :func:`point_rows`."""
    count = points.normal.shape[0]
    normal, tangent = solved.T[:count], solved.T[count:].reshape(points.tangent.shape)
    own = jnp.sum(points.normal * normal, axis=1)
    # The two tangents of a point together: a bound of the largest eigenvalue of their coupling.
    coupling = jnp.abs(jnp.einsum("qtr,qsr->qts", points.tangent, tangent))
    widest = jnp.max(jnp.sum(coupling, axis=2), axis=1)
    return Responses(normal, tangent, 1.0 / (own + points.sigma), 1.0 / (widest + points.tangent_sigma))


def settle(
    slope: Float[Array, "r r"], free: Float[Array, "r"], points: Points, answers: Responses, dry: DryAxes
) -> Settled:
    """Velocity and branches of contacts and of the joints' friction."""
    swept = _swept(free, points, answers, dry)

    def improve(_: int, at: Settled) -> Settled:
        velocity = _on_branches(slope, free, points, dry, at)
        branch = _corrected(points, answers, at.branch, velocity)
        return Settled(velocity, dry_friction.corrected_branches(dry, at.slip, velocity), branch)

    return jax.lax.fori_loop(0, ROUNDS, improve, swept)


def _swept(free: Array, points: Points, answers: Responses, dry: DryAxes) -> Settled:
    """Projected Gauss–Seidel from no impulses at all."""

    def sweep(_: int, carry: tuple[Array, Array, Impulses]) -> tuple[Array, Array, Impulses]:
        velocity, rubbing, own = carry
        smooth = velocity - dry.response @ rubbing
        rubbing = dry_friction.sweep(dry, dry_friction.unrubbed(dry, smooth), rubbing)
        velocity, own = _swept_points(points, answers, smooth + dry.response @ rubbing, own)
        return velocity, rubbing, own

    nothing = Impulses(jnp.zeros_like(points.bias), jnp.zeros_like(points.tangent[:, :, 0]))
    start = (free, jnp.zeros(dry.axes.shape[0]), nothing)
    velocity, rubbing, own = jax.lax.fori_loop(0, dry_friction.SWEEPS, sweep, start)
    seen = dry_friction.unrubbed(dry, velocity - dry.response @ rubbing)
    slip = slip_of(
        _tangent_trial(points, answers, own.tangent, velocity), points.coefficient * own.normal[points.rubbing]
    )
    branch = Branch(jnp.where(own.normal > 0.0, 1.0, 0.0), slip)
    return Settled(velocity, dry_friction.branches(dry, seen, rubbing), branch)


def _swept_points(points: Points, answers: Responses, velocity: Array, own: Impulses) -> tuple[Array, Impulses]:
    normal, tangent = own.normal, own.tangent
    for i in range(points.normal.shape[0]):
        closing = points.normal[i] @ velocity + points.bias[i] + points.sigma[i] * normal[i]
        value = jnp.maximum(normal[i] - answers.normal_step[i] * closing, 0.0)
        velocity = velocity + answers.normal[i] * (value - normal[i])
        normal = normal.at[i].set(value)
    for j, i in enumerate(points.frictional):
        sliding = points.tangent[j] @ velocity + points.tangent_sigma[j] * tangent[j]
        value = projected(tangent[j] - answers.tangent_step[j] * sliding, points.coefficient[j] * normal[i])
        velocity = velocity + (value - tangent[j]) @ answers.tangent[j]
        tangent = tangent.at[j].set(value)
    return velocity, Impulses(normal, tangent)


def _tangent_trial(points: Points, answers: Responses, tangent: Array, velocity: Array) -> Float[Array, "q 2"]:
    sliding = points.sliding(velocity) + points.tangent_sigma[:, None] * tangent
    return tangent - answers.tangent_step[:, None] * sliding


def _on_branches(slope: Array, free: Array, points: Points, dry: DryAxes, at: Settled) -> Float[Array, "r"]:
    """The velocity on fixed branches: one Newton step, exact up to the signs of the joints' loads."""

    def push(velocity: Array) -> Array:
        contacts = points.push(impulses_on(points, at.branch, velocity))
        return contacts + dry_friction.impulses_on(dry, at.slip, velocity) @ dry.axes

    missing = slope @ (at.velocity - free) - push(at.velocity)
    return at.velocity - small_solve(slope - jax.jacfwd(push)(at.velocity), missing[:, None])[:, 0]


def _corrected(points: Points, answers: Responses, branch: Branch, velocity: Array) -> Branch:
    closing = points.closing(velocity)
    limit = points.coefficient * jnp.maximum(-closing / points.sigma, 0.0)[points.rubbing]
    impulses = impulses_on(points, branch, velocity)
    slip = slip_of(_tangent_trial(points, answers, impulses.tangent, velocity), limit)
    return Branch(jnp.where(closing < 0.0, 1.0, 0.0), slip)
