"""Simulation: many steps in one compiled loop, with checks before and after."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from shadowfit.complementarity import Status
from shadowfit.dynamics import commands, energy, exact, spook
from shadowfit.dynamics.elements import Elements, assemble, assembled
from shadowfit.dynamics.kinematics import gap_values, moved_geometries, read_sensors
from shadowfit.dynamics.state import State
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.errors import OpenJointError, SimulationError, UnknownNameError, nearest
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.runtime import double_precision

Discretization = Literal["spook", "exact"]
STEPPERS = {"spook": spook.step, "exact": exact.step}

# An initial gap above this fraction of the mechanism's size (or this angle [rad]) is taken for a mistake, and so is an
# initial velocity that opens a joint faster than this fraction of the fastest motion, unless it is below this fraction
# of the size (or this angle) per second.
INITIAL_GAP = 0.02
OPENING_FRACTION = 0.2
OPENING_RATE = 0.1

# Lengths that a simulation is padded to: the loop is compiled once for all numbers of steps up to one of them.
SHORTEST_LOOP = 256
LOOP_GROWTH = 4


class Diagnostics(eqx.Module):
    """What a simulation can report besides the states; the first axis is time.

    ``multipliers`` are the impulses of the step that *ends* at each time (gap rows [N s, N m s], axis, tangent), by
    group of joints; zero at the first time. Energies [J] and the largest gap [m or rad] are those at each time.
    """

    multipliers: tuple[Float[Array, "t n r"], ...]
    kinetic: Float[Array, "t"]
    potential: Float[Array, "t"]
    gap: Float[Array, "t"]


class Trajectory(eqx.Module):
    """Times [s], states, and the sensors' readings along a simulation.

    With ``exact``, ``states.velocity`` are leapfrog velocities, half a step before their time; readings use
    velocities at their time.
    """

    time: Float[Array, "t"]
    states: State
    readings: dict[str, Float[Array, "t *d"]]
    status: Int[Array, "t"]
    diagnostics: Diagnostics | None

    def __len__(self) -> int:
        return int(self.time.shape[0])


def simulate(
    mechanism: Mechanism,
    initial: State,
    inputs: Mapping[str, Any] | None = None,
    *,
    timestep: float,
    steps: int,
    discretization: Discretization = "spook",
    diagnostics: bool = False,
) -> Trajectory:
    """Simulate ``steps`` steps of ``timestep`` [s] from an initial state.

    ``inputs`` gives each input as a number, as an array of ``steps`` values (each held over its step), or as a
    function of time [s]. A step that fails raises :class:`SimulationError`, which names the step and holds the
    trajectory so far in ``partial``.
    """
    _check_request(mechanism, initial, timestep, steps, discretization)
    signals = input_signals(mechanism, inputs or {}, timestep, steps)
    elements = assembled(mechanism)
    _check_joints(mechanism, elements, initial)
    padding = _loop_length(steps) - steps
    run = _compiled_rollout(
        mechanism,
        elements,
        initial,
        np.pad(signals, ((0, 0), (0, padding)), mode="edge"),
        np.asarray(timestep, float),
        np.asarray(steps),
        discretization,
        diagnostics,
    )
    failed = np.flatnonzero(np.asarray(run.status)[: steps + 1] != int(Status.SOLVED))
    if not failed.size:
        return _first(run, steps + 1)
    step = int(failed[0])
    reason = _failure(int(run.status[step]))
    raise SimulationError(
        f"simulation of {mechanism.name!r} stopped at step {step} of {steps} (t = {step * timestep:.6g} s): {reason}",
        _first(run, step),
    )


def _loop_length(steps: int) -> int:
    length = SHORTEST_LOOP
    while length < steps:
        length *= LOOP_GROWTH
    return length


def _first(run: Trajectory, count: int) -> Trajectory:
    """The first times of a trajectory; sliced by NumPy, for which nothing has to be compiled."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[:count]), run)


def _failure(status: int) -> str:
    if status == exact.NewtonStatus.NOT_SETTLED:
        return "Newton's iterations for the exact constraint did not settle; try a smaller time-step"
    return f"its equations were not solved ({Status(status).text})"


def rollout(
    mechanism: Mechanism,
    initial: State,
    signals: Float[Array, "inputs steps"],
    timestep: Float[Array, ""] | float,
    discretization: Discretization = "spook",
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
    discretization: Discretization = "spook",
    diagnostics: bool = False,
) -> Trajectory:
    """Many trajectories: :func:`rollout` over states with a first axis, and signals of each or the same for all."""
    given = (initial, signals) if jnp.ndim(signals) == 3 else (initial,)

    def one(given: tuple[Any, ...]) -> Trajectory:
        return rollout(mechanism, given[0], (*given, signals)[1], timestep, discretization, diagnostics)

    return jax.lax.map(one, given, batch_size=TOGETHER)


