"""Simulations by XLA: pure functions for ``jit``, ``vmap`` and derivatives."""

from __future__ import annotations

from typing import Any

from shadowfit.arrays import Array, Bool, Float, Int
from shadowfit.complementarity import Status
from shadowfit.dynamics import energy, exact, spook
from shadowfit.dynamics.discretization import SCHEMES, Discretization
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import gap_values, read_sensors
from shadowfit.dynamics.requests import step_commands
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.trajectory import Diagnostics, Trajectory
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.lazy_jax import at_first_call, jax, jnp, quick_to_compile
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree
from shadowfit.trees import map_leaves

STEPPERS = {"spook": spook.step, "exact": exact.step}


def rollout(
    mechanism: Mechanism,
    initial: State,
    signals: Float[Array, "inputs steps"],
    timestep: Float[Array, ""] | float,
    discretization: Discretization = "exact",
    diagnostics: bool = False,
) -> Trajectory:
    """The pure function behind :func:`simulate`, for ``jit``, ``vmap`` and derivatives.

    After a failed step the state stays what it was and ``status`` says why from there on.
    """
    step = jnp.asarray(timestep, float)
    return _rollout(mechanism, assemble(mechanism), initial, signals, step, None, discretization, diagnostics)


# Trajectories that are stepped together: their numbers fit the processor's cache. All 256 of a batch at once take 1.4
# times as long.
TOGETHER = 64


def rollouts(
    mechanism: Mechanism,
    initial: State,
    signals: Float[Array, "*batch inputs steps"],
    timestep: Float[Array, ""] | float,
    discretization: Discretization = "exact",
    diagnostics: bool = False,
) -> Trajectory:
    """Many trajectories: :func:`rollout` over states with a first axis, and signals of each or the same for all."""
    given = (initial, signals) if jnp.ndim(signals) == 3 else (initial,)

    def one(given: tuple[Any, ...]) -> Trajectory:
        return rollout(mechanism, given[0], (*given, signals)[1], timestep, discretization, diagnostics)

    return jax.lax.map(one, given, batch_size=TOGETHER)


class _Moment(PyTree):
    """What the loop hands from step to step."""

    state: State
    active: Bool[Array, "z"]
    status: Int[Array, ""]


class _Entry(PyTree):
    """What one step of the loop is told: its command, whether it starts the leapfrog, whether it is needed at all."""

    command: Float[Array, "inputs"]
    starts: Bool[Array, ""]
    needed: Bool[Array, ""]


_Outcome = tuple[State, Int[Array, ""], tuple[Float[Array, "n r"], ...] | None]
"""What the loop keeps of a step: the new state, the status, and the multipliers on request."""


