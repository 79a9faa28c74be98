"""shadowfit, as its documentation recommends for physical parameters of a machine with stiff bearings.

``PHYSICAL``: what the defaults come to, joint coordinates, the state weight and the sensors' noise from the data,
errors of the discretisation corrected, steps of 10 ms (the default: five samples in a step). ``POSES``: the same with
poses of the bodies as unknowns. ``PLAIN``: these without correction, with one step for each sample.
``DEFAULT``: poses with the paper's weight (κ = 100, 10 ms), nothing corrected. ``PAPER``: the residual, the unknowns
and the damping of the paper, SPOOK, its compliance.
"""

from __future__ import annotations

import dataclasses
import math

from benchmarks.peers import mjcf
from benchmarks.peers.answer import Answer
from benchmarks.peers.systems import STICK_SPEED
from benchmarks.peers.tasks import INTERVAL, Data, Task
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.mechanism import Coulomb, Mechanism
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import read_model
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

COMPLIANCE = 1e-9  # m/N and rad/(N m): rigid bearings
PAPER_COMPLIANCE = 1e-4

PHYSICAL = (
    Options(unknowns="joint", state_weight="auto", correction="deferred"),
    LevenbergMarquardt(),
    COMPLIANCE,
)
POSES = (Options(unknowns="configuration", correction="deferred"), LevenbergMarquardt(), COMPLIANCE)
PLAIN = (
    Options(unknowns="configuration", correction="none", timestep=INTERVAL),
    LevenbergMarquardt(),
    COMPLIANCE,
)
DEFAULT = (
    Options(unknowns="configuration", correction="none", state_weight=100.0),
    LevenbergMarquardt(),
    COMPLIANCE,
)
PAPER = (
    dataclasses.replace(Options.paper(), timestep=None, stick_time=None),
    LevenbergMarquardt(damping="identity"),
    PAPER_COMPLIANCE,
)


def estimate(task: Task, data: Data, settings: tuple[Options, LevenbergMarquardt, float] = PHYSICAL) -> Answer:
    """Fit the unknowns, lower bounds zero."""
    start_jax()
    options, optimiser, compliance = settings
    free = {name: Free(start=start) for name, start in task.starts.items()}
    found = fit(mechanism(task, compliance), recording(task, data), free, options=options, optimiser=optimiser)
    rows = {row.name: row for row in found.parameters}
    return Answer(
        {name: rows[name].value for name in task.starts},
        {name: rows[name].std for name in task.starts},
        found.converged,
        f"{found.iterations} iterations, κ = {found.state_weight:.0e}, {found.status.name}",
    )


def recording(task: Task, data: Data) -> Recording:
    """What was measured, by the names of the model's sensors and inputs."""
    channels = {name: data.positions[:, i] for i, name in enumerate(task.system.sensors)}
    return Recording(data.time, channels | {name: data.inputs[:, i] for i, name in enumerate(task.system.inputs)})


def mechanism(task: Task, compliance: float = COMPLIANCE) -> Mechanism:
    """The model with the machine's friction and bearings."""
    own = mjcf.FOLDER / f"{task.system.name}.toml"
    model = read_model(str(own) if own.exists() else task.system.name)
    joints = {}
    for name, joint in model.joints.items():
        dry = f"{name}.coulomb" in task.starts
        joints[name] = dataclasses.replace(joint, friction=Coulomb(stick_time=_stick_time(task, name)) if dry else None)
    model = model.having(joints=Parts(joints))
    values = {f"{name}.compliance.{kind}": compliance for name in joints for kind in ("linear", "rotational")}
    for name, value in task.system.parameters(task.truth).items():
        if name not in task.starts and name in model.leaves():
            values[name] = value
    return model.set(values)


def _stick_time(task: Task, joint: str) -> float:
    """How long a joint of the truth creeps [s]: a model's way to say that friction turns over ``STICK_SPEED``.

    It is that speed over the deceleration by friction alone, where the recording begins.
    """
    system, place = task.system, task.system.joints.index(joint)
    count = len(system.joints)
    speeds = [1.0 if i == place else 0.0 for i in range(count)]
    rubbing, smooth = (
        system.accelerations(
            task.experiment.start[:count], speeds, [0.0] * len(system.inputs), system.parameters(values), math
        )[place]
        for values in (task.truth, {**task.truth, f"{joint}.coulomb": 0.0})
    )
    return STICK_SPEED / (smooth - rubbing)