class _Moment(eqx.Module):
    """What the loop hands from step to step."""

    state: State
    active: Bool[Array, "z"]
    status: Int[Array, ""]


class _Entry(eqx.Module):
    """What one step of the loop is told: its command, whether it starts the leapfrog, whether it is needed at all."""

    command: Float[Array, "inputs"]
    starts: Bool[Array, ""]
    needed: Bool[Array, ""]


_Found = tuple[State, Int[Array, ""], tuple[Float[Array, "n r"], ...] | None]
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
    leapfrog = discretization == "exact"
    command = step_commands(mechanism, signals, timestep, discretization)

    def advance(now: _Moment, entry: _Entry) -> tuple[_Moment, _Found]:
        new, solution = stepper(elements, now.state, entry.command, timestep, now.active)
        if leapfrog:
            new = _where(entry.starts, _half_step_back(now.state, new), new)
        found = jnp.where(_is_finite(new), solution.status, Status.INACCURATE)
        status = jnp.where(now.status == Status.SOLVED, found, now.status)
        new = _where(status == Status.SOLVED, new, now.state)
        return _Moment(new, solution.active, status), (new, status, solution.equality if diagnostics else None)

    guess = jnp.zeros(complementary_count(elements), bool)
    start = _Moment(initial, guess, jnp.full((), Status.SOLVED, jnp.int32))
    no_multipliers = tuple(jnp.zeros((group.size, group.rows)) for group in elements.groups) if diagnostics else None

    def advance_if_needed(now: _Moment, entry: _Entry) -> tuple[_Moment, _Found]:
        def rest(now: _Moment, _: _Entry) -> tuple[_Moment, _Found]:
            return now, (now.state, now.status, no_multipliers)

        return jax.lax.cond(entry.needed & (now.status == Status.SOLVED), advance, rest, now, entry)

    # A step more at both ends for the leapfrog: the first goes half a step back, and the last gives the velocity
    # after the last time, from which readings at that time follow.
    command = jnp.concatenate([command[:1], command]) if leapfrog else command[:-1]
    count = jnp.arange(command.shape[0])
    last = steps if length is None else length
    entries = _Entry(command, count == 0, count < (last + 2 if leapfrog else last))
    _, found = jax.lax.scan(advance if length is None else advance_if_needed, start, entries)
    if leapfrog:
        states, status, multipliers = found
        # The step that starts the leapfrog is no step of the simulation.
        multipliers = jax.tree.map(lambda x: x.at[0].set(0.0), multipliers)
        synchronous = _synchronise(states)
        states, status, multipliers = jax.tree.map(lambda x: x[:-1], (states, status, multipliers))
    else:
        before = (initial, start.status, no_multipliers)
        states, status, multipliers = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), before, found)
        synchronous = states
    readings = _readings(mechanism, elements, synchronous)
    report = _report(elements, synchronous, multipliers) if diagnostics else None
    return Trajectory(timestep * jnp.arange(steps + 1), states, readings, status, report)


_compiled_rollout = eqx.filter_jit(_rollout)


def _is_finite(state: State) -> Bool[Array, ""]:
    """Whether a state has not diverged."""
    return jnp.all(jnp.isfinite(state.velocity)) & jnp.all(jnp.isfinite(state.pose.orientation))


def _where(condition: Bool[Array, ""], first: State, second: State) -> State:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), first, second)


def step_commands(
    mechanism: Mechanism, signals: Float[Array, "inputs steps"], timestep: Array, discretization: str
) -> Float[Array, "steps+1 inputs"]:
    """Command of each step (and one beyond): mean of the held signals over the step, delayed, scaled and shifted."""
    steps = signals.shape[1]
    times = timestep * jnp.arange(steps + 1)
    start, stop = commands.intervals(times, timestep, discretization)
    columns = []
    for signal, part in zip(signals, mechanism.inputs.values, strict=True):
        mean = commands.held_mean(times[:-1], signal, start - part.delay, stop - part.delay, part.hold)
        columns.append(part.gain * mean + part.offset)
    return jnp.stack(columns, axis=1) if columns else jnp.zeros((steps + 1, 0))


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


def _readings(mechanism: Mechanism, elements: Elements, states: State) -> dict[str, Array]:
    values = jax.vmap(lambda state: read_sensors(mechanism, elements, state))(states)
    named = {}
    for (name, sensor), value in zip(mechanism.sensors.items(), values, strict=True):
        followed = sensor.follow(value)
        named[name] = followed[:, 0] if len(sensor.components) == 1 else followed
    return named


