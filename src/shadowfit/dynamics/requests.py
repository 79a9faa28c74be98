"""What a simulation is asked for: checks of time-step, steps and initial state, and the inputs as tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import commands
from shadowfit.dynamics.discretization import Discretization
from shadowfit.dynamics.elements import Elements
from shadowfit.dynamics.kinematics import moved_geometries
from shadowfit.dynamics.rigid_joints import describable, is_smooth, load_geared
from shadowfit.dynamics.state import State
from shadowfit.errors import OpenJointError, SimulationError, UnknownNameError, nearest
from shadowfit.lazy_jax import namespace
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.runtime import double_precision

Joints = Literal["compliant", "rigid"]

# An initial gap above this fraction of the mechanism's size (or this angle [rad]) is taken for a mistake, and so is an
# initial velocity that opens a joint faster than this fraction of the fastest motion, unless it is below this fraction
# of the size (or this angle) per second.
INITIAL_GAP = 0.02
OPENING_FRACTION = 0.2
OPENING_RATE = 0.1
# Substeps of a step where none are asked for: a second-order error 64 times below that of one step, which a fit at the
# steps' interval, whose own errors are taken off, would find in the parameters.
SUBSTEPS = 8


def taken_joints(mechanism: Mechanism, joints: Joints | None, discretization: str) -> Joints:
    """The kind of joints that was asked for, or else as a fit takes them: rigid where that is possible."""
    if joints is not None:
        return joints
    return "rigid" if discretization == "exact" and describable(mechanism) else "compliant"


def taken_substeps(mechanism: Mechanism, substeps: int | None, discretization: str) -> int:
    """The number that was asked for, or else what takes the stepper's errors off as a fit does, where it does."""
    if substeps is None:
        return SUBSTEPS if discretization == "exact" and is_smooth(mechanism) else 1
    if not (isinstance(substeps, int | np.integer) and substeps >= 1):
        raise SimulationError(f"the number of substeps is {substeps}; it must be a whole number of at least 1")
    return int(substeps)


def input_signals(
    mechanism: Mechanism, inputs: Mapping[str, Any], timestep: float, steps: int, substeps: int = 1
) -> Float[np.ndarray, "inputs substeps"]:
    """Each input's value over each of ``steps · substeps`` substeps; inputs that are not given are zero."""
    for name in inputs:
        if name not in mechanism.inputs:
            raise UnknownNameError(f"there is no input {name!r}{nearest(name, mechanism.inputs)}")
    times = timestep / substeps * np.arange(steps * substeps)
    table = np.zeros((len(mechanism.inputs), len(times)))
    for row, name in enumerate(mechanism.inputs):
        value = inputs.get(name, 0.0)
        value = np.asarray([value(t) for t in times] if callable(value) else value, float)
        if value.shape not in ((), (steps,), times.shape):
            raise SimulationError(
                f"input {name!r} has shape {value.shape}; "
                f"give one number, {steps} values (one a step) or a function of time"
            )
        if value.shape == (steps,):
            linear = mechanism.inputs[name].hold == "linear"
            value = np.interp(times, times[::substeps], value) if linear else np.repeat(value, substeps)
        if not np.all(np.isfinite(value)):
            raise SimulationError(f"input {name!r} contains values that are not finite")
        table[row] = value
    return table


def step_commands(
    mechanism: Mechanism, signals: Float[Array, "inputs steps"], timestep: Float[Array, ""] | float, discretization: str
) -> Float[Array, "steps+1 inputs"]:
    """Command of each step (and one beyond): mean of the held signals over the step, delayed, scaled and shifted."""
    steps = signals.shape[1]
    times = timestep * np.arange(steps + 1)
    start, stop = commands.intervals(times, timestep, discretization)
    columns = []
    for signal, part in zip(signals, mechanism.inputs.values, strict=True):
        mean = commands.held_mean(times[:-1], signal, start - part.delay, stop - part.delay, part.hold)
        columns.append(part.gain * mean + part.offset)
    library = namespace(*columns)
    return library.stack(columns, axis=1) if columns else library.zeros((steps + 1, 0))


def check_request(
    mechanism: Mechanism, initial: State, timestep: float, steps: int, discretization: str, joints: str
) -> None:
    """Raise unless it makes sense."""
    for what, name, known in (("discretization", discretization, Discretization), ("kind of joints", joints, Joints)):
        if name not in get_args(known):
            raise UnknownNameError(f"there is no {what} {name!r}{nearest(name, get_args(known))}")
    if joints == "rigid" and discretization != "exact":
        raise SimulationError('rigid joints are for discretization="exact"; SPOOK needs compliant ones')
    if len(mechanism.shafts) and joints != "rigid":
        raise SimulationError(
            f"{mechanism.shafts.names[0]!r} is a shaft that several joints turn: simulate it with rigid joints"
        )
    geared = load_geared(mechanism) if joints != "rigid" else []
    if geared:
        raise SimulationError(
            f"the gear of joint {geared[0]!r} rubs with the torque that it passes on (load_loss): simulate it with "
            "rigid joints"
        )
    if not (np.isfinite(timestep) and timestep > 0.0):
        raise SimulationError(f"the time-step is {timestep} s; it must be a positive number")
    if not (isinstance(steps, int | np.integer) and steps >= 1):
        raise SimulationError(f"the number of steps is {steps}; it must be a whole number of at least 1")
    double_precision()
    check_numbers(mechanism, initial)


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


def check_joints(mechanism: Mechanism, elements: Elements, state: State) -> None:
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
