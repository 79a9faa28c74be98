"""The initial trajectory: filtered readings, then configurations that satisfy the sensors at zero constraint violation.

The paper's Section 4.4 for any mechanism: each channel is low-pass filtered without lag and resampled to the grid; at
each time an inverse-kinematics iteration moves the bodies, from where they were a step before, until the sensors read
the filtered values and all gaps are closed. What no sensor sees stays where it was.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import StateView, gap_jacobian, gap_values
from shadowfit.dynamics.placement import place
from shadowfit.dynamics.state import State
from shadowfit.estimation.linearise import Nodes
from shadowfit.estimation.parameters import Values
from shadowfit.estimation.problem import CHUNK, Problem, Track, sensor_channels
from shadowfit.geometry import Pose
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.leaves import Parts
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import BodyOrientation, JointPosition
from shadowfit.recordings import lowpass, resample

# Gaps weigh this much more than readings, so that they are closed to rounding where both can be met.
GAP_WEIGHT = 1e3
# Pull towards the pose before, relative to the readings: decides only what nothing else does.
STAY_WEIGHT = 1e-5
# Iterations at the first time, which starts with open loops, and at the following ones.
FIRST_ITERATIONS = 60
NEXT_ITERATIONS = 3
# Longest rotation [rad] of one iteration.
LONGEST = 0.5


def initial_nodes(problem: Problem, values: Values, recording: int) -> Nodes:
    """Unknown states of one recording to start from."""
    track = problem.tracks[recording]
    mechanism = problem.written(values, recording)
    targets, weights = _targets(problem, track)
    poses = _follow(mechanism, targets, weights)
    return _as_nodes(problem, track, poses)


def _targets(problem: Problem, track: Track) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Filtered readings of each sensor at the steps, and which sensors have any."""
    recording, grid = track.recording, track.times(problem.timestep)
    targets, weights = [], []
    for name, sensor in problem.mechanism.sensors.items():
        columns = [c for c in sensor_channels(problem.mechanism, name) if c in recording.channels]
        known = len(columns) == len(sensor.components) and not sensor.needs_velocity
        table = np.zeros((track.steps, len(sensor.components)))
        if known:
            wraps = isinstance(sensor, JointPosition) and sensor.rotary
            for i, column in enumerate(columns):
                values = recording.channel(column)
                # Quaternion components may flip sign between samples; smoothing across a flip would destroy them.
                if not isinstance(sensor, BodyOrientation):
                    values = lowpass(recording.time, values, problem.options.cutoff, wraps=wraps)
                table[:, i] = resample(recording.time, values, grid, wraps=wraps, kind="pchip")
        targets.append(table)
        weights.append(float(known))
    return tuple(targets), np.array(weights)


def _follow(mechanism: Mechanism, targets: tuple[np.ndarray, ...], weights: np.ndarray) -> Pose:
    """Poses at all steps."""
    first = tuple(target[0] for target in targets)
    start = _rough_pose(mechanism, first, weights)
    pose = _solve_pose(mechanism, start, first, weights, FIRST_ITERATIONS)
    steps = len(targets[0])
    parts = []
    for begin in range(0, steps, CHUNK):
        chunk = tuple(_filled(target[begin : begin + CHUNK], CHUNK) for target in targets)
        pose, poses = _follow_chunk(mechanism, pose, chunk, weights)
        parts.append(poses)
    position = np.concatenate([np.asarray(part.position) for part in parts])[:steps]
    orientation = np.concatenate([np.asarray(part.orientation) for part in parts])[:steps]
    return Pose(position, orientation)


def _rough_pose(mechanism: Mechanism, first: tuple[np.ndarray, ...], weights: np.ndarray) -> Pose:
    """Joints of a spanning tree at their first readings (or zero); loops are left open, for the iteration to close."""
    group = {name: name for name in (*mechanism.bodies, WORLD)}
    tree = {}
    for name, joint in mechanism.joints.items():
        kept, merged = group[joint.parent], group[joint.child]
        if kept != merged:
            tree[name] = joint
            group = {body: kept if own == merged else own for body, own in group.items()}
    positions = {
        sensor.joint: float(target[0] - sensor.offset)
        for sensor, target, weight in zip(mechanism.sensors.values, first, weights, strict=True)
        if isinstance(sensor, JointPosition) and weight > 0.0 and sensor.joint in tree
    }
    # Not built anew, which would check it: start values of free inertias need not belong to any body.
    return place(eqx.tree_at(lambda m: m.joints, mechanism, Parts(tree)), positions).pose