def input_signals(
    mechanism: Mechanism, inputs: Mapping[str, Any], timestep: float, steps: int
) -> Float[np.ndarray, "inputs steps"]:
    """Each input's value over each step; inputs that are not given are zero."""
    for name in inputs:
        if name not in mechanism.inputs:
            raise UnknownNameError(f"there is no input {name!r}{nearest(name, mechanism.inputs)}")
    times = timestep * np.arange(steps)
    table = np.zeros((len(mechanism.inputs), steps))
    for row, name in enumerate(mechanism.inputs):
        value = inputs.get(name, 0.0)
        value = np.asarray([value(t) for t in times] if callable(value) else value, float)
        if value.shape not in ((), (steps,)):
            raise SimulationError(
                f"input {name!r} has shape {value.shape}; "
                f"give one number, {steps} values (one a step) or a function of time"
            )
        if not np.all(np.isfinite(value)):
            raise SimulationError(f"input {name!r} contains values that are not finite")
        table[row] = value
    return table


def _check_request(mechanism: Mechanism, initial: State, timestep: float, steps: int, discretization: str) -> None:
    if discretization not in STEPPERS:
        raise UnknownNameError(f"there is no discretization {discretization!r}{nearest(discretization, STEPPERS)}")
    if not (np.isfinite(timestep) and timestep > 0.0):
        raise SimulationError(f"the time-step is {timestep} s; it must be a positive number")
    if not (isinstance(steps, int | np.integer) and steps >= 1):
        raise SimulationError(f"the number of steps is {steps}; it must be a whole number of at least 1")
    double_precision()
    check_numbers(mechanism, initial)


def check_state(mechanism: Mechanism, state: State) -> None:
    """Raise unless the state fits the mechanism: shapes, finite numbers, unit quaternions, joints nearly closed."""
    check_numbers(mechanism, state)
    _check_joints(mechanism, assembled(mechanism), state)


def check_numbers(mechanism: Mechanism, state: State) -> None:
    """Raise unless the state's arrays have the mechanism's shapes and hold finite numbers and unit quaternions."""
    count = len(mechanism.bodies)
    wanted = {"position": (count, 3), "orientation": (count, 4), "velocity": (count, 6)}
    values = {
        "position": np.asarray(state.pose.position),
        "orientation": np.asarray(state.pose.orientation),
        "velocity": np.asarray(state.velocity),
    }
    for name, shape in wanted.items():
        if values[name].shape != shape:
            raise SimulationError(
                f"the initial {name} has shape {values[name].shape}; "
                f"{mechanism.name!r} with {count} bodies needs {shape}"
            )
        if not np.all(np.isfinite(values[name])):
            raise SimulationError(f"the initial {name} contains values that are not finite")
    if np.max(np.abs(np.linalg.norm(values["orientation"], axis=1) - 1.0)) > 1e-6:
        raise SimulationError("the initial orientations must be unit quaternions (w x y z)")


def _check_joints(mechanism: Mechanism, elements: Elements, state: State) -> None:
    """Raise where a joint is open, or opens nearly as fast as anything moves."""
    velocity = np.asarray(state.velocity)
    _, geometries = moved_geometries(elements, state.pose, np.zeros_like(velocity))
    levers = [np.asarray(side.levers) for group in elements.groups for side in (group.a, group.b)]
    size = max((float(np.max(np.linalg.norm(lever, axis=1))) for lever in levers), default=0.0) or 1.0
    linear, angular = (float(np.max(np.abs(part))) for part in np.split(velocity, 2, axis=1))
    moving = np.concatenate([velocity, np.zeros((1, 6))])
    for group, geometry in zip(elements.groups, geometries, strict=True):
        gaps = np.abs(np.asarray(geometry.gap))
        rates = np.einsum("nmi,ni->nm", geometry.gap_a, moving[group.a.bodies])
        rates = np.abs(rates + np.einsum("nmi,ni->nm", geometry.gap_b, moving[group.b.bodies]))
        in_units = (
            ("m", slice(group.linear_rows), size, linear + size * angular),
            ("rad", slice(group.linear_rows, None), 1.0, angular),
        )
        for (member, joint), (unit, part, scale, fastest) in itertools.product(enumerate(group.joints), in_units):
            gap, rate = (np.max(values[member, part], initial=0.0) for values in (gaps, rates))
            wrong = ""
            if gap > INITIAL_GAP * scale:
                wrong = f"it is open by {gap:.3g} {unit}"
            elif rate > max(OPENING_FRACTION * fastest, OPENING_RATE * scale):
                wrong = f"it opens by {rate:.3g} {unit}/s"
            if wrong:
                raise OpenJointError(
                    f"the initial state does not satisfy joint {mechanism.joints.names[joint]!r}: {wrong}; "
                    "build the state with `place`, or check poses and velocities"
                )
