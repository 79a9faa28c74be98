"""Inverse dynamics of a robot file as MuJoCo itself reads it."""

from collections.abc import Mapping

import numpy as np
import pytest


def torques(model, position: Mapping, speed: Mapping, acceleration: Mapping) -> dict[str, float]:
    """Torque or force of each joint that a motion needs, without dry friction, limits and contacts [N m] or [N]."""
    mujoco = pytest.importorskip("mujoco")
    model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    data = mujoco.MjData(model)
    for name, value in position.items():
        joint = model.joint(name)
        data.qpos[joint.qposadr] = value
        data.qvel[joint.dofadr] = speed[name]
        data.qacc[joint.dofadr] = acceleration[name]
    mujoco.mj_inverse(model, data)
    return {name: float(np.squeeze(data.qfrc_inverse[model.joint(name).dofadr])) for name in position}