def _rollout(
    mechanism: Mechanism,
    elements: Elements,
    initial: State,
    signals: Float[Array, "inputs steps"],
    timestep: Float[Array, ""],
    length: Int[Array, ""] | None,
    discretization: Discretization,
    diagnostics: bool,
) -> Trajectory:
    """All steps of ``signals``, of which only the first ``length`` are computed where it is given."""
    steps = signals.shape[1]
    stepper = STEPPERS[discretization]
    leapfrog = SCHEMES[discretization].staggered
    acting = command = step_commands(mechanism, signals, timestep, discretization)

    def advance(now: _Moment, entry: _Entry) -> tuple[_Moment, _Outcome]:
        new, solution = stepper(elements, now.state, entry.command, timestep, now.active)
        if leapfrog:
            new = _where(entry.starts, _half_step_back(now.state, new), new)
        outcomes = jnp.where(_is_finite(new), solution.status, Status.INACCURATE)
        status = jnp.where(now.status == Status.SOLVED, outcomes, now.status)
        new = _where(status == Status.SOLVED, new, now.state)
        return _Moment(new, solution.active, status), (new, status, solution.equality if diagnostics else None)

    guess = jnp.zeros(complementary_count(elements), bool)
    start = _Moment(initial, guess, jnp.full((), Status.SOLVED, jnp.int32))
    no_multipliers = tuple(jnp.zeros((group.size, group.rows)) for group in elements.groups) if diagnostics else None

    def advance_if_needed(now: _Moment, entry: _Entry) -> tuple[_Moment, _Outcome]:
        def rest(now: _Moment, _: _Entry) -> tuple[_Moment, _Outcome]:
            return now, (now.state, now.status, no_multipliers)

        return jax.lax.cond(entry.needed & (now.status == Status.SOLVED), advance, rest, now, entry)

    # A step more at both ends for the leapfrog: the first goes half a step back, and the last gives the velocity
    # after the last time, from which readings at that time follow.
    command = jnp.concatenate([command[:1], command]) if leapfrog else command[:-1]
    count = jnp.arange(command.shape[0])
    last = steps if length is None else length
    entries = _Entry(command, count == 0, count < (last + 2 if leapfrog else last))
    _, outcomes = jax.lax.scan(advance if length is None else advance_if_needed, start, entries)
    if leapfrog:
        states, status, multipliers = outcomes
        # The step that starts the leapfrog is no step of the simulation.
        multipliers = map_leaves(lambda x: x.at[0].set(0.0), multipliers)
        synchronous = _synchronise(states)
        acceleration = jnp.diff(states.velocity, axis=0) / timestep
        states, status, multipliers = map_leaves(lambda x: x[:-1], (states, status, multipliers))
    else:
        before = (initial, start.status, no_multipliers)
        states, status, multipliers = map_leaves(lambda x, y: jnp.concatenate([x[None], y]), before, outcomes)
        synchronous = states
        acceleration = jnp.diff(states.velocity, axis=0, append=2.0 * states.velocity[-1:] - states.velocity[-2:-1])
        acceleration = acceleration / timestep
    readings = _readings(mechanism, elements, synchronous, Instant(acceleration, acting))
    report = _report(elements, synchronous, multipliers) if diagnostics else None
    return Trajectory(timestep * jnp.arange(steps + 1), states, readings, status, report)


compiled_rollout = at_first_call(
    lambda function: jax.jit(
        function,
        static_argnames=("discretization", "diagnostics"),
        compiler_options=quick_to_compile(),
    )
)(_rollout)


def _is_finite(state: State) -> Bool[Array, ""]:
    """Whether a state has not diverged."""
    return jnp.all(jnp.isfinite(state.velocity)) & jnp.all(jnp.isfinite(state.pose.orientation))


def _where(condition: Bool[Array, ""], first: State, second: State) -> State:
    return map_leaves(lambda x, y: jnp.where(condition, x, y), first, second)


def _half_step_back(initial: State, after: State) -> State:
    """Leapfrog start: the velocity half a step before the initial time, to second order, from a whole step after it."""
    return State(initial.pose, initial.velocity - 0.5 * (after.velocity - initial.velocity))


def _synchronise(states: State) -> State:
    """Velocities at the states' times: the mean of the steps before and after (the last state is dropped)."""
    velocity = 0.5 * (states.velocity[:-1] + states.velocity[1:])
    return State(states.pose[:-1], velocity)


def _report(elements: Elements, states: State, multipliers: tuple[Float[Array, "t n r"], ...]) -> Diagnostics:
    def one(state: State) -> tuple[Array, Array, Array]:
        gap = jnp.max(jnp.abs(jnp.append(gap_values(elements, state.pose), 0.0)))
        return energy.kinetic(elements, state), energy.potential(elements, state), gap

    return Diagnostics(multipliers, *jax.vmap(one)(states))


def _readings(mechanism: Mechanism, elements: Elements, states: State, instants: Instant) -> dict[str, Array]:
    values = jax.vmap(lambda state, instant: read_sensors(mechanism, elements, state, instant))(states, instants)
    named = {}
    for (name, sensor), value in zip(mechanism.sensors.items(), values, strict=True):
        followed = sensor.follow(value)
        named[name] = followed[:, 0] if len(sensor.components) == 1 else followed
    return named
