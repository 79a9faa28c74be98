"""Pinocchio: equation error. Torques are linear in the parameters, so one linear least-squares problem remains.

``Y(q, v, a) π + friction − motor = 0`` with ``Y`` Pinocchio's joint torque regressor; q, v and a are the filtered
and twice differentiated positions. Needs no start values.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.peers import mjcf
from benchmarks.peers.answer import Answer
from benchmarks.peers.smoothing import WINDOW, smooth
from benchmarks.peers.systems import GRAVITY
from benchmarks.peers.tasks import INTERVAL, Data, Task

# Places of a body's ten numbers in the regressor: mass, first moments, then the inertia's lower triangle.
MASS, INERTIA = 0, {"xx": 4, "yy": 6, "zz": 9}

# Differentiated noise blurs the sign of a speed below this [rad/s, m/s].
SIGN_SPEED = 0.05


def estimate(task: Task, data: Data) -> Answer:
    """Linear least squares of the torques, sample by sample."""
    model = pin.buildModelFromMJCF(mjcf.path(task.system.name))
    model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])  # the file's own is not read
    workspace = model.createData()
    joints = {model.names[i]: i - 1 for i in range(1, model.njoints)}
    n, names = len(task.system.joints), list(task.starts)
    # The filter's ends are one-sided and poor: they are left out.
    rows = range(WINDOW, len(data.time) - WINDOW)
    q, v, a = (smooth(data.positions, INTERVAL, k) for k in range(3))
    # A held input acts after its sample: its mean around the sample belongs to the acceleration there.
    u = data.inputs.copy()
    u[1:] = 0.5 * (data.inputs[1:] + data.inputs[:-1])
    u = smooth(u, INTERVAL) if u.size else u  # as the motion is: both sides of the equation see the same filter
    matrix, right = np.zeros((len(rows), n, len(names))), np.zeros((len(rows), n))
    known = np.concatenate([model.inertias[i].toDynamicParameters() for i in range(1, model.njoints)])
    places = {}
    for j, name in enumerate(names):
        part, *_, last = name.split(".")
        if last in INERTIA or last == "mass":
            body = model.frames[model.getFrameId(part)].parentJoint - 1
            places[j] = 10 * body + INERTIA.get(last, MASS)
            # The inertia that mass and centre make about the joint is known and stays.
            central = np.diagonal(model.inertias[body + 1].inertia)
            known[places[j]] -= known[places[j]] if last == "mass" else central[mjcf.AXES[last]]
    for i, k in enumerate(rows):
        regressor = np.atleast_2d(pin.computeJointTorqueRegressor(model, workspace, q[k], v[k], a[k]))
        right[i] = -regressor @ known - model.armature * a[k]
        for j, place in places.items():
            matrix[i, :, j] = regressor[:, place]
    for j, name in enumerate(names):
        part, *_, last = name.split(".")
        if j in places:
            continue
        column = {
            "viscous": lambda joint: v[rows, joint],
            "coulomb": lambda joint: np.tanh(v[rows, joint] / SIGN_SPEED),
            "gain": lambda joint, part=part: -_input(task, u, part)[rows],
        }[last]
        matrix[:, joints[part], j] = column(joints[part])
    for channel, joint in task.system.inputs.items():
        if f"{joint}.motor.gain" not in task.starts:
            gain = task.system.parameters(task.truth).get(f"{joint}.motor.gain", 1.0)
            right[:, joints[joint]] += gain * u[rows, list(task.system.inputs).index(channel)]
    # Torques of joints differ in size: each is weighed by the size of what it has to explain.
    weight = 1.0 / np.std(right - np.mean(right, axis=0), axis=0)
    table, target = (matrix * weight[:, None]).reshape(-1, len(names)), (right * weight).ravel()
    values, *_ = np.linalg.lstsq(table, target, rcond=None)
    misfit = target - table @ values
    covariance = np.linalg.pinv(table.T @ table) * (misfit @ misfit) / (len(target) - len(names))
    return Answer(
        dict(zip(names, values.tolist(), strict=True)),
        dict(zip(names, np.sqrt(np.diagonal(covariance)).tolist(), strict=True)),
        bool(np.all(np.isfinite(values))),
        "",
    )


def _input(task: Task, u: np.ndarray, joint: str) -> np.ndarray:
    """The input that drives a joint."""
    channel = next(i for i, driven in enumerate(task.system.inputs.values()) if driven == joint)
    return u[:, channel]
