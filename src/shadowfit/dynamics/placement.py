"""Building a state from joint positions and speeds: along the tree, then closing loops.

Every body is first placed along a spanning tree of the joints from the world; bodies that no joint ties to the world stay where they are
told (or at the origin). Where joints close loops, a Gauss–Newton iteration then moves the bodies as little as possible until all gaps are
zero, holding the joint positions that were asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics import rows
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import gap_jacobian, gap_values
from shadowfit.dynamics.state import State, with_world
from shadowfit.errors import MechanismError, UnknownNameError, nearest
from shadowfit.geometry import Pose, rotations
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.joint_types import Frame
from shadowfit.mechanism.mechanism import Mechanism

LOOP_ITERATIONS = 30
# Directions in which a row moves the bodies by less than this (relative) count as redundant.
RANK_TOLERANCE = 1e-9
# A loop that leaves a gap larger than this [m or rad] cannot be closed.
CLOSED = 1e-8


def place(
    mechanism: Mechanism,
    positions: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
    *,
    poses: Mapping[str, tuple[Any, Any]] | None = None,
    velocities: Mapping[str, Any] | None = None,
) -> State:
    """A state with no constraint violation at the given joint positions [rad, m] and speeds [rad/s, m/s].

    Joints that are not named are at zero (at whatever the loop needs, if they are part of one). ``poses`` (centre of mass [m],
    quaternion) and ``velocities`` (six numbers) are for bodies that no joint ties to the world.
    """
    positions, speeds = dict(positions or {}), dict(speeds or {})
    for name in (*positions, *speeds):
        if name not in mechanism.joints:
            raise UnknownNameError(f"there is no joint {name!r}{nearest(name, mechanism.joints)}")
        if mechanism.joints[name].kind.axis_kind is None:
            raise MechanismError(f"joint {name!r} has no free axis to give a position or speed to")
    names = mechanism.joints.names
    given = np.array([positions.get(name, 0.0) for name in names], float)
    rates = np.array([speeds.get(name, 0.0) for name in names], float)
    if not (np.all(np.isfinite(given)) and np.all(np.isfinite(rates))):
        raise MechanismError("joint positions and speeds must be finite numbers")
    pose, start = _free_bodies(mechanism, poses or {}, velocities or {})
    loops = len(_loop_joints(mechanism)) > 0
    held = tuple(name in positions if loops else True for name in names)
    driven = tuple(name in speeds if loops else True for name in names)
    state, gap = _place(mechanism, given, rates, pose, start, held, driven)
    if float(gap) > CLOSED:
        raise MechanismError(
            f"the joints cannot all be closed at these positions (a gap of {float(gap):.3g} m or rad remains); "
            "check the lengths, or start from positions nearer to an assembled configuration"
        )
    return state


def _free_bodies(
    mechanism: Mechanism, poses: Mapping[str, tuple[Any, Any]], velocities: Mapping[str, Any]
) -> tuple[Pose, np.ndarray]:
    count = len(mechanism.bodies)
    position, orientation = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    velocity = np.zeros((count, 6))
    for name, (place_at, turn) in poses.items():
        index = mechanism.bodies.index(name)
        position[index] = place_at
        orientation[index] = np.asarray(turn, float) / np.linalg.norm(turn)
    for name, value in velocities.items():
        velocity[mechanism.bodies.index(name)] = value
    return Pose(position, orientation), velocity


def _tree(mechanism: Mechanism) -> tuple[list[tuple[int, bool]], list[int]]:
    """Joints in the order in which they place a body (and whether they place the child), and the joints left over."""
    placed, order = {WORLD}, []
    waiting = list(range(len(mechanism.joints)))
    loose = [name for name in mechanism.bodies if name not in _tied_to_world(mechanism)]
    while waiting:
        joints = mechanism.joints.values
        found = next((j for j in waiting if (joints[j].parent in placed) != (joints[j].child in placed)), None)
        if found is None:
            unplaced = next((n for n in loose if n not in placed), None)
            if unplaced is None:
                break
            placed.add(unplaced)
            continue
        forward = joints[found].parent in placed
        placed.add(joints[found].child if forward else joints[found].parent)
        order.append((found, forward))
        waiting.remove(found)
    return order, waiting


def _tied_to_world(mechanism: Mechanism) -> set[str]:
    tied = {WORLD}
    while True:
        more = {
            name
            for joint in mechanism.joints.values
            if {joint.parent, joint.child} & tied
            for name in (joint.parent, joint.child)
        }
        if more <= tied:
            return tied
        tied |= more


def _loop_joints(mechanism: Mechanism) -> list[int]:
    return _tree(mechanism)[1]


@eqx.filter_jit
def _place(
    mechanism: Mechanism,
    positions: Array,
    speeds: Array,
    pose: Pose,
    velocity: Array,
    held: tuple[bool, ...],
    driven: tuple[bool, ...],
) -> tuple[State, Array]:
    elements = assemble(mechanism)
    order, loops = _tree(mechanism)
    for joint, forward in order:
        pose = _place_by_joint(mechanism, elements, pose, joint, forward, positions[joint])
    if loops:
        pose = _close_loops(elements, pose, positions, held)
    velocity = _consistent_velocity(elements, pose, velocity, speeds, driven)
    gap = jnp.max(jnp.abs(jnp.append(gap_values(elements, pose), 0.0)))
    return State(pose, velocity), gap


def _place_by_joint(
    mechanism: Mechanism, elements: Elements, pose: Pose, joint: int, forward: bool, position: Array
) -> Pose:
    """Put the joint's unplaced body where its frame meets the placed one's."""
    group_index, member = elements.joint_places[joint]
    group = elements.groups[group_index]
    kind = mechanism.joints.values[joint].kind
    whole, _ = with_world(pose, jnp.zeros((elements.body_count, 6)))
    known, unknown = (group.a, group.b) if forward else (group.b, group.a)
    frames, _ = rows.frames(known, whole)
    frame: Frame = jax.tree.map(lambda x: x[member], frames)
    shift, turn = kind.place(position)
    relative = rotations.matrix(rotations.exp(turn))
    if forward:
        target = Frame(frame.point + frame.axes @ shift, frame.axes @ relative)
    else:
        axes = frame.axes @ relative.T
        target = Frame(frame.point - axes @ shift, axes)
    rotation = target.axes @ unknown.frames[member].T
    body = int(unknown.bodies[member])
    center = target.point - rotation @ unknown.levers[member]
    return Pose(
        jnp.asarray(pose.position).at[body].set(center),
        jnp.asarray(pose.orientation).at[body].set(_quaternion(rotation)),
    )


def _quaternion(rotation: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Quaternion of a rotation matrix: the best conditioned column of ``4 e eᵀ``."""
    r = rotation
    outer = jnp.array(
        [
            [1 + r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], 1 - r[0, 0] + r[1, 1] - r[2, 2], r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], 1 - r[0, 0] - r[1, 1] + r[2, 2]],
        ]
    )
    return rotations.normalise(outer[jnp.argmax(jnp.diag(outer))])


