"""Dry friction of all joints in a predicted step: a problem of the size of the number of frictional joints.

With ``Y = F_v'⁻¹ Ḡᵀ`` the sliding speeds are ``s = Ḡ v₀ + Ḡ Y λ_t`` and the gap multipliers ``λ = λ₀ + (∂λ/∂v') Y
λ_t``; sought is ``λ_t = −L A`` with ``L = Σ U |λ| + h·level`` and A the mean direction over the step (:mod:`sliding`),
by Gauss–Seidel with Newton's method, or the stepper's ``λ_t = −clip(s/Σ_t, ± L)``, by projected Gauss–Seidel.
"""

from __future__ import annotations

from typing import NamedTuple

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import sliding
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree

# Sweeps of the friction problem. It contracts like the coupling of the joints through the bodies; a remainder is
# taken up by the final Newton step.
SWEEPS = 12
# A friction impulse this close (relative) to its limit slides.
SLIDING = 1e-9


class Clipped(PyTree):
    """The stepper's law."""

    sigma: Float[Array, "f"]
    """Σ_t."""


class Averaged(PyTree):
    """The mean over the step."""

    before: Float[Array, "f"]
    """Speeds of the axes at the start of the step."""
    width: Float[Array, "f"]
    """Width of the reversal [rad/s, m/s] by the largest impulse [N m s, N s]."""


class DryAxes(PyTree):
    """The frictional axes, with what decides on their impulses; tuples have an entry for each group of joints."""

    axes: Float[Array, "f r"]
    rule: Clipped | Averaged
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


def no_axes(size: int) -> DryAxes:
    """Of a problem of so many velocities whose joints have no dry friction, or have it elsewhere."""
    none = jnp.zeros(0)
    return DryAxes(
        jnp.zeros((0, size)),
        Clipped(none),
        jnp.zeros((size, 0)),
        jnp.zeros((0, 0)),
        (),
        (),
        (),
        (),
        (),
        jnp.zeros(size),
    )


class WithoutFriction(NamedTuple):
    """Speeds of the axes and gap multipliers at a velocity that the friction has not acted on."""

    speeds: Float[Array, "f"]
    loads: tuple[Float[Array, "n m"], ...]


def without_friction(dry: DryAxes, velocity: Float[Array, "r"]) -> WithoutFriction:
    """What the axes see of a velocity."""
    moved = velocity - dry.here
    loads = tuple(load + slope @ moved for load, slope in zip(dry.loads, dry.load_slopes, strict=True))
    return WithoutFriction(dry.axes @ velocity, loads)


def _limits(dry: DryAxes, loads: tuple[Array, ...]) -> Float[Array, "f"]:
    parts = zip(dry.weights, dry.levels, loads, strict=True)
    largest = [jnp.sum(weight * jnp.abs(load), axis=1) + level for weight, level, load in parts]
    return jnp.concatenate(largest or [jnp.zeros(0)])


def limits(dry: DryAxes, seen: WithoutFriction, impulses: Float[Array, "f"]) -> Float[Array, "f"]:
    """Largest friction impulses while these act."""
    loads = zip(seen.loads, dry.loads_by_impulses, strict=True)
    return _limits(dry, tuple(load + slope @ impulses for load, slope in loads))


def sweep(dry: DryAxes, seen: WithoutFriction, impulses: Float[Array, "f"]) -> Float[Array, "f"]:
    """One sweep of projected Gauss–Seidel."""
    for j in range(dry.axes.shape[0]):
        others = seen.speeds[j] + dry.coupling[j] @ impulses - dry.coupling[j, j] * impulses[j]
        limit = limits(dry, seen, impulses)[j]
        impulses = jnp.asarray(impulses).at[j].set(_one(dry, j, others, limit, impulses[j]))
    return impulses


def _one(dry: DryAxes, j: int, others: Array, limit: Array, now: Array) -> Array:
    """Impulse of one axis, which moves at the speed ``others`` without it: the solution, or a Newton step to it."""
    mobility, rule = dry.coupling[j, j], dry.rule
    if isinstance(rule, Clipped):
        return jnp.clip(-others / (mobility + rule.sigma[j]), -limit, limit)
    at = rule.before[j], others + mobility * now, rule.width[j] * limit + sliding.LEAST
    missing = now + limit * sliding.mean_direction(*at)
    return now - missing / (1.0 + limit * mobility * sliding.slope(*at))


def branches(dry: DryAxes, seen: WithoutFriction, impulses: Float[Array, "f"]) -> Float[Array, "f"]:
    """Branch of each axis by the stepper's law: +1, −1 sliding, 0 stuck."""
    limit = limits(dry, seen, impulses)
    slip = jnp.where(jnp.abs(impulses) >= limit * (1.0 - SLIDING), -jnp.sign(impulses), 0.0)
    # A joint whose limit is zero slides freely, in the direction it has.
    return jnp.where(limit == 0.0, jnp.where(seen.speeds < 0.0, -1.0, 1.0), slip)


def settle(dry: DryAxes, free: Float[Array, "r"]) -> tuple[Float[Array, "r"], Float[Array, "f"]]:
    """The velocity that friction leaves of a free one, and the branches."""
    count = dry.axes.shape[0]
    if count == 0:
        return free, jnp.zeros(0)
    seen = without_friction(dry, free)
    impulses = jax.lax.fori_loop(0, SWEEPS, lambda _, now: sweep(dry, seen, now), jnp.zeros(count))
    return free + dry.response @ impulses, branches(dry, seen, impulses)


def impulses_on(dry: DryAxes, slip: Float[Array, "f"], velocity: Float[Array, "r"]) -> Float[Array, "f"]:
    """Impulses of the stepper's law on fixed branches, at a velocity that they have acted on."""
    seen = without_friction(dry, velocity)
    assert isinstance(dry.rule, Clipped)
    return jnp.where(slip == 0.0, -seen.speeds / dry.rule.sigma, -slip * _limits(dry, seen.loads))
