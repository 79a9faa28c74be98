"""Open-loop simulation along a recording: start at an estimated state, feed the recorded inputs, correct nothing."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.dynamics import State, Trajectory, simulate
from shadowfit.dynamics.discretization import SCHEMES, Discretization
from shadowfit.dynamics.placement import closed
from shadowfit.dynamics.requests import SUBSTEPS, Joints
from shadowfit.errors import OpenJointError, SimulationError
from shadowfit.estimation import Estimate
from shadowfit.estimation.solve.truncation import velocities
from shadowfit.evaluation.inputs import recorded_inputs
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording
from shadowfit.records import record


def start_states(estimate: Estimate, recording: int = 0) -> State:
    """The estimated states at all steps, each with the velocity that a simulation from there starts with.

    The exact stepper starts from the velocity at the pose's own time, SPOOK from the one that led to the pose,
    ``(q_k ⊟ q_{k−1})/h``. Corrected fits have it from the smooth curve through the states. Shape of the arrays:
    (steps, bodies, ...).
    """
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    nodes = problem.bodies(point, recording)
    states = estimate.trajectory(recording).states
    steps, first = problem.tracks[recording].steps, problem.plan.centre
    staggered = SCHEMES[problem.plan.equations.discretization].staggered
    if problem.options.correction != "none":
        return State(states.pose, velocities(problem, point, recording, first + np.arange(steps, dtype=float)))
    if nodes.velocity is None and not staggered:
        before = Pose(
            nodes.pose.position[first - 1 : first - 1 + steps], nodes.pose.orientation[first - 1 : first - 1 + steps]
        )
        return State(states.pose, differences(states.pose, before) / problem.timestep)
    if nodes.velocity is not None and staggered:
        following = nodes.velocity[first + 1 : first + 1 + steps]
        return State(states.pose, 0.5 * (states.velocity + following))
    return states


@record(frozen=True)
class Stepping:
    """How a simulation goes from step to step."""

    timestep: float
    """h [s]."""
    discretization: Discretization
    joints: Joints


def stepping(estimate: Estimate, finer: int = 1) -> Stepping:
    """The discrete equations of motion that a fit used, with so many steps in a step of the fit."""
    problem = estimate.problem
    return Stepping(
        problem.timestep / finer,
        problem.plan.equations.discretization,
        "rigid" if problem.plan.unknowns.scope.rigid else "compliant",
    )


def fineness(estimate: Estimate) -> int:
    """Steps of a rollout in a step of the fit: corrected parameters belong to no time-step, so that any is too long."""
    return 1 if estimate.problem.options.correction == "none" else SUBSTEPS


def roll_out(
    mechanism: Mechanism,
    initial: State,
    recording: Recording,
    how: Stepping,
    *,
    steps: int,
    first_step: int = 0,
) -> Trajectory:
    """Simulate ``steps`` steps from a state at step ``first_step`` of the recording; shorter if a step fails.

    Estimated states satisfy the joints up to their noise. Where a simulation does not accept that (a thin rod turns
    about its own axis), the start is put on the constraints.
    """
    inputs = recorded_inputs(mechanism, recording, how.timestep, first_step + steps)
    signals = {name: values[first_step:] for name, values in inputs.items()}

    def run(start: State) -> Trajectory:
        return simulate(mechanism, start, signals, steps=steps, substeps=1, **dataclasses.asdict(how))

    try:
        try:
            return run(initial)
        except OpenJointError:
            return run(closed(mechanism, initial))
    except SimulationError as error:
        if not isinstance(error.partial, Trajectory):
            raise
        return error.partial
