"""Simulation: many steps in one compiled loop, with checks before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from shadowfit.complementarity import Status
from shadowfit.dynamics import commands, energy, exact, rows, spook
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import gap_values, read_sensors
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_problem import VelocitySolution, complementary_count
from shadowfit.errors import SimulationError, UnknownNameError, nearest
from shadowfit.mechanism.mechanism import Mechanism

Discretization = Literal["spook", "exact"]
STEPPERS = {"spook": spook.step, "exact": exact.step}

# An initial gap above this fraction of the mechanism's size (or this angle [rad]) is taken for a mistake.
INITIAL_GAP = 0.02

FAILURES = {
    int(Status.RAY): "the contact and friction problem has no solution (Lemke's method ended on a ray)",
    int(Status.ITERATION_LIMIT): "the contact and friction problem was not solved within the pivot limit",
    int(exact.NewtonStatus.NOT_SETTLED): "Newton's iterations for the exact constraint did not settle; "
    "try a smaller time-step",
}


class Diagnostics(eqx.Module):
    """What a simulation can report besides the states; the first axis is time.

    ``multipliers`` are the impulses of the step that *ends* at each time (gap rows [N s, N m s], axis, tangent), by joint type.
    """

    multipliers: tuple[Float[Array, "t n r"], ...]
    kinetic: Float[Array, "t"]
    potential: Float[Array, "t"]
    gap: Float[Array, "t"]


class Trajectory(eqx.Module):
    """Times [s], states, and the sensors' readings along a simulation.

    With ``exact``, ``states.velocity`` are leapfrog velocities, half a step before their time; readings use velocities at their time.
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
    inputs: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = None,
    *,
    timestep: float,
    steps: int,
    discretization: Discretization = "spook",
    diagnostics: bool = False,
) -> Trajectory:
    """Simulate ``steps`` steps of ``timestep`` [s] from an initial state.

    ``inputs`` gives each input as a number, as an array of ``steps`` values (each held over its step), or as a function of time [s].
    A step that fails raises :class:`SimulationError`, which names the step and holds the trajectory so far in ``partial``.
    """
    _check_request(mechanism, initial, timestep, steps, discretization)
    signals = input_signals(mechanism, inputs or {}, timestep, steps)
    run = _compiled_rollout(mechanism, initial, signals, timestep, steps, discretization, diagnostics)
    failed = np.flatnonzero(np.asarray(run.status) != int(Status.SOLVED))
    if failed.size:
        step = int(failed[0])
        reason = FAILURES[int(run.status[step])]
        partial = jax.tree.map(lambda x: x[:step], run)
        raise SimulationError(
            f"simulation of {mechanism.name!r} stopped at step {step} (t = {step * timestep:.6g} s): {reason}", partial
        )
    return run


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
    steps = signals.shape[1]
    timestep = jnp.asarray(timestep, float)
    elements = assemble(mechanism)
    command = step_commands(mechanism, signals, timestep, discretization)
    stepper = STEPPERS[discretization]
    first = _no_guess(elements, initial, command[0], timestep)
    if discretization == "exact":
        initial = _half_step_back(elements, initial, command[0], timestep, first)

    def advance(carry, command):
        state, active, status = carry
        new, solution = stepper(elements, state, command, timestep, active)
        ok = status == int(Status.SOLVED)
        status = jnp.where(ok, solution.status, status)
        good = status == int(Status.SOLVED)
        new = jax.tree.map(lambda x, y: jnp.where(good, x, y), new, state)
        report = _report(elements, new, solution) if diagnostics else None
        return (new, solution.active, status), (new, status, report)

    start = (initial, first, jnp.asarray(int(Status.SOLVED)))
    # The exact stepper's velocities lie between the times: one step more gives the readings at the last time.
    extra = 0 if discretization == "spook" else 1
    _, (states, status, report) = jax.lax.scan(advance, start, command[: steps + extra])
    states = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), initial, states)
    status = jnp.concatenate([start[2][None], status])
    if report is not None:
        before = _report(elements, initial, _no_solution(elements, initial))
        report = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), before, report)
    synchronous = states if discretization == "spook" else _synchronise(states)
    kept = jax.tree.map(lambda x: x[: steps + 1], (states, synchronous, status, report))
    states, synchronous, status, report = kept
    return Trajectory(
        timestep * jnp.arange(steps + 1), states, _readings(mechanism, elements, synchronous), status, report
    )


_compiled_rollout = eqx.filter_jit(
    lambda mechanism, initial, signals, timestep, steps, discretization, diagnostics: rollout(
        mechanism, initial, signals, timestep, discretization, diagnostics
    )
)


def step_commands(
    mechanism: Mechanism, signals: Float[Array, "inputs steps"], timestep: Array, discretization: str
) -> Float[Array, "steps+1 inputs"]:
    """Command of each step (and one beyond): the mean of the held signals over the step, delayed, scaled and shifted."""
    steps = signals.shape[1]
    times = timestep * jnp.arange(steps + 1)
    start, stop = commands.intervals(times, timestep, discretization)
    columns = []
    for signal, part in zip(signals, mechanism.inputs.values, strict=True):
        mean = commands.held_mean(times[:-1], signal, start - part.delay, stop - part.delay, part.hold)
        columns.append(part.gain * mean + part.offset)
    return jnp.stack(columns, axis=1) if columns else jnp.zeros((steps + 1, 0))


