"""Rows of a step in joint coordinates behind contacts and end stops: what is missing when these have taken their part.

Let r be the impulses that the unknowns miss without contacts, u their new rates and A = ∂r/∂u. If nothing were missing
the rates would be φ, and contacts act as they do on what they hit at φ:

    A (φ − u) + r − p(φ) = 0,      ρ = r − p(φ) = A (u − φ)

with p the impulses of all contact points along the unknowns (:mod:`shadowfit.dynamics.joint_contacts`). ρ is zero
exactly where the stepper goes, and elsewhere it does not grow with the stiffness of a contact, as r − p(u) does. On
the branches that the points are on, p is linear in φ. With P = ∂p/∂φ, and A held,

    dρ = N (dr − dp),      N = A (A − P)⁻¹ = 1 + P (A − P)⁻¹

where dp is at rates that move with u. Where nothing touches N = 1 and ρ = r.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics.contact_law import Points, impulses_on
from shadowfit.dynamics.joint_contacts import contact_branches
from shadowfit.estimation.linear.front import Rows
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jax, jnp

# Linear solves of the contact problem, which starts from nothing.
ROUNDS = 4


class Seen(NamedTuple):
    """Contact points as functions of the unknowns' rates, with the rates that a step has."""

    points: Points
    rates: Float[Array, "n"]


class Free(NamedTuple):
    """A step without contacts."""

    by_rates: Float[Array, "n n"]
    """A."""
    missing: Float[Array, "n"]
    """r."""

    @classmethod
    def of(cls, rows: Rows, timestep: Float[Array, ""]) -> Free:
        """From rows: increments of the last node are rates times the time-step."""
        return cls(timestep * rows.states[:, -1], rows.residual)


class Touched(NamedTuple):
    """What contacts make of the rows of a step."""

    through: Float[Array, "n n"]
    """N."""
    pushed: Float[Array, "n x"]
    """dp by increments of the nodes and of the parameters."""
    residual: Float[Array, "n"]
    """ρ."""


def touched(seen_at: Callable[[Float[Array, "x"]], Seen], width: int, step: Free) -> Touched:
    """Of a step without contacts; ``seen_at`` gives the contacts at ``width`` increments."""
    inertia, missing = jax.lax.stop_gradient(step.by_rates), step.missing
    points, rates = seen_at(jnp.zeros(width))
    free = rates - small_solve(inertia, missing[:, None], definite=True)[:, 0]
    branch = contact_branches(points, inertia, free, None, ROUNDS)

    def push(at: Points, rates: Array) -> Array:
        return at.push(impulses_on(at, branch, rates))

    still = push(points, jnp.zeros_like(rates))
    by_speed = jax.jacfwd(lambda rates: push(points, rates))(rates)
    stiff = inertia - by_speed
    right = jnp.concatenate([(inertia @ free + still)[:, None], jnp.eye(len(rates))], axis=1)
    solved = small_solve(stiff, right, definite=True)
    predicted = solved[:, 0]
    through = jnp.eye(len(rates)) + by_speed @ solved[:, 1:]

    def pushed(increments: Array) -> Array:
        moved, new_rates = seen_at(increments)
        return push(moved, predicted + new_rates - rates)

    value, table = slopes(pushed, jnp.zeros(width))
    return Touched(through, table, missing - value)