def axis_rows(elements: Elements, pose: Pose) -> tuple[Float[Array, "j"], Float[Array, "j 6*bodies"]]:
    """Positions and rows ``Ḡ`` of all joints, in the mechanism's order (zero rows for joints without an axis)."""
    whole, _ = with_world(pose, jnp.zeros((elements.body_count, 6)))
    geometries = rows.geometries(elements.groups, whole)
    positions, matrix = [], []
    for place_in, member in elements.joint_places:
        group, geometry = elements.groups[place_in], geometries[place_in]
        row = jnp.zeros((elements.body_count + 1, 6))
        row = row.at[group.a.bodies[member]].add(geometry.axis_a[member])
        row = row.at[group.b.bodies[member]].add(geometry.axis_b[member])
        positions.append(geometry.position[member])
        matrix.append(row[:-1].ravel())
    if not positions:
        return jnp.zeros(0), jnp.zeros((0, 6 * elements.body_count))
    return jnp.stack(positions), jnp.stack(matrix)


def _close_loops(elements: Elements, pose: Pose, targets: Array, held: tuple[bool, ...]) -> Pose:
    hold = np.flatnonzero(held)

    def correct(pose: Pose, _: None) -> tuple[Pose, None]:
        positions, axes = axis_rows(elements, pose)
        error = jnp.concatenate([gap_values(elements, pose), (positions - targets)[hold]])
        matrix = jnp.concatenate([gap_jacobian(elements, pose), axes[hold]])
        increment = -jnp.linalg.pinv(matrix, rtol=RANK_TOLERANCE) @ error
        return pose.plus(increment.reshape(-1, 6)), None

    return jax.lax.scan(correct, pose, None, length=LOOP_ITERATIONS)[0]


def _consistent_velocity(
    elements: Elements, pose: Pose, velocity: Array, speeds: Array, driven: tuple[bool, ...]
) -> Float[Array, "bodies 6"]:
    """The velocity nearest to the given one that has the joint speeds and violates no constraint."""
    drive = np.flatnonzero(driven)
    _, axes = axis_rows(elements, pose)
    matrix = jnp.concatenate([gap_jacobian(elements, pose), axes[drive]])
    wanted = jnp.concatenate([jnp.zeros(matrix.shape[0] - len(drive)), speeds[drive]])
    defect = wanted - matrix @ velocity.ravel()
    return velocity + (jnp.linalg.pinv(matrix, rtol=RANK_TOLERANCE) @ defect).reshape(-1, 6)
