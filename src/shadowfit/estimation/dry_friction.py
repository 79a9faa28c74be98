"""Dry friction of all joints in a predicted step: a box problem of the size of the number of frictional joints.

With ``Y = F_v'⁻¹ Ḡᵀ`` the sliding speeds are ``s = Ḡ v₀ + Ḡ Y λ_t`` and the gap multipliers ``λ = λ₀ + (∂λ/∂v') Y
λ_t``; sought is ``λ_t = −clip(s/Σ_t, ± (Σ U |λ| + h·level))``. Solved by projected Gauss–Seidel.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.dynamics import reversal
from shadowfit.dynamics.reversal import Slowing

# Sweeps of the friction problem. It contracts like the coupling of the joints through the bodies; a remainder is
# taken up by the final Newton step.
SWEEPS = 12


class DryAxes(eqx.Module):
    """The frictional axes, with what decides on their impulses; tuples have an entry for each group of joints."""

    axes: Float[Array, "f r"]
    sigma: Float[Array, "f"]
    before: Float[Array, "f"]
    """Speeds of the axes at the start of the step; zeros: friction has the direction of the end of the step."""
    response: Float[Array, "r f"]
    """Y: how the bodies' velocity answers to the impulses."""
    coupling: Float[Array, "f f"]
    """Ḡ Y."""
    weights: tuple[Float[Array, "n m"], ...]
    """U."""
    levels: tuple[Float[Array, "n"], ...]
    """h·level."""
    loads: tuple[Float[Array, "n m"], ...]
    """λ at the velocity ``here``."""
    load_slopes: tuple[Float[Array, "n m r"], ...]
    loads_by_impulses: tuple[Float[Array, "n m f"], ...]
    here: Float[Array, "r"]


class Unrubbed(NamedTuple):
    """Speeds of the axes and gap multipliers at a velocity that the friction has not acted on."""

    speeds: Float[Array, "f"]
    loads: tuple[Float[Array, "n m"], ...]


def unrubbed(dry: DryAxes, velocity: Float[Array, "r"]) -> Unrubbed:
    """What the axes see of a velocity."""
    moved = velocity - dry.here
    loads = tuple(load + slope @ moved for load, slope in zip(dry.loads, dry.load_slopes, strict=True))
    return Unrubbed(dry.axes @ velocity, loads)


def _limits(dry: DryAxes, loads: tuple[Array, ...]) -> Float[Array, "f"]:
    parts = zip(dry.weights, dry.levels, loads, strict=True)
    found = [jnp.sum(weight * jnp.abs(load), axis=1) + level for weight, level, load in parts]
    return jnp.concatenate(found or [jnp.zeros(0)])


def limits(dry: DryAxes, seen: Unrubbed, impulses: Float[Array, "f"]) -> Float[Array, "f"]:
    """Largest friction impulses while these act."""
    loads = zip(seen.loads, dry.loads_by_impulses, strict=True)
    return _limits(dry, tuple(load + slope @ impulses for load, slope in loads))


def _slowing(dry: DryAxes, limits: Float[Array, "f"]) -> Slowing:
    """What friction at its limits does to the speeds of the axes."""
    return Slowing(jnp.diagonal(dry.coupling) * limits, dry.sigma * limits)


def sweep(dry: DryAxes, seen: Unrubbed, impulses: Float[Array, "f"]) -> Float[Array, "f"]:
    """One sweep of projected Gauss–Seidel."""
    for j in range(dry.axes.shape[0]):
        others = seen.speeds[j] + dry.coupling[j] @ impulses - dry.coupling[j, j] * impulses[j]
        limit = limits(dry, seen, impulses)[j]
        slowing = Slowing(dry.coupling[j, j] * limit, dry.sigma[j] * limit)
        direction, _ = reversal.direction(dry.before[j], others, slowing)
        impulses = impulses.at[j].set(-limit * direction)
    return impulses


def branches(dry: DryAxes, seen: Unrubbed, impulses: Float[Array, "f"]) -> Float[Array, "f"]:
    """Branch of each axis (:mod:`reversal`)."""
    others = seen.speeds + dry.coupling @ impulses - jnp.diagonal(dry.coupling) * impulses
    return reversal.direction(dry.before, others, _slowing(dry, limits(dry, seen, impulses)))[1]


def settle(dry: DryAxes, free: Float[Array, "r"]) -> tuple[Float[Array, "r"], Float[Array, "f"]]:
    """The velocity that friction leaves of a free one, and the branches."""
    count = dry.axes.shape[0]
    if count == 0:
        return free, jnp.zeros(0)
    seen = unrubbed(dry, free)
    impulses = jax.lax.fori_loop(0, SWEEPS, lambda _, now: sweep(dry, seen, now), jnp.zeros(count))
    return free + dry.response @ impulses, branches(dry, seen, impulses)


def impulses_on(dry: DryAxes, slip: Float[Array, "f"], velocity: Float[Array, "r"]) -> Float[Array, "f"]:
    """Impulses on fixed branches at a velocity that they have acted on."""
    seen = unrubbed(dry, velocity)
    limits = _limits(dry, seen.loads)
    return reversal.impulse_on(slip, dry.before, seen.speeds, limits, jnp.diagonal(dry.coupling), dry.sigma)
