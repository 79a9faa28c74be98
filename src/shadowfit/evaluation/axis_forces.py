"""What the equations of motion lack, along the joints' axes.

Against speed it shows the friction that a model misses, against position a spring or an eccentric gear, against time a
drift.

The impulse residual Δp of a step, over all bodies, does the work ``Δpᵀ v``. Motions that open no joint are spanned by
the null space N of the gap rows G, chosen such that each column moves one joint at unit speed. ``Nᵀ Δp/h`` is then the
missing torque [N m] or force [N] of each joint.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView, gap_jacobian
from shadowfit.dynamics.state import State
from shadowfit.estimation import Estimate
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.axis_noise import unweighted
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.evaluation.joint_motion import joint_positions
from shadowfit.evaluation.unexplained import tree_behind
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism import Mechanism
from shadowfit.records import record

# Singular values of the gap rows below this fraction of the largest are redundant rows of a loop.
REDUNDANT = 1e-9
# Steps of a recording at which impulses on bodies are projected on the joints.
MOST_PROJECTED = 1000
# Steps to the most likely states: they are nearly a linear problem.
STATE_STEPS = 2


class Bins(NamedTuple):
    """Mean force of one joint over another quantity."""

    over: Float[np.ndarray, " b"]
    """Mean time, position or speed of each bin."""
    force: Float[np.ndarray, " b"]
    """Mean force [N m or N]."""
    error: Float[np.ndarray, " b"]
    """Standard error of the mean force."""


@record(frozen=True)
class AxisForce:
    """Missing force of one joint over the steps of a recording."""

    time: Float[np.ndarray, " n"]
    """[s]."""
    position: Float[np.ndarray, " n"]
    """[rad or m]; angles are followed over turns."""
    speed: Float[np.ndarray, " n"]
    """[rad/s or m/s]."""
    force: Float[np.ndarray, " n"]
    """[N m or N]; what would have to be added to the model."""

    def binned(self, over: Literal["time", "position", "speed"], bins: int = 20) -> Bins:
        """Mean force in bins of equally many steps, in the order of time, position or speed."""
        along = getattr(self, over)
        parts = [part for part in np.array_split(np.argsort(along), bins) if len(part) > 1]
        mean = [(np.mean(along[p]), np.mean(self.force[p]), np.std(self.force[p]) / np.sqrt(len(p))) for p in parts]
        return Bins(*np.array(mean).reshape(-1, 3).T)


def axis_forces(estimate: Estimate) -> list[dict[str, AxisForce]]:
    """For each recording, the missing force of each joint with a free axis.

    With poses as unknowns the joints' motions have to be found at each step, and at most :data:`MOST_PROJECTED` are
    taken, at equal distances.
    """
    return [_of_recording(estimate, i, impulse) for i, impulse in enumerate(likely_impulses(estimate))]


def likely_impulses(estimate: Estimate) -> list[Float[np.ndarray, "n r"]]:
    """Impulses that the steps of each recording lack along the most likely motion.

    Where the equations of motion were given more weight than their errors ask for, the fit's own residuals are small by
    force. The states are then found anew with the levels of the noise as weights and the parameters of the fit, by
    Gauss–Newton steps from the fit's states.
    """
    problem, weights = estimate.problem, estimate.weights
    point, size = estimate.outcome.linearisation.point, problem.plan.node_size
    if weights.impulse_std is not None and not weights.believed:
        weights = Weights(np.diag(weights.reference / np.array(weights.impulse_std)), weights.std, weights.reference)
        with one_thread():
            point = _most_likely_states(problem, point, weights)
    impulses = []
    for index in range(len(problem.tracks)):
        # With full unknowns the residual of the velocity comes last.
        weighted = objective.residuals(problem, point, weights, index)[:, :size][:, -problem.plan.impulses :]
        impulses.append(unweighted(point, weights, index, weighted))
    return impulses


def _most_likely_states(problem: Problem, point: Point, weights: Weights) -> Point:
    for _ in range(STATE_STEPS):
        point = renewed(problem, objective.states_stepped(problem, point, weights))
    return point


def _of_recording(estimate: Estimate, recording: int, impulse: Float[np.ndarray, "n r"]) -> dict[str, AxisForce]:
    mechanism, problem = estimate.mechanism(recording), estimate.problem
    trajectory = estimate.trajectory(recording)
    position = joint_positions(mechanism, trajectory.states)
    if not position:
        return {}
    every = 1 if tree_behind(problem) is not None else -(-len(impulse) // MOST_PROJECTED)
    chosen = np.arange(0, len(impulse), every)
    joints = [mechanism.joints.index(name) for name in position]
    states = trajectory.states

    def project(impulse: Float[np.ndarray, "n r"]) -> Float[np.ndarray, "n j"]:
        arrays = [np.asarray(x)[chosen] for x in (states.pose.position, states.pose.orientation, states.velocity)]
        if not np.all(np.isfinite(impulse)):  # a fit that failed
            return np.full((len(impulse), len(position)), np.nan)
        gaps, axes = along(_jacobians, mechanism, arrays, tuple(position))
        return _along_axes(gaps, axes, impulse)

    force = problem.plan.unknowns.along_axes(impulse[chosen], joints, project) / problem.timestep
    speed = {
        name: np.gradient(angles, problem.timestep) if len(angles) > 1 else np.zeros(1)
        for name, angles in position.items()
    }
    return {
        name: AxisForce(trajectory.time[chosen], position[name][chosen], speed[name][chosen], force[:, i])
        for i, name in enumerate(position)
    }


def _along_axes(
    gaps: Float[np.ndarray, "n r x"], axes: Float[np.ndarray, "n j x"], impulse: Float[np.ndarray, "n x"]
) -> Float[np.ndarray, "n j"]:
    """Impulses of all bodies along the motions that open no joint."""
    along = np.zeros(axes.shape[:2])
    for k, (gap, axis) in enumerate(zip(gaps, axes, strict=True)):
        _, values, vectors = np.linalg.svd(gap)
        rank = int(np.sum(values > REDUNDANT * values.max(initial=0.0)))
        free = vectors[rank:].T
        moves = free @ np.linalg.pinv(axis @ free)
        along[k] = moves.T @ impulse[k]
    return along


def _jacobians(
    mechanism: Mechanism, position: Array, orientation: Array, velocity: Array, names: tuple[str, ...]
) -> list[Array]:
    """Gap rows and the joints' speeds as functions of all velocities, at a state."""
    elements, pose = assemble(mechanism), Pose(position, orientation)

    def speeds(flat: Array) -> Array:
        view = StateView(mechanism, State(pose, flat.reshape(velocity.shape)), elements)
        return jnp.stack([view.joint_speed(name) for name in names])

    return [gap_jacobian(elements, pose), jax.jacfwd(speeds)(velocity.ravel())]
