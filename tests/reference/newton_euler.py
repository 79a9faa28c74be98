"""Inverse dynamics of trees of hinges and sliders by Newton and Euler, in NumPy, from a mechanism's numbers."""

from collections.abc import Mapping

import numpy as np

from shadowfit.mechanism import WORLD, Mechanism

ZERO = np.zeros(3)


def matrix(quaternion) -> np.ndarray:
    """Rotation matrix of a quaternion ``wxyz``."""
    w, x, y, z = np.asarray(quaternion, float)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def torques(mechanism: Mechanism, position: Mapping, speed: Mapping, acceleration: Mapping) -> dict[str, float]:
    """Torque or force of each joint that this motion needs, [N m] or [N]: inertia, gravity, armature and damping."""
    gravity = np.asarray(mechanism.gravity.vector())
    # Frame of each body: rotation, origin, its velocity and acceleration, spin and its rate.
    frames = {WORLD: (np.eye(3), ZERO, ZERO, ZERO, ZERO, ZERO)}
    axes, waiting = {}, dict(mechanism.joints.items())
    while waiting:
        name = next(key for key, joint in waiting.items() if joint.parent in frames)
        joint = waiting.pop(name)
        q, s, a = position[name], speed[name], acceleration[name]
        rotation, origin, velocity, rate, spin, spin_rate = frames[joint.parent]
        lever = rotation @ joint.parent_point
        frame = rotation @ matrix(joint.parent_rotation)
        axis = frame[:, 0]
        point = origin + lever
        point_velocity = velocity + np.cross(spin, lever)
        point_rate = rate + np.cross(spin_rate, lever) + np.cross(spin, np.cross(spin, lever))
        if joint.kind.axis_kind == "rotation":
            frame = frame @ matrix([np.cos(q / 2), np.sin(q / 2), 0.0, 0.0])
            spin_rate = spin_rate + axis * a + np.cross(spin, axis * s)
            spin = spin + axis * s
        else:
            point = point + axis * q
            point_rate = (
                point_rate + axis * a + 2 * np.cross(spin, axis * s)
                + np.cross(spin_rate, axis * q) + np.cross(spin, np.cross(spin, axis * q))
            )  # fmt: skip
            point_velocity = point_velocity + axis * s + np.cross(spin, axis * q)
        rotation = frame @ matrix(joint.child_rotation).T
        back = -rotation @ joint.child_point
        frames[joint.child] = (
            rotation,
            point + back,
            point_velocity + np.cross(spin, back),
            point_rate + np.cross(spin_rate, back) + np.cross(spin, np.cross(spin, back)),
            spin,
            spin_rate,
        )
        axes[name] = (axis, point)
    found = {}
    for name, joint in mechanism.joints.items():
        axis, point = axes[name]
        total = 0.0
        for body in _behind(mechanism, joint.child):
            part, (rotation, origin, _, rate, spin, spin_rate) = mechanism.bodies[body], frames[body]
            lever = rotation @ part.com
            force = float(part.mass) * (
                rate + np.cross(spin_rate, lever) + np.cross(spin, np.cross(spin, lever)) - gravity
            )
            inertia = rotation @ np.array(part.inertia.rows(), float) @ rotation.T
            moment = inertia @ spin_rate + np.cross(spin, inertia @ spin)
            about = np.cross(origin + lever - point, force) + moment
            total += axis @ (about if joint.kind.axis_kind == "rotation" else force)
        rotor = sum(float(law.inertia()) for law in joint.laws.values)
        found[name] = total + rotor * acceleration[name] + float(joint.viscous) * speed[name]
    return found


def _behind(mechanism: Mechanism, body: str) -> list[str]:
    held = [body]
    for name in held:
        held += [joint.child for joint in mechanism.joints.values if joint.parent == name]
    return held
