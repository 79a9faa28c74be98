"""Dry friction of an axis whose speed changes sign within a step: the mean direction of sliding.

Friction is a torque of constant size L/h against the motion. From the speed ``s > 0`` at the start, the axis slows down
with the torques of the step and the friction together. It comes to rest after a part f of the step, and then either
stays there or turns back, with the friction on the other side. Let o be the speed that it would have at the end without
its own friction, ``D = d L`` what friction takes off in a whole step (d the mobility of the axis). Then

    slides on      o ≥ D                        A = 1
    sticks         D (s/D − 1) ≤ o < D          s' = 0,  A = o/D
    turns back     else                         A = 2f − 1,  f = s/(s − o + D),  s' = (2D − s/f)(1 − f)

and the friction impulse is ``−L A``; for ``s < 0`` mirrored. This is exact for torques that are constant over the step,
and continuous in s and o. The implicit law, which takes the direction of the end of the step, is the case ``s = 0``;
where speeds change by more than D in a step it would turn friction half a step early.

Sticking gives way: ``s' = x + G A`` with ``G = Σ_t L`` and x the speed of the law above, as if a soft element were in
series with the friction.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

# Branches, by the direction of the start: 0 stuck, ±1 sliding that way, ±TURNS first that way, then back.
TURNS = 2.0
# Least square of a speed [rad²/s², m²/s²] under a root: keeps derivatives finite where the branch is another one.
LEAST = 1e-60


class Slowing(NamedTuple):
    """What friction at its limit L does to speeds [rad/s, m/s]."""

    whole: Array
    """``D = d L``: taken off in a step."""
    give: Array
    """``G = Σ_t L``: the speed at which a stuck axis begins to slide."""


def direction(before: Array, others: Array, slowing: Slowing) -> tuple[Array, Array]:
    """Mean direction A of sliding, from −1 to 1, and the branch.

    ``others`` is the speed at the end of the step without the axis' own friction.
    """
    sign = jnp.where(before < 0.0, -1.0, 1.0)
    speed, free = sign * before, sign * others
    whole, give = slowing
    most = whole + give
    # Smallest A of a stuck axis, times D; where it is D there is no sticking.
    least = jnp.minimum(whole, speed - whole)
    safe = jnp.where(whole > 0.0, whole, 1.0)
    stuck = jnp.where(most > 0.0, free / jnp.where(most > 0.0, most, 1.0), 0.0)
    slope = speed - free + whole - give
    part = _part(speed, slope, slope**2 + 8.0 * give * speed)
    slides, sticks = free >= most, free >= most * jnp.where(whole > 0.0, least / safe, 1.0)
    mean = jnp.where(slides, 1.0, jnp.where(sticks, stuck, 2.0 * part - 1.0))
    # From rest, to turn back is to slide.
    back = jnp.where(speed > 0.0, TURNS, -1.0)
    return sign * mean, sign * jnp.where(slides, 1.0, jnp.where(sticks, 0.0, back))


def impulse_on(
    branch: Float[Array, "n"],
    before: Float[Array, "n"],
    after: Float[Array, "n"],
    limit: Float[Array, "n"],
    mobility: Float[Array, "n"],
    sigma: Float[Array, "n"],
) -> Float[Array, "n"]:
    """Friction impulse on a fixed branch, between the speeds at the start and the end of the step."""
    sign = jnp.where(branch < 0.0, -1.0, 1.0)
    speed = sign * before
    whole, give = mobility * limit, sigma * limit
    slope = 2.0 * whole - give + speed - sign * after
    part = _part(speed, slope, slope**2 - 8.0 * (whole - give) * speed)
    turning = -sign * limit * (2.0 * part - 1.0)
    return jnp.where(branch == 0.0, -after / sigma, jnp.where(jnp.abs(branch) == TURNS, turning, -branch * limit))


def _part(speed: Array, slope: Array, square: Array) -> Array:
    """Part of the step before the axis turns: a root of a quadratic equation, in the form that stays finite."""
    below = slope + jnp.sqrt(jnp.where(square > LEAST, square, LEAST))
    return 2.0 * speed / jnp.where(below > 0.0, below, 1.0)
