"""MuJoCo's system identification toolbox (``mujoco.sysid``), as in its own examples: residuals of whole rollouts.

Two uses: the initial state as measured (filtered), and the initial state among the parameters, which the toolbox
offers through a rollout of one's own. Integrator RK4 at the sampling interval; the input is resampled by
the toolbox as it does by default.
"""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import sysid

from benchmarks.peers import mjcf
from benchmarks.peers.answer import Answer
from benchmarks.peers.smoothing import smooth
from benchmarks.peers.tasks import INTERVAL, Data, Task

# Bounds of the parameters, as factors of the start values: the toolbox wants some.
SMALLEST, LARGEST = 1e-3, 100.0
STATE = "initial_state"


def estimate(task: Task, data: Data, free_state: bool = False) -> Answer:
    """Fit with the toolbox's own optimiser."""
    spec = mujoco.MjSpec.from_file(str(mjcf.path(task.system.name)))
    base = spec.compile()
    measured = np.concatenate([smooth(data.positions, INTERVAL)[0], smooth(data.positions, INTERVAL, 1)[0]])
    n = len(task.system.joints)
    unknown = sysid.ParameterDict()
    for name, start in task.starts.items():
        unknown.add(sysid.Parameter(name, start, SMALLEST * start, LARGEST * start))
    if free_state:
        width = np.repeat([0.1, 1.0], n)
        unknown.add(sysid.Parameter(STATE, measured, measured - width, measured + width))
    state = sysid.create_initial_state(base, measured[:n], measured[n:])
    control = sysid.TimeSeries(data.time, data.inputs)
    sensors = sysid.TimeSeries.from_names(data.time, data.positions, base)
    sequences = sysid.ModelSequences(task.system.name, spec, "measured", state, control, sensors)

    def build(parameters: sysid.ParameterDict, _: mujoco.MjSpec) -> mujoco.MjModel:
        return _model(spec, task, parameters)

    def rollout(**given: object) -> object:
        parameters = given.pop("param_dicts")
        given["initial_states"] = [
            sysid.create_initial_state(base, p[STATE].value[:n], p[STATE].value[n:]) for p in parameters
        ]
        return sysid.sysid_rollout(**given)

    residual = sysid.build_residual_fn(
        models_sequences=[sequences], build_model=build, custom_rollout=rollout if free_state else None
    )
    found, result = sysid.optimize(unknown, residual, verbose=False, max_iters=100)
    residuals, _, _ = residual(result.x, found.copy())
    _, half_width = sysid.calculate_intervals(residuals, result.jac)
    values = {name: float(found[name].value[0]) for name in task.starts}
    std = dict(zip(task.starts, (half_width[: len(values)] / 1.96).tolist(), strict=True))
    return Answer(values, std, bool(np.all(np.isfinite(result.x))), "")


def _model(spec: mujoco.MjSpec, task: Task, parameters: sysid.ParameterDict) -> mujoco.MjModel:
    """The compiled model with other numbers.

    Written into the compiled model, because the compiler refuses inertias that no body can have, which an optimiser
    passes through.
    """
    model = spec.compile()
    for name in task.starts:
        value, (part, *_, last) = float(parameters[name].value[0]), name.split(".")
        if last in mjcf.AXES:
            model.body(part).inertia[mjcf.AXES[last]] = value
        elif last == "mass":
            model.body(part).mass[0] = value
        elif last == "gain":
            channel = next(u for u, joint in task.system.inputs.items() if joint == part)
            model.actuator(channel).gear[0] = value
        elif last == "viscous":
            model.joint(part).damping[0] = value
        elif last == "coulomb":
            model.joint(part).frictionloss[0] = value
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model
