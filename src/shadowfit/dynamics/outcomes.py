"""What becomes of trajectories, side by side: their steps by machine code or by XLA, and what is seen along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.complementarity import Status
from shadowfit.dynamics import compliant, observe, rigid
from shadowfit.dynamics.discretization import SCHEMES, Discretization
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.requests import Joints, step_commands
from shadowfit.dynamics.rollout import compiled_rollout
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.trajectory import Diagnostics, Trajectory
from shadowfit.dynamics.tree import tree_of
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.geometry import Pose
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.trees import map_leaves

# Lengths that a simulation by XLA is padded to: the loop is compiled once for all numbers of steps up to one of them.
SHORTEST_LOOP = 256
LOOP_GROWTH = 4


class Steps(NamedTuple):
    """How to step."""

    mechanism: Mechanism
    timestep: float
    """[s]"""
    discretization: Discretization
    joints: Joints
    diagnostics: bool


class Start(NamedTuple):
    """Where a trajectory begins, and its inputs over each step."""

    state: State
    signals: Float[np.ndarray, "inputs steps"]


class Outcome(NamedTuple):
    """A trajectory as far as its steps were solved, and the status of the step after that."""

    run: Trajectory
    status: int


def outcomes(steps: Steps, starts: Sequence[Start]) -> list[Outcome]:
    """All trajectories, which have the same number of steps."""
    if steps.joints == "rigid":
        return rigid_outcomes(steps, starts)
    outcomes = compliant_outcomes(steps, starts)
    return [outcome or by_xla(steps, start) for start, outcome in zip(starts, outcomes, strict=True)]


def rigid_outcomes(steps: Steps, starts: Sequence[Start]) -> list[Outcome]:
    """Of rigid joints."""
    mechanism, timestep = steps.mechanism, steps.timestep
    tree, commands = tree_of(mechanism), _commands(steps, starts)
    together = rigid.run(tree, mechanism, _stacked(starts), commands, timestep)
    outcomes = []
    for number, command in enumerate(commands):
        run: rigid.Run = map_leaves(lambda x, number=number: x[number], together)
        good, status = _solved(run.status[: len(command)])
        velocity = run.velocity[:good]
        # The velocity of a step that failed means nothing.
        last = run.velocity[good] if status == Status.SOLVED else velocity[-1]
        following = np.concatenate([velocity[1:], last[None]])
        pose = Pose(run.position[:good], run.orientation[:good])
        synchronous = State(pose, 0.5 * (velocity + following))
        report = None
        if steps.diagnostics:
            impulses = rigid.multipliers(tree, mechanism, run, command, timestep)
            energies = observe.energies_and_gaps(mechanism, synchronous)
            report = Diagnostics(map_leaves(lambda x, good=good: x[:good], impulses), *energies)
        instants = Instant((following - velocity) / timestep, command[:good])
        readings = observe.readings(mechanism, synchronous, instants)
        time = timestep * np.arange(good)
        outcomes.append(Outcome(Trajectory(time, State(pose, velocity), readings, run.status[:good], report), status))
    return outcomes


def compliant_outcomes(steps: Steps, starts: Sequence[Start]) -> list[Outcome | None]:
    """Of compliant joints by machine code; None where it has to be XLA."""
    mechanism, timestep = steps.mechanism, steps.timestep
    elements, commands = assembled(mechanism), _commands(steps, starts)
    together = compliant.run(mechanism, elements, _stacked(starts), commands, timestep, steps.discretization)
    if together is None:
        return [None] * len(starts)
    outcomes: list[Outcome | None] = []
    for number, command in enumerate(commands):
        states, statuses, multipliers = map_leaves(lambda x, number=number: x[number], together)
        good, status = _solved(statuses[: len(command)])
        if status != Status.SOLVED and complementary_count(elements):
            # Whether the step has a solution is for Lemke's method to say.
            outcomes.append(None)
            continue
        synchronous, velocity = states, states.velocity
        if SCHEMES[steps.discretization].staggered:
            synchronous = State(states.pose[:-1], 0.5 * (velocity[:-1] + velocity[1:]))
            acceleration = np.diff(velocity, axis=0) / timestep
        else:
            acceleration = np.diff(velocity, axis=0, append=2.0 * velocity[-1:] - velocity[-2:-1]) / timestep
        count = len(synchronous.velocity)
        report = None
        if steps.diagnostics:
            energies = observe.energies_and_gaps(mechanism, synchronous)
            report = Diagnostics(tuple(x[:count] for x in multipliers), *energies)
        readings = observe.readings(mechanism, synchronous, Instant(acceleration, command))
        kept = State(states.pose[:count], velocity[:count])
        run = Trajectory(timestep * np.arange(count), kept, readings, statuses[:count], report)
        outcomes.append(Outcome(map_leaves(lambda x, good=good: x[:good], run), status))
    return outcomes


def by_xla(steps: Steps, start: Start) -> Outcome:
    """Of compliant joints, one trajectory, by XLA."""
    count = start.signals.shape[1]
    run = compiled_rollout(
        steps.mechanism,
        assembled(steps.mechanism),
        start.state,
        np.pad(start.signals, ((0, 0), (0, _loop_length(count) - count)), mode="edge"),
        np.asarray(steps.timestep, float),
        np.asarray(count),
        steps.discretization,
        steps.diagnostics,
    )
    good, status = _solved(np.asarray(run.status)[: count + 1])
    # Sliced by NumPy, for which nothing has to be compiled.
    return Outcome(map_leaves(lambda x: np.asarray(x)[:good], run), status)


def _commands(steps: Steps, starts: Sequence[Start]) -> Float[np.ndarray, "n steps+1 inputs"]:
    settings = steps.mechanism, steps.timestep, steps.discretization
    return np.stack([np.asarray(step_commands(settings[0], start.signals, *settings[1:])) for start in starts])


def _stacked(starts: Sequence[Start]) -> State:
    return map_leaves(lambda *x: np.stack([np.asarray(each, float) for each in x]), *(s.state for s in starts))


def _solved(status: Int[np.ndarray, "t"]) -> tuple[int, int]:
    """Times before the first step that failed, and its status."""
    failed = np.flatnonzero(status != int(Status.SOLVED))
    return (int(failed[0]), int(status[failed[0]])) if failed.size else (len(status), int(Status.SOLVED))


def _loop_length(steps: int) -> int:
    length = SHORTEST_LOOP
    while length < steps:
        length *= LOOP_GROWTH
    return length
