"""Simulation: many steps in one compiled loop, with checks before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from shadowfit.complementarity import Status
from shadowfit.dynamics import compliant, exact, observe, rigid
from shadowfit.dynamics.discretization import SCHEMES, Discretization
from shadowfit.dynamics.elements import Elements, assembled
from shadowfit.dynamics.requests import (
    Joints,
    check_joints,
    check_request,
    input_signals,
    step_commands,
)
from shadowfit.dynamics.rollout import compiled_rollout
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.trajectory import Diagnostics, Trajectory
from shadowfit.dynamics.tree import tree_of
from shadowfit.errors import SimulationError
from shadowfit.geometry import Pose
from shadowfit.mechanism.mechanism import Mechanism

# Lengths that a simulation by XLA is padded to: the loop is compiled once for all numbers of steps up to one of them.
SHORTEST_LOOP = 256
LOOP_GROWTH = 4
# Loops whose weakest row counts for less than this, relative to the strongest, are named when a step fails.
NEARLY_SINGULAR = 1e-2


def simulate(
    mechanism: Mechanism,
    initial: State,
    inputs: Mapping[str, Any] | None = None,
    *,
    timestep: float,
    steps: int,
    discretization: Discretization = "exact",
    joints: Joints = "compliant",
    diagnostics: bool = False,
) -> Trajectory:
    """Simulate ``steps`` steps of ``timestep`` [s] from an initial state.

    ``inputs`` gives each input as a number, as an array of ``steps`` values (each held over its step), or as a
    function of time [s]. With ``joints="rigid"`` the mechanism moves in joint coordinates (:mod:`rigid_step`). A step
    that fails raises :class:`SimulationError`, which names the step and holds the trajectory so far in ``partial``.
    """
    check_request(mechanism, initial, timestep, steps, discretization, joints)
    signals = input_signals(mechanism, inputs or {}, timestep, steps)
    elements = assembled(mechanism)
    check_joints(mechanism, elements, initial)
    if joints == "rigid":
        run, status = _rigid(mechanism, initial, signals, timestep, diagnostics)
    else:
        given = (mechanism, elements, initial, signals, timestep, discretization, diagnostics)
        run, status = _compliant(*given) or _by_xla(*given)
    if status == Status.SOLVED:
        return run
    step = len(run)
    raise SimulationError(
        f"simulation of {mechanism.name!r} stopped at step {step} of {steps} (t = {step * timestep:.6g} s): "
        f"{_failure(status)}{_loops_at(mechanism, run) if joints == 'rigid' else ''}",
        run,
    )


def _failure(status: int) -> str:
    if status == exact.NewtonStatus.NOT_SETTLED:
        return "Newton's iterations for the exact constraint did not settle; try a smaller time-step"
    return f"its equations were not solved ({Status(status).text})"


def _loops_at(mechanism: Mechanism, run: Trajectory) -> str:
    """A sentence about loops whose last configuration is nearly singular."""
    tree = tree_of(mechanism)
    if not tree.loops:
        return ""
    pose = jax.tree.map(lambda x: np.asarray(x)[-1], run.states.pose)
    weakest, joint = rigid.weakest_loop(tree, mechanism, pose)
    if weakest > NEARLY_SINGULAR:
        return ""
    return f". The loop of joint {joint!r} is near a singular configuration there, where it can go on in two ways"


_Outcome = tuple[Trajectory, int]
"""A trajectory as far as its steps were solved, and the status of the step after that."""


def _rigid(
    mechanism: Mechanism, initial: State, signals: Float[np.ndarray, "inputs steps"], timestep: float, diagnostics: bool
) -> _Outcome:
    tree = tree_of(mechanism)
    command = np.asarray(step_commands(mechanism, signals, timestep, "exact"))
    found = rigid.run(tree, mechanism, initial, command, timestep)
    good, status = _solved(found.status[: signals.shape[1] + 1])
    velocity = found.velocity[:good]
    # The velocity of a step that failed means nothing.
    last = found.velocity[good] if status == Status.SOLVED else velocity[-1]
    following = np.concatenate([velocity[1:], last[None]])
    pose = Pose(found.position[:good], found.orientation[:good])
    synchronous = State(pose, 0.5 * (velocity + following))
    report = None
    if diagnostics:
        impulses = rigid.multipliers(tree, mechanism, found, command, timestep)
        energies = observe.energies_and_gaps(mechanism, synchronous)
        report = Diagnostics(tuple(x[:good] for x in impulses), *energies)
    instants = Instant((following - velocity) / timestep, command[:good])
    readings = observe.readings(mechanism, synchronous, instants)
    time = timestep * np.arange(good)
    run = Trajectory(time, State(pose, velocity), readings, found.status[:good], report)
    return jax.device_put(run), status


def _compliant(
    mechanism: Mechanism,
    elements: Elements,
    initial: State,
    signals: Float[np.ndarray, "inputs steps"],
    timestep: float,
    discretization: Discretization,
    diagnostics: bool,
) -> _Outcome | None:
    """By machine code; None where it has to be XLA."""
    command = np.asarray(step_commands(mechanism, signals, timestep, discretization))
    found = compliant.run(mechanism, elements, initial, command, timestep, discretization)
    if found is None:
        return None
    states = found.states
    good, status = _solved(found.status[: signals.shape[1] + 1])
    synchronous, velocity = states, states.velocity
    if SCHEMES[discretization].staggered:
        synchronous = State(states.pose[:-1], 0.5 * (velocity[:-1] + velocity[1:]))
        acceleration = np.diff(velocity, axis=0) / timestep
    else:
        acceleration = np.diff(velocity, axis=0, append=2.0 * velocity[-1:] - velocity[-2:-1]) / timestep
    count = len(synchronous.velocity)
    report = None
    if diagnostics:
        energies = observe.energies_and_gaps(mechanism, synchronous)
        report = Diagnostics(tuple(x[:count] for x in found.multipliers), *energies)
    readings = observe.readings(mechanism, synchronous, Instant(acceleration, command))
    kept = State(states.pose[:count], velocity[:count])
    run = Trajectory(timestep * np.arange(count), kept, readings, found.status[:count], report)
    return jax.device_put(jax.tree.map(lambda x: x[:good], run)), status


def _by_xla(
    mechanism: Mechanism,
    elements: Elements,
    initial: State,
    signals: Float[np.ndarray, "inputs steps"],
    timestep: float,
    discretization: Discretization,
    diagnostics: bool,
) -> _Outcome:
    steps = signals.shape[1]
    run = compiled_rollout(
        mechanism,
        elements,
        initial,
        np.pad(signals, ((0, 0), (0, _loop_length(steps) - steps)), mode="edge"),
        np.asarray(timestep, float),
        np.asarray(steps),
        discretization,
        diagnostics,
    )
    good, status = _solved(np.asarray(run.status)[: steps + 1])
    # Sliced by NumPy, for which nothing has to be compiled.
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[:good]), run), status


def _solved(status: Int[np.ndarray, "t"]) -> tuple[int, int]:
    """Times before the first step that failed, and its status."""
    failed = np.flatnonzero(status != int(Status.SOLVED))
    return (int(failed[0]), int(status[failed[0]])) if failed.size else (len(status), int(Status.SOLVED))


def _loop_length(steps: int) -> int:
    length = SHORTEST_LOOP
    while length < steps:
        length *= LOOP_GROWTH
    return length
