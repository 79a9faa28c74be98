"""The initial trajectory: filtered readings, then configurations that satisfy the sensors at zero constraint violation.

The paper's Section 4.4 for any mechanism: each channel is low-pass filtered without lag and resampled to the grid; at
each time an inverse-kinematics iteration moves the bodies, from where they were a step before, until the sensors read
the filtered values and all gaps are closed. What no sensor sees stays where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics.placement import place
from shadowfit.estimation.problem.track import Track
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.leaves import Parts
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import BodyOrientation, JointPosition
from shadowfit.recordings import lowpass, resample

if TYPE_CHECKING:
    from shadowfit.estimation.problem.problem import Problem

# Iterations at the first time, which starts with open loops, and at the following ones.
FIRST_ITERATIONS = 60
NEXT_ITERATIONS = 3
# Of several ways to meet the first readings, one whose squared error is less than this many times the smallest one
# (or than this [rad², m²]) is as good as the best.
CLOSER = 1.5
MET = 1e-12


def initial_nodes(problem: Problem, values: Values, recording: int) -> Nodes:
    """Unknown states of one recording to start from."""
    nodes = _as_nodes(problem, followed(problem, values, recording))
    return Nodes(problem.at(values, recording).closed(nodes.pose), nodes.velocity)


def followed(problem: Problem, values: Values, recording: int) -> Pose:
    """Poses of nodes at the steps of a recording, as the filtered readings have them."""
    targets, weights = _targets(problem, problem.tracks[recording])
    return _follow(problem, values, recording, targets, weights)


def followed_off(problem: Problem, values: Values, recording: int) -> Iterator[Pose]:
    """The same with one reading after another that is too large by its standard deviation."""
    targets, weights = _targets(problem, problem.tracks[recording])
    for index, sensor in enumerate(problem.mechanism.sensors.values):
        for component in range(len(sensor.components) if weights[index] > 0.0 else 0):
            shifted = targets[index].copy()
            # A quaternion turns by twice the change of one of its components.
            shifted[:, component] += float(sensor.std) * (0.5 if isinstance(sensor, BodyOrientation) else 1.0)
            yield _follow(problem, values, recording, (*targets[:index], shifted, *targets[index + 1 :]), weights)


def _targets(problem: Problem, track: Track) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Filtered readings of each sensor at the steps, and which sensors have any."""
    cutoff = problem.options.cutoff
    assert cutoff is not None  # a problem is built with one
    recording, grid = track.recording, track.times(problem.timestep)
    targets, weights = [], []
    for name, sensor in problem.mechanism.sensors.items():
        columns = [c for c in sensor.channels(name) if c in recording.channels]
        known = len(columns) == len(sensor.components) and not sensor.needs_velocity
        table = np.zeros((track.steps, len(sensor.components)))
        if known:
            wraps = isinstance(sensor, JointPosition) and sensor.rotary
            channels = np.stack([recording.channel(column) for column in columns])
            if isinstance(sensor, BodyOrientation):
                channels = _without_flips(channels)
            for i, values in enumerate(channels):
                smooth = lowpass(recording.time, values, cutoff, wraps=wraps)
                table[:, i] = resample(recording.time, smooth, grid, wraps=wraps, kind="pchip")
            if isinstance(sensor, BodyOrientation):
                table /= np.linalg.norm(table, axis=1, keepdims=True)
        targets.append(table)
        weights.append(float(known))
    return tuple(targets), np.array(weights)


def _without_flips(quaternions: Float[np.ndarray, "4 n"]) -> Float[np.ndarray, "4 n"]:
    """The same orientations with quaternions that do not change sign between samples; missing ones stay missing."""
    known = np.flatnonzero(np.all(np.isfinite(quaternions), axis=0))
    turned = np.sum(quaternions[:, known[1:]] * quaternions[:, known[:-1]], axis=0) < 0.0
    continuous = quaternions.copy()
    continuous[:, known[1:]] *= np.where(np.cumsum(turned) % 2 == 1, -1.0, 1.0)
    return continuous


def _follow(
    problem: Problem, values: Values, recording: int, targets: tuple[np.ndarray, ...], weights: np.ndarray
) -> Pose:
    """Poses of nodes at all steps: some iterations at the first readings, then a few at each."""
    here = problem.at(values, recording)
    rough = _rough_pose(problem.written(values, recording), tuple(target[0] for target in targets), weights)
    first = here.nodes(Pose(np.asarray(rough.position)[None], np.asarray(rough.orientation)[None]))[0]
    still = tuple(np.repeat(target[:1], FIRST_ITERATIONS, axis=0) for target in targets)
    tries = [here.follow(weights, guess, still) for guess in problem.plan.unknowns.guesses(first)]
    errors = np.nan_to_num([one.error[-1] for one in tries], nan=np.inf)
    # The first guess, unless another one is closer to the readings.
    best = tries[int(np.argmax(errors <= CLOSER * errors.min() + MET))].pose[-1]
    repeated = tuple(np.repeat(target, NEXT_ITERATIONS, axis=0) for target in targets)
    return here.follow(weights, best, repeated).pose[NEXT_ITERATIONS - 1 :: NEXT_ITERATIONS]


def _rough_pose(mechanism: Mechanism, first: tuple[np.ndarray, ...], weights: np.ndarray) -> Pose:
    """Joints of a spanning tree at their first readings (or zero); loops are left open, for the iteration to close."""
    group = {name: name for name in (*mechanism.bodies, WORLD)}
    tree = {}
    for name, joint in mechanism.joints.items():
        kept, merged = group[joint.parent], group[joint.child]
        if kept != merged:
            tree[name] = joint
            group = {body: kept if root == merged else root for body, root in group.items()}
    positions = {
        sensor.joint: sensor.position(float(target[0]))
        for sensor, target, weight in zip(mechanism.sensors.values, first, weights, strict=True)
        if isinstance(sensor, JointPosition) and weight > 0.0 and sensor.joint in tree
    }
    # Not built anew, which would check it: start values of free inertias need not belong to any body.
    return place(mechanism.having(joints=Parts(tree)), positions).pose


def _as_nodes(problem: Problem, poses: Pose) -> Nodes:
    """Nodes of the problem: the steps' poses, continued at both ends at constant velocity."""
    plan = problem.plan
    before = plan.centre
    after = plan.window - 1 - before
    increments = differences(poses[1:], poses[:-1])
    ends = Pose(*(x[np.array([0] * before + [-1] * after, int)] for x in (poses.position, poses.orientation)))
    far = np.array([-increments[0]] * before + [k * increments[-1] for k in range(1, after + 1)])
    moved = problem.kernels.shift(Nodes(ends, None), far.reshape(len(far), -1))
    position, orientation = (
        np.concatenate([beyond[:before], inner, beyond[before:]])
        for beyond, inner in (
            (moved.pose.position, poses.position),
            (moved.pose.orientation, poses.orientation),
        )
    )
    return plan.unknowns.nodes(Pose(position, orientation), problem.timestep)