def _half_step_back(
    elements: Elements, initial: State, command: Array, timestep: Array, guess: Array
) -> State:
    """Leapfrog start: the velocity half a step before the initial time, to second order."""
    after, _ = exact.step(elements, initial, command, timestep, guess)
    return State(initial.pose, initial.velocity - 0.5 * (after.velocity - initial.velocity))


def _synchronise(states: State) -> State:
    """Velocities at the states' times: the mean of the steps before and after (the last state is dropped)."""
    velocity = 0.5 * (states.velocity[:-1] + states.velocity[1:])
    return State(states.pose[:-1], velocity)


def _no_guess(elements: Elements, state: State, command: Array, timestep: Array) -> Array:
    shapes = jax.eval_shape(lambda: spook.velocity_problem(elements, state, command, timestep))
    return jnp.zeros(complementary_count(elements, shapes.contacts), bool)


def _no_solution(elements: Elements, state: State) -> VelocitySolution:
    equality = tuple(jnp.zeros((group.size, group.rows)) for group in elements.groups)
    return VelocitySolution(state.velocity, equality, jnp.zeros(0), jnp.zeros(0, bool), jnp.zeros((), int))


def _report(elements: Elements, state: State, solution: VelocitySolution) -> Diagnostics:
    gap = jnp.max(jnp.abs(jnp.append(gap_values(elements, state.pose), 0.0)))
    return Diagnostics(
        solution.equality, energy.kinetic(elements, state), energy.potential(elements, state), gap
    )


def _readings(mechanism: Mechanism, elements: Elements, states: State) -> dict[str, Array]:
    values = jax.vmap(lambda state: read_sensors(mechanism, elements, state))(states)
    named = {}
    for (name, sensor), value in zip(mechanism.sensors.items(), values, strict=True):
        value = sensor.follow(value)
        named[name] = value[:, 0] if len(sensor.components) == 1 else value
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
                f"input {name!r} has shape {value.shape}; give one number, {steps} values (one a step) or a function of time"
            )
        if not np.all(np.isfinite(value)):
            raise SimulationError(f"input {name!r} contains values that are not finite")
        table[row] = value
    return table


def _check_request(
    mechanism: Mechanism, initial: State, timestep: float, steps: int, discretization: str
) -> None:
    if discretization not in STEPPERS:
        raise UnknownNameError(f"there is no discretization {discretization!r}{nearest(discretization, STEPPERS)}")
    if not (np.isfinite(timestep) and timestep > 0.0):
        raise SimulationError(f"the time-step is {timestep} s; it must be a positive number")
    if steps < 1:
        raise SimulationError(f"the number of steps is {steps}; it must be at least 1")
    if not jax.config.jax_enable_x64:
        raise SimulationError(
            'double precision is off; run jax.config.update("jax_enable_x64", True) before the first computation'
        )
    check_state(mechanism, initial)


def check_state(mechanism: Mechanism, state: State) -> None:
    """Raise unless the state fits the mechanism: shapes, finite numbers, unit quaternions, joints nearly closed."""
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
                f"the initial {name} has shape {values[name].shape}; {mechanism.name!r} with {count} bodies needs {shape}"
            )
        if not np.all(np.isfinite(values[name])):
            raise SimulationError(f"the initial {name} contains values that are not finite")
    if np.max(np.abs(np.linalg.norm(values["orientation"], axis=1) - 1.0)) > 1e-6:
        raise SimulationError("the initial orientations must be unit quaternions (w x y z)")
    gaps, size = _initial_gaps(mechanism, state)
    for name, (length, angle) in zip(mechanism.joints, np.asarray(gaps), strict=True):
        if length > INITIAL_GAP * float(size) or angle > INITIAL_GAP:
            raise SimulationError(
                f"the initial state does not satisfy joint {name!r}: it is open by {length:.3g} m and {angle:.3g} rad; "
                "build the state with `place`, or check the poses"
            )


@eqx.filter_jit
def _initial_gaps(mechanism: Mechanism, state: State) -> tuple[Float[Array, "j 2"], Float[Array, ""]]:
    """Largest length and angle by which each joint is open, and the size of the mechanism [m]."""
    elements = assemble(mechanism)
    pose, _ = with_world(state.pose, state.velocity)
    opened = jnp.zeros((len(mechanism.joints), 2))
    size = jnp.asarray(1e-6)
    for group in elements.groups:
        gap = jnp.abs(rows.gaps(group, pose))
        padded = jnp.pad(gap, ((0, 0), (1, 1)))
        split = group.linear_rows + 1
        members = np.array(group.joints)
        opened = opened.at[members, 0].set(jnp.max(padded[:, :split], axis=1))
        opened = opened.at[members, 1].set(jnp.max(padded[:, split:], axis=1))
        levers = jnp.concatenate([group.a.levers, group.b.levers])
        size = jnp.maximum(size, jnp.max(jnp.linalg.norm(levers, axis=1)))
    return opened, size
