"""Bodies that can only turn about one axis of their own: of their inertia the motion sees that axis alone.

In a plane mechanism, and for the first link of every machine, the hinges between a body and the world are parallel. The
body's angular velocity then always points along one direction of the body, and only the moment of inertia about it acts
on the motion.
"""

from __future__ import annotations

import numpy as np

from shadowfit.mechanism.joint import WORLD, Joint
from shadowfit.mechanism.mechanism import Mechanism

# Sine of the angle between axes that count as parallel.
PARALLEL = 1e-9

Turning = np.ndarray | None
"""The axis in the body's frame, zeros for a body that never turns; None for one that may turn about any axis."""


def turning_axes(mechanism: Mechanism) -> dict[str, Turning]:
    """How each body can turn in the world."""
    turnings: dict[str, Turning] = dict.fromkeys(mechanism.bodies.names) | {WORLD: np.zeros(3)}
    changed = True
    while changed:
        changed = False
        for joint in mechanism.joints.values:
            for near, far in ((joint.parent, joint.child), (joint.child, joint.parent)):
                here = turnings[near]
                if here is not None and turnings[far] is None:
                    turnings[far] = _beyond(joint, here, outward=near == joint.parent)
                    changed |= turnings[far] is not None
    return {name: turnings[name] for name in mechanism.bodies.names}


def _beyond(joint: Joint, axis: np.ndarray, outward: bool) -> Turning:
    """How the body at the other end of a joint turns, if the one at this end turns about an axis."""
    if joint.kind.freedom is None:
        return None
    turns = [place - 3 for place in joint.kind.freedom if place >= 3]
    near, far = (_matrix(turn) for turn in (joint.parent_rotation, joint.child_rotation)[:: 1 if outward else -1])
    if not turns:
        return far @ near.T @ axis
    if len(turns) > 1 or np.linalg.norm(np.cross(near[:, turns[0]], axis)) > PARALLEL:
        return None
    return far[:, turns[0]]


def _matrix(quaternion: object) -> np.ndarray:
    """Rotation matrix of a quaternion, without a compiler."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(np.asarray(quaternion, float))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