def _filled(values: np.ndarray, length: int) -> np.ndarray:
    """Values up to a length: the last one repeated."""
    return np.concatenate([values, np.repeat(values[-1:], length - len(values), axis=0)])


@eqx.filter_jit
def _follow_chunk(mechanism: Mechanism, pose: Pose, targets: tuple[Array, ...], weights: Array) -> tuple[Pose, Pose]:
    def advance(pose: Pose, target: tuple[Array, ...]) -> tuple[Pose, Pose]:
        pose = _iterate(mechanism, assemble(mechanism), pose, target, weights, NEXT_ITERATIONS)
        return pose, pose

    return jax.lax.scan(advance, pose, targets)


@eqx.filter_jit
def _solve_pose(mechanism: Mechanism, pose: Pose, target: tuple[Array, ...], weights: Array, iterations: int) -> Pose:
    return _iterate(mechanism, assemble(mechanism), pose, target, weights, iterations)


def _iterate(
    mechanism: Mechanism, elements: Elements, pose: Pose, target: tuple[Array, ...], weights: Array, iterations: int
) -> Pose:
    """Gauss–Newton on readings and gaps, each iteration staying near the pose before it."""
    bodies = len(mechanism.bodies)
    size = 6 * bodies

    def errors(pose: Pose) -> Float[Array, "e"]:
        view = StateView(mechanism, State(pose, jnp.zeros((bodies, 6))), elements)
        sensors = mechanism.sensors.values
        parts = [
            weight * sensor.residual(sensor.read(view), value)
            for sensor, value, weight in zip(sensors, target, weights, strict=True)
        ]
        return jnp.concatenate(parts)

    def correct(_: int, pose: Pose) -> Pose:
        def moved(increment: Array) -> tuple[Array, Array]:
            value = errors(pose.plus(increment.reshape(bodies, 6)))
            return value, value

        slope, reading = jax.jacfwd(moved, has_aux=True)(jnp.zeros(size))
        gap, gap_slope = gap_values(elements, pose), gap_jacobian(elements, pose)
        normal = slope.T @ slope + GAP_WEIGHT**2 * gap_slope.T @ gap_slope + STAY_WEIGHT**2 * jnp.eye(size)
        gradient = slope.T @ reading + GAP_WEIGHT**2 * gap_slope.T @ gap
        increment = -jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(normal), gradient).reshape(bodies, 6)
        longest = jnp.max(jnp.linalg.norm(increment[:, 3:], axis=1))
        return pose.plus(increment * jnp.minimum(1.0, LONGEST / jnp.maximum(longest, LONGEST)))

    return jax.lax.fori_loop(0, iterations, correct, pose)


@jax.jit
def _differences(pose: Pose) -> Float[Array, "n bodies 6"]:
    return pose[1:].minus(pose[:-1])


def _as_nodes(problem: Problem, track: Track, poses: Pose) -> Nodes:
    """Nodes of the problem: the steps' poses, continued at both ends at constant velocity."""
    plan = problem.plan
    before = plan.centre
    after = plan.window - 1 - before
    first = _extend(poses[0], poses[1])
    positions, orientations = [first.position[None]] * before, [first.orientation[None]] * before
    positions.append(poses.position)
    orientations.append(poses.orientation)
    last, previous = poses[-1], poses[-2]
    for _ in range(after):
        following = _extend(last, previous)
        positions.append(following.position[None])
        orientations.append(following.orientation[None])
        previous, last = last, following
    pose = Pose(np.concatenate(positions), np.concatenate(orientations))
    if plan.unknowns == "configuration":
        return Nodes(pose, None)
    increments = _padded_differences(pose)
    velocity = np.concatenate([increments[:1], increments]) / problem.timestep
    return Nodes(pose, velocity)


def _padded_differences(pose: Pose) -> np.ndarray:
    """``q_{k+1} ⊟ q_k`` for all k, in chunks of one compiled size."""
    count = len(pose.position)
    parts = []
    for begin in range(0, count - 1, CHUNK):
        stop = begin + CHUNK + 1
        cut = Pose(_filled(pose.position[begin:stop], CHUNK + 1), _filled(pose.orientation[begin:stop], CHUNK + 1))
        parts.append(np.asarray(_differences(cut)))
    return np.concatenate(parts)[: count - 1]


@jax.jit
def _extend_on_device(pose: Pose, away_from: Pose) -> Pose:
    return pose.plus(pose.minus(away_from))


def _extend(pose: Pose, away_from: Pose) -> Pose:
    """The pose one step further along the motion from ``away_from``."""
    extended = _extend_on_device(pose, away_from)
    return Pose(np.asarray(extended.position), np.asarray(extended.orientation))
