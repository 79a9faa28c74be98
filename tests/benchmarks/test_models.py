"""The model files that peers and shadowfit get describe the same machine as the equations."""

import math

import numpy as np
import pytest

from benchmarks.peers import mjcf
from benchmarks.peers.tasks import TASKS
from shadowfit.models import read_model

MACHINES = ("furuta-pulse-far", "pendulum", "cartpole", "arm")


def mujoco_acceleration(task, q, v, u):
    """Accelerations in MuJoCo, with the true numbers written into the file's model; without dry friction."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(mjcf.path(task.system.name)))
    for name, value in task.system.truth.items():
        part, *_, last = name.split(".")
        if last in mjcf.AXES:
            model.body(part).inertia[mjcf.AXES[last]] = value
        elif last == "mass":
            model.body(part).mass[0] = value
        elif last == "viscous":
            model.joint(part).damping[0] = value
        elif last == "gain":
            channel = next(c for c, joint in task.system.inputs.items() if joint == part)
            model.actuator(channel).gear[0] = value
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    mujoco.mj_forward(model, data)
    return data.qacc.copy()


@pytest.mark.parametrize("name", MACHINES)
def test_mujoco_model_has_the_accelerations_of_the_equations(name):
    task, random = TASKS[name], np.random.default_rng(1)
    n, inputs = len(task.system.joints), len(task.system.inputs)
    level = {key: 0.0 for key in task.system.truth if key.endswith("coulomb")}
    numbers = task.system.parameters({**task.system.truth, **level})
    for _ in range(3):
        q, v, u = random.uniform(-2, 2, n), random.uniform(-3, 3, n), random.uniform(-1, 1, inputs)
        expected = task.system.accelerations(q.tolist(), v.tolist(), u.tolist(), numbers, math)
        np.testing.assert_allclose(mujoco_acceleration(task, q, v, u), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MACHINES)
def test_shadowfit_model_has_the_known_numbers(name):
    task = TASKS[name]
    own = mjcf.FOLDER / f"{task.system.name}.toml"
    mechanism = read_model(str(own) if own.exists() else task.system.name)
    masses = {key: value for key, value in task.system.known.items() if key.endswith((".mass", "shaft_inertia"))}
    assert masses
    for key, value in masses.items():
        assert float(mechanism.get(key)) == pytest.approx(value)
    assert set(task.system.sensors) == set(mechanism.sensors.names)
    assert set(task.system.inputs) == set(mechanism.inputs.names)
