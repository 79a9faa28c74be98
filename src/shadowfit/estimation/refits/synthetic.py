"""Recordings as the estimated model would make them: simulated with impulse errors, seen by noisy sensors."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import read_sensors
from shadowfit.dynamics.rollout import STEPPERS
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.track import Track
from shadowfit.geometry.cubic import cubic
from shadowfit.lazy_jax import at_first_call, jax, jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.trees import map_leaves


@at_first_call(lambda function: jax.jit(function, static_argnames="discretization"))
def disturbed_readings(
    mechanism: Mechanism,
    initial: State,
    command: Float[Array, "steps inputs"],
    errors: Float[Array, "steps bodies 6"],
    timestep: Float[Array, ""],
    discretization: str,
) -> tuple[Float[Array, "steps+1 d"], ...]:
    """Readings at the steps along a simulation with errors of its velocities: ``v₊ − φ = M₀⁻¹ e``.

    Args:
        mechanism: what moves.
        initial: pose, and the velocity that led there, ``(q_k ⊟ q_{k−1})/h``.
        command: of each step.
        errors: of the velocity, in each step [m/s, rad/s].
        timestep: h [s].
        discretization: ``exact`` or ``spook``.
    """
    elements = assemble(mechanism)

    def advance(now: tuple[State, Array], entry: tuple[Array, Array]) -> tuple[tuple[State, Array], State]:
        state, guess = now
        new, solution = STEPPERS[discretization](elements, state, entry[0], timestep, guess)
        velocity = new.velocity + entry[1]
        moved = State(state.pose.plus(timestep * velocity), velocity)
        return (moved, solution.active), moved

    guess: Array = jnp.zeros(complementary_count(elements), bool)
    _, states = jax.lax.scan(advance, (initial, guess), (command, errors))
    whole = map_leaves(lambda x, y: jnp.concatenate([x[None], y]), initial, states)
    acceleration = jnp.diff(whole.velocity, axis=0, append=states.velocity[-1:]) / timestep
    instants = Instant(acceleration, jnp.concatenate([command, command[-1:]]))
    readings = jax.vmap(lambda state, instant: read_sensors(mechanism, elements, state, instant))(whole, instants)
    return tuple(s.follow(value) for s, value in zip(mechanism.sensors.values, readings, strict=True))


def with_readings(
    problem: Problem,
    track: Track,
    readings: tuple[np.ndarray, ...],
    noise: tuple[np.ndarray, ...],
) -> Track:
    """A track with other measurements: readings at the steps, carried over to the samples' times, plus noise.

    ``noise`` has the shape (steps, samples, components) of each sensor's residual. Only sensors whose residual is a
    difference of readings can be given noise; orientations (quaternions) stay as simulated.
    """
    at = np.arange(track.steps)[:, None] + track.fraction
    measured = []
    for values, added, old, here in zip(readings, noise, track.measured, track.present, strict=True):
        table = np.asarray(values)[: track.steps]
        seen = table[:, None] if problem.plan.on_grid else _between(table, at)
        seen = np.broadcast_to(seen, old.shape)
        seen = seen + added if added.shape == old.shape else seen
        measured.append(np.where(here[..., None], seen, 0.0))
    return dataclasses.replace(track, measured=tuple(measured))


def _between(table: Float[np.ndarray, "n d"], at: Float[np.ndarray, "n s"]) -> Float[np.ndarray, "n s d"]:
    return cubic(table, at.ravel()).reshape(*at.shape, *table.shape[1:])
