"""Building a state from joint positions and speeds: along the tree, then closing loops.

Every body is first placed along a spanning tree of the joints from the world; bodies that no joint ties to the world
stay where they are told (or at the origin). Where joints close loops, a Gauss–Newton iteration then moves the bodies as
little as possible until all gaps are zero, holding the joint positions that were asked for. Joints that are said to be
compliant may stay a little open where others leave them no choice. All of this happens once for a simulation, on the
host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import Attachments, Elements, assembled
from shadowfit.dynamics.kinematics import moved_geometries
from shadowfit.dynamics.state import State
from shadowfit.errors import MechanismError, UnknownNameError, nearest
from shadowfit.geometry import Pose, rotations
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree
from shadowfit.trees import map_leaves

LOOP_ITERATIONS = 30
# Directions in which a row moves the bodies by less than this (relative) count as redundant.
RANK_TOLERANCE = 1e-9
# A loop that leaves a gap (or a speed of opening) larger than this [m, rad, 1/s] cannot be closed.
CLOSED = 1e-8
# The same for compliant joints, which may carry a load wherever the machine is [m, rad],
OPEN = 0.02
# and how little their rows count beside those of others.
GIVING = 1e-4
# Gaps below this are rounding errors.
SETTLED = 1e-14


def place(
    mechanism: Mechanism,
    positions: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
    *,
    poses: Mapping[str, tuple[Any, Any]] | None = None,
    velocities: Mapping[str, Any] | None = None,
) -> State:
    """A state with no constraint violation at the given joint positions [rad, m] and speeds [rad/s, m/s].

    Joints that are not named are at zero (at whatever the loop needs, if they are part of one). ``poses`` (centre of
    mass [m], quaternion) and ``velocities`` (six numbers) are for bodies that no joint ties to the world.
    """
    positions, speeds = dict(positions or {}), dict(speeds or {})
    _check_joint_values(mechanism, positions)
    _check_joint_values(mechanism, speeds)
    for name, value in positions.items():
        if mechanism.joints[name].kind.axis_kind == "rotation" and np.spacing(abs(value)) > CLOSED:
            raise MechanismError(f"joint {name!r}: {value:.4g} rad is too large a number to tell an angle from")
    elements = assembled(mechanism)
    pose, velocity = _free_bodies(mechanism, elements, poses or {}, velocities or {})
    order, loops = _tree(mechanism, elements)
    for joint, forward in order:
        pose = _place_by_joint(mechanism, elements, pose, joint, forward, positions)
    names = mechanism.joints.names
    # In a tree every joint has its position; in loops only those that were asked for do.
    held, driven = ([name for name in names if name in given or not loops] for given in (positions, speeds))
    if loops:
        pose = _close_loops(mechanism, elements, pose, {name: positions[name] for name in held})
    if speeds or velocities:
        wanted = {name: speeds.get(name, 0.0) for name in driven}
        velocity = _consistent_velocity(mechanism, elements, pose, velocity, wanted)
    return State(pose, velocity)


def closed(mechanism: Mechanism, state: State) -> State:
    """The state nearby that violates no constraint, for a simulation that starts from an estimate.

    In a tree every joint keeps the position and speed of its free axis, so that what the joints do not allow (a noisy
    turn about the axis of a thin rod) is taken from the body that has it. In loops the bodies move as little as
    possible.
    """
    elements = assembled(mechanism)
    loops = _tree(mechanism, elements)[1]
    names = [name for name, joint in mechanism.joints.items() if joint.kind.axis_kind is not None and not loops]
    pose, velocity = state.pose, np.asarray(state.velocity)
    _, here = _move(mechanism, elements, pose, np.zeros_like(velocity), names)
    speeds = here.axis_jacobian @ velocity.ravel()
    pose = _close_loops(mechanism, elements, pose, dict(zip(names, here.position, strict=True)))
    velocity = _consistent_velocity(mechanism, elements, pose, velocity, dict(zip(names, speeds, strict=True)))
    return State(pose, velocity)


def _check_joint_values(mechanism: Mechanism, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if name not in mechanism.joints:
            raise UnknownNameError(f"there is no joint {name!r}{nearest(name, mechanism.joints)}")
        if mechanism.joints[name].kind.axis_kind is None:
            raise MechanismError(f"joint {name!r} has no free axis to give a position or speed to")
        if np.shape(value) != () or not np.isfinite(value):
            raise MechanismError(f"joint {name!r}: a position or speed must be a finite number, not {value}")


def _free_bodies(
    mechanism: Mechanism, elements: Elements, poses: Mapping[str, tuple[Any, Any]], velocities: Mapping[str, Any]
) -> tuple[Pose, np.ndarray]:
    count = len(mechanism.bodies)
    position, orientation = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    velocity = np.zeros((count, 6))
    tied = _tied_to_world(mechanism, elements)
    for name in (*poses, *velocities):
        mechanism.bodies.index(name)
        if name in tied:
            raise MechanismError(f"body {name!r} is placed by its joints; give their positions and speeds instead")
    for name, (center, turn) in poses.items():
        index = mechanism.bodies.index(name)
        position[index] = _numbers(center, 3, f"position of {name!r}")
        quaternion = _numbers(turn, 4, f"orientation of {name!r} (quaternion w x y z)")
        if np.linalg.norm(quaternion) == 0.0:
            raise MechanismError(f"the orientation of {name!r} is zero; give a quaternion (w x y z)")
        orientation[index] = quaternion / np.linalg.norm(quaternion)
    for name, value in velocities.items():
        velocity[mechanism.bodies.index(name)] = _numbers(value, 6, f"velocity of {name!r}")
    return Pose(position, orientation), velocity


def _numbers(value: Any, count: int, what: str) -> np.ndarray:
    array = np.asarray(value, float)
    if array.shape != (count,) or not np.all(np.isfinite(array)):
        raise MechanismError(f"the {what} must be {count} finite numbers, not {value}")
    return array


def _placing_joints(elements: Elements) -> list[int]:
    """Joints that forbid some relative position; one that only acts on velocities places nothing."""
    return [joint for joint, (place, _) in enumerate(elements.joint_places) if elements.groups[place].gap_rows > 0]


def _tree(mechanism: Mechanism, elements: Elements) -> tuple[list[tuple[int, bool]], list[int]]:
    """Joints in the order in which they place a body (and whether they place the child), and the joints left over."""
    placed, order = {WORLD}, []
    waiting = _placing_joints(elements)
    tied = _tied_to_world(mechanism, elements)
    loose = [name for name in mechanism.bodies if name not in tied]
    while waiting:
        joints = mechanism.joints.values
        next_joint = next((j for j in waiting if (joints[j].parent in placed) != (joints[j].child in placed)), None)
        if next_joint is None:
            unplaced = next((n for n in loose if n not in placed), None)
            if unplaced is None:
                break
            placed.add(unplaced)
            continue
        forward = joints[next_joint].parent in placed
        placed.add(joints[next_joint].child if forward else joints[next_joint].parent)
        order.append((next_joint, forward))
        waiting.remove(next_joint)
    return order, waiting


def _tied_to_world(mechanism: Mechanism, elements: Elements) -> set[str]:
    tied = {WORLD}
    joints = [mechanism.joints.values[joint] for joint in _placing_joints(elements)]
    while True:
        more = {name for joint in joints if {joint.parent, joint.child} & tied for name in (joint.parent, joint.child)}
        if more <= tied:
            return tied
        tied |= more


def _place_by_joint(
    mechanism: Mechanism, elements: Elements, pose: Pose, joint: int, forward: bool, positions: Mapping[str, float]
) -> Pose:
    """Put the joint's unplaced body where its frame meets the placed one's."""
    place, member = elements.joint_places[joint]
    group = elements.groups[place]
    kind, name = mechanism.joints.values[joint].kind, mechanism.joints.names[joint]
    known, unknown = (group.a, group.b) if forward else (group.b, group.a)
    point, axes = _frame(known, member, pose)
    shift, turn = (np.array(part) for part in kind.place(np.asarray(positions.get(name, 0.0), float)))
    relative = _rotation(turn)
    if forward:
        point, axes = point + axes @ shift, axes @ relative
    else:
        axes = axes @ relative.T
        point = point - axes @ shift
    rotation = axes @ np.asarray(unknown.frames)[member].T
    position, orientation = np.array(pose.position), np.array(pose.orientation)
    body = unknown.body_indices[member]
    position[body] = point - rotation @ np.asarray(unknown.levers)[member]
    orientation[body] = rotations.from_matrix(rotation)
    return Pose(position, orientation)


def _rotation(turn: np.ndarray) -> np.ndarray:
    """``exp [turn]×`` by Rodrigues' formula."""
    cross, angle = _cross(turn), float(np.linalg.norm(turn))
    # sin φ/φ and (1 − cos φ)/φ², also at φ = 0.
    return np.eye(3) + np.sinc(angle / np.pi) * cross + 0.5 * np.sinc(0.5 * angle / np.pi) ** 2 * (cross @ cross)


