"""Open-loop simulation along a recording: start at an estimated state, feed the recorded inputs, correct nothing."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.dynamics import State, Trajectory, simulate
from shadowfit.dynamics.placement import closed
from shadowfit.dynamics.simulate import Discretization
from shadowfit.errors import OpenJointError, SimulationError
from shadowfit.estimation import Estimate
from shadowfit.estimation.solve.truncation import velocities
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording, held_input_average

# Steps of a rollout in a step of a corrected fit.
FINER = 8


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
    if problem.options.correction != "none":
        return State(
            states.pose, jnp.asarray(velocities(problem, point, recording, first + np.arange(steps, dtype=float)))
        )
    if nodes.velocity is None and problem.plan.equations.discretization == "spook":
        before = Pose(
            nodes.pose.position[first - 1 : first - 1 + steps], nodes.pose.orientation[first - 1 : first - 1 + steps]
        )
        return State(states.pose, differences(states.pose, before) / problem.timestep)
    if nodes.velocity is not None and problem.plan.equations.discretization == "exact":
        following = nodes.velocity[first + 1 : first + 1 + steps]
        return State(states.pose, 0.5 * (states.velocity + following))
    return states


def discretization(estimate: Estimate) -> Discretization:
    """The discrete equations of motion that a fit used."""
    return "spook" if estimate.problem.plan.equations.discretization == "spook" else "exact"


def fineness(estimate: Estimate) -> int:
    """Steps of a rollout in a step of the fit: corrected parameters belong to no time-step, so that any is too long."""
    return 1 if estimate.problem.options.correction == "none" else FINER


def roll_out(
    mechanism: Mechanism,
    initial: State,
    recording: Recording,
    *,
    timestep: float,
    steps: int,
    discretization: Discretization,
    first_step: int = 0,
) -> Trajectory:
    """Simulate ``steps`` steps from a state at step ``first_step`` of the recording; shorter if a step fails.

    Estimated states satisfy the joints up to their noise. Where a simulation does not accept that (a thin rod turns
    about its own axis), the start is put on the constraints.
    """
    inputs = recorded_inputs(mechanism, recording, timestep, first_step + steps)
    signals = {name: values[first_step:] for name, values in inputs.items()}

    def run(start: State) -> Trajectory:
        return simulate(mechanism, start, signals, timestep=timestep, steps=steps, discretization=discretization)

    try:
        try:
            return run(initial)
        except OpenJointError:
            return run(closed(mechanism, initial))
    except SimulationError as error:
        if not isinstance(error.partial, Trajectory):
            raise
        return error.partial


def recorded_inputs(
    mechanism: Mechanism, recording: Recording | None, timestep: float, steps: int
) -> dict[str, Float[np.ndarray, " steps"]]:
    """Each input over each step, shape (steps,): from a recording, or zero without one."""
    if recording is None:
        return {name: np.zeros(steps) for name in mechanism.inputs}
    begin = recording.time[0] + timestep * np.arange(steps)
    inputs = {}
    for name, part in mechanism.inputs.items():
        # A held signal counts by its mean over the step; a connected one by its values at the steps' times.
        end = begin + timestep if part.hold == "zero" else begin
        values = recording.channel(name)
        known = np.isfinite(values)
        inputs[name] = held_input_average(recording.time[known], values[known], begin, end, part.hold)
    return inputs
