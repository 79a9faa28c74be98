"""MuJoCo's system identification toolbox (``mujoco.sysid``), in the two ways that its examples suggest.

* The initial state as measured (filtered), residuals of one rollout of the whole recording.
* The recording cut into chunks of 0.5 s, whose initial states are among the parameters, through a rollout of one's own.

Integrator RK4 at the sampling interval, the toolbox's own optimiser with the scaling that it advises for parameters of
different size.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from typing import Any

import mujoco
import numpy as np
from mujoco import sysid

from benchmarks.peers import mjcf
from benchmarks.peers.answer import Answer
from benchmarks.peers.smoothing import smooth
from benchmarks.peers.tasks import INTERVAL, NOISE, Data, Task

# Bounds of the parameters, as factors of the start values: the toolbox wants some.
SMALLEST, LARGEST = 1e-3, 100.0
CHUNK = 250  # samples
# Half width of the bounds of a chunk's initial positions and speeds.
STATE_RANGE = (0.05, 2.0)
STATE = "initial_states"


def estimate(task: Task, data: Data, free_state: bool = False) -> Answer:
    """Fit with the toolbox's own optimiser."""
    spec = mujoco.MjSpec.from_file(str(mjcf.path(task.system.name)))
    base = spec.compile()
    n, samples = len(task.system.joints), len(data.time)
    guess = np.concatenate([smooth(data.positions, INTERVAL), smooth(data.positions, INTERVAL, 1)], axis=1)
    begins = range(0, samples - CHUNK, CHUNK) if free_state else [0]
    length = CHUNK + 1 if free_state else samples
    unknown = sysid.ParameterDict()
    for name, start in task.starts.items():
        unknown.add(sysid.Parameter(name, start, SMALLEST * start, LARGEST * start))
    if free_state:
        first, width = guess[begins].ravel(), np.tile(np.repeat(STATE_RANGE, n), len(begins))
        unknown.add(sysid.Parameter(STATE, first, first - width, first + width))
    sequences = sysid.ModelSequences(
        task.system.name,
        spec,
        [str(begin) for begin in begins],
        [sysid.create_initial_state(base, guess[begin, :n], guess[begin, n:]) for begin in begins],
        [sysid.TimeSeries(data.time[:length], data.inputs[begin : begin + length]) for begin in begins],
        [
            sysid.TimeSeries.from_names(data.time[:length], data.positions[begin : begin + length], base)
            for begin in begins
        ],
    )
    # The toolbox asks for the chunks in turn, and does not say for which.
    turn = itertools.cycle(range(len(begins)))

    def rollout(**given: Any) -> Any:
        own = slice(2 * n * (chunk := next(turn)), 2 * n * (chunk + 1))
        starts = [p[STATE].value[own] for p in given.pop("param_dicts")]
        given["initial_states"] = [sysid.create_initial_state(base, x[:n], x[n:]) for x in starts]
        return sysid.sysid_rollout(**given)

    residual = sysid.build_residual_fn(
        models_sequences=[sequences],
        build_model=lambda parameters, _: _model(spec, task, parameters),
        custom_rollout=rollout if free_state else None,
        modify_residual=_deviation,
    )
    with contextlib.redirect_stdout(io.StringIO()):
        found, result = sysid.optimize(unknown, residual, verbose=False, max_iters=100, x_scale="jac")
    residuals, _, _ = residual(result.x, found.copy())
    _, half_width = sysid.calculate_intervals(residuals, result.jac)
    values = {name: float(found[name].value[0]) for name in task.starts}
    std = dict(zip(task.starts, (half_width[: len(values)] / 1.96).tolist(), strict=True))
    return Answer(values, std, bool(np.all(np.isfinite(result.x))), "")


def _deviation(_: Any, predicted: Any, measured: Any, *__: Any, **___: Any) -> tuple[np.ndarray, Any, Any]:
    """Predicted minus measured positions, in standard deviations; the default weighs each chunk by its own size."""
    measured = sysid.apply_delayed_ts_window(measured, predicted, 0.0, 0.0)
    predicted = predicted.resample(measured.times)
    return (predicted.data - measured.data) / NOISE, predicted, measured


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