def _cross(vector: Array) -> np.ndarray:
    """The matrix of the cross product with a vector, on the host."""
    return np.cross(np.eye(3), np.asarray(vector))


def _frame(side: Attachments, member: int, pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Origin [m] and axes of one attachment frame in the world."""
    body = side.body_indices[member]
    lever, frame = np.asarray(side.levers)[member], np.asarray(side.frames)[member]
    if body == len(pose.position):  # the world
        return lever, frame
    cross = _cross(pose.orientation[body, 1:])
    turn = np.eye(3) + 2.0 * (pose.orientation[body, 0] * cross + cross @ cross)
    return pose.position[body] + turn @ lever, turn @ frame


class _Rows(PyTree):
    """Gaps of all joints and positions of some, with the Jacobians of both over all bodies."""

    gap: Float[np.ndarray, "g"]
    position: Float[np.ndarray, "p"]
    gap_jacobian: Float[np.ndarray, "g 6*bodies"]
    axis_jacobian: Float[np.ndarray, "p 6*bodies"]

    def jacobian(self) -> Float[np.ndarray, "g+p 6*bodies"]:
        return np.concatenate([self.gap_jacobian, self.axis_jacobian])


def _move(
    mechanism: Mechanism, elements: Elements, pose: Pose, increment: Float[np.ndarray, "bodies 6"], names: Iterable[str]
) -> tuple[Pose, _Rows]:
    """The pose moved by an increment, and the rows there; ``names`` are the joints whose axes are wanted."""
    bodies = elements.body_count
    pose, geometries = map_leaves(np.asarray, moved_geometries(elements, pose, increment))

    def on_all_bodies(place: int, member: int, a: str, b: str) -> np.ndarray:
        group, geometry = elements.groups[place], geometries[place]
        on_a, on_b = (np.atleast_2d(getattr(geometry, side)[member]) for side in (a, b))
        dense = np.zeros((len(on_a), bodies + 1, 6))
        dense[:, group.a.body_indices[member]] += on_a
        dense[:, group.b.body_indices[member]] += on_b
        return dense[:, :bodies].reshape(len(on_a), 6 * bodies)

    places = elements.joint_places
    wanted = [places[mechanism.joints.index(name)] for name in names]
    nothing = np.zeros((0, 6 * bodies))
    return pose, _Rows(
        np.concatenate([geometries[place].gap[member] for place, member in places] or [np.zeros(0)]),
        np.array([geometries[place].position[member] for place, member in wanted]),
        np.concatenate([nothing, *(on_all_bodies(*at, "gap_a", "gap_b") for at in places)]),
        np.concatenate([nothing, *(on_all_bodies(*at, "axis_a", "axis_b") for at in wanted)]),
    )


def _close_loops(mechanism: Mechanism, elements: Elements, pose: Pose, targets: Mapping[str, float]) -> Pose:
    """Move all bodies by as little as possible until the gaps are closed at the target positions."""
    wanted = np.array(list(targets.values()))
    rotary = np.array([mechanism.joints[name].kind.axis_kind == "rotation" for name in targets])
    increment = np.zeros((elements.body_count, 6))
    joints = _gap_joints(mechanism, elements)
    weights = _weights(mechanism, joints, len(wanted))
    for _ in range(LOOP_ITERATIONS):
        pose, here = _move(mechanism, elements, pose, increment, targets)
        away = here.position - wanted
        away = np.where(rotary, away - 2.0 * np.pi * np.round(away / (2.0 * np.pi)), away)
        error = np.concatenate([here.gap, away])
        if np.max(np.abs(error)) < SETTLED:
            break
        weighted = weights[:, None] * here.jacobian()
        increment = np.linalg.lstsq(weighted, -weights * error, rcond=RANK_TOLERANCE)[0].reshape(-1, 6)
    over = np.abs(error) / np.where(weights < 1.0, OPEN, CLOSED)
    if not np.max(over) <= 1.0:
        worst = int(np.argmax(np.nan_to_num(over[: len(joints)], nan=np.inf)))
        raise MechanismError(
            f"the joints cannot all be closed at these positions ({np.max(np.abs(error)):.3g} m or rad remain, "
            f"{abs(error[worst]):.3g} in joint {joints[worst]!r}); check the lengths, or start from positions nearer "
            "to an assembled configuration"
        )
    return pose


def _gap_joints(mechanism: Mechanism, elements: Elements) -> list[str]:
    """Joint of each gap row of `_Rows`."""
    names = zip(mechanism.joints.names, elements.joint_places, strict=True)
    return [name for name, (place, _) in names for _ in range(elements.groups[place].gap_rows)]


def _weights(mechanism: Mechanism, joints: list[str], positions: int) -> Float[np.ndarray, "g+p"]:
    """Of the rows: those of compliant joints give way to the others."""
    giving = [GIVING if mechanism.joints[name].compliant else 1.0 for name in joints]
    return np.array([*giving, *np.ones(positions)])


def _consistent_velocity(
    mechanism: Mechanism, elements: Elements, pose: Pose, velocity: np.ndarray, speeds: Mapping[str, float]
) -> Float[np.ndarray, "bodies 6"]:
    """The velocity nearest to the given one that has the joint speeds and violates no constraint."""
    _, here = _move(mechanism, elements, pose, np.zeros_like(velocity), speeds)
    matrix = here.jacobian()
    wanted = np.concatenate([np.zeros(len(here.gap)), list(speeds.values())])
    joints = _gap_joints(mechanism, elements)
    weights = _weights(mechanism, joints, len(speeds))
    missing = weights * (wanted - matrix @ velocity.ravel())
    change = np.linalg.lstsq(weights[:, None] * matrix, missing, rcond=RANK_TOLERANCE)[0]
    velocity = velocity + change.reshape(-1, 6)
    left = np.where(weights < 1.0, 0.0, np.abs(matrix @ velocity.ravel() - wanted))
    remaining = np.max(left, initial=0.0)
    if remaining > CLOSED * (1.0 + np.max(np.abs(velocity))):
        worst = (joints + list(speeds))[int(np.argmax(left))]
        raise MechanismError(
            f"the joints cannot all move at these speeds ({remaining:.3g} m/s or rad/s remain in joint {worst!r}); "
            "in a loop, give the speeds of as many joints as it has degrees of freedom"
        )
    return velocity
