"""The tasks: which machine, which experiment, which unknowns, which start values. Same for every method.

Recordings last 10 s at 500 Hz; every position has white noise of 1e-3 rad (or m). A seed changes the noise only, so the
truth of an experiment is computed once and kept in a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.peers import systems, truth
from benchmarks.peers.systems import System
from shadowfit.models.twins import FurutaTruth, swing_up_controller

INTERVAL = 2e-3  # s
DURATION = 10.0  # s
NOISE = 1e-3  # rad, m
NEAR_FACTOR = 1.5  # of the truth, for the start values that are no table of the paper's


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A motion of a machine: where it starts, and what drives it."""

    name: str
    start: tuple[float, ...]
    """Positions and speeds [rad, rad/s]."""
    inputs: Callable[[np.ndarray], np.ndarray] | None
    """Inputs ``(samples, inputs)`` at the samples' times; None: the swing-up controller, in a loop with the truth."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What every method gets: a machine, an experiment, the unknowns with their start values."""

    name: str
    system: System
    experiment: Experiment
    held_out: Experiment
    truth: Mapping[str, float]
    """True values: of the unknowns, and of friction that this machine does not have (zero)."""
    starts: Mapping[str, float]
    """The unknowns and their start values."""


@dataclasses.dataclass(frozen=True)
class Data:
    """What is measured: times [s], positions ``(samples, n)`` with noise, inputs ``(samples, inputs)``."""

    time: np.ndarray
    positions: np.ndarray
    inputs: np.ndarray


def chirp(amplitude: float, first: float, last: float, shift: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """A sine whose frequency rises linearly from ``first`` to ``last`` [Hz] within 10 s."""

    def signal(t: np.ndarray) -> np.ndarray:
        phase = 2.0 * math.pi * (first * t + 0.5 * (last - first) * t**2 / DURATION) + shift
        return amplitude * np.sin(phase)[:, None]

    return signal


def pulses(amplitude: float, length: float) -> Callable[[np.ndarray], np.ndarray]:
    """Pulses of both signs with pauses in between, in a fixed irregular order."""
    pattern = np.array([1, 0, -1, -1, 0, 1, 0, 1, -1, 0, 0, -1, 1, 0, -1, 1, 1, 0, -1, 0])

    def signal(t: np.ndarray) -> np.ndarray:
        return amplitude * pattern[(t / length + 1e-9).astype(int) % len(pattern)][:, None].astype(float)

    return signal


def both(*signals: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Several inputs beside each other."""
    return lambda t: np.concatenate([signal(t) for signal in signals], axis=1)


def nothing(t: np.ndarray) -> np.ndarray:
    """A machine with one input that is off."""
    return np.zeros((len(t), 1))


def no_input(t: np.ndarray) -> np.ndarray:
    """A machine without inputs."""
    return np.zeros((len(t), 0))


FURUTA_EXPERIMENTS = (
    Experiment("release", (0.0, math.pi - 0.03, 0.0, 0.0), nothing),
    Experiment("swing-up", (0.0, 0.0, 0.0, 0.0), None),
    Experiment("pulse", (0.0, 0.0, 0.0, 0.0), pulses(4.0, 0.25)),
    Experiment("chirp", (0.0, 0.3, 0.0, 0.0), chirp(4.0, 0.2, 4.0)),
)
FURUTA_HELD_OUT = Experiment("held-out", (0.0, 1.0, 0.0, 0.0), chirp(3.0, 2.5, 0.3, 1.0))

SMOOTH = ("arm.inertia.zz", "pendulum.inertia.yy", "pendulum.inertia.zz", "hinge1.viscous", "hinge2.viscous")
GAIN = ("hinge1.motor.gain",)
DRY = ("hinge1.coulomb", "hinge2.coulomb")


def _start(system: System, name: str, near: bool) -> float:
    if near or not system.paper_start:
        return NEAR_FACTOR * system.truth[name]
    return next(value for ending, value in system.paper_start.items() if name.endswith(ending))


def _furuta_tasks() -> list[Task]:
    tasks = []
    for experiment in FURUTA_EXPERIMENTS:
        for dry in (False, True):
            names = SMOOTH + (GAIN if experiment.name != "release" else ()) + (DRY if dry else ())
            true = {**systems.FURUTA.truth, **({} if dry else dict.fromkeys(DRY, 0.0))}
            for near in (False, True):
                starts = {name: _start(systems.FURUTA, name, near) for name in names}
                label = f"furuta-{experiment.name}{'-dry' if dry else ''}-{'near' if near else 'far'}"
                tasks.append(Task(label, systems.FURUTA, experiment, FURUTA_HELD_OUT, true, starts))
    return tasks


def _other(system: System, experiment: Experiment, held_out: Experiment) -> Task:
    starts = {name: _start(system, name, True) for name in system.truth}
    return Task(system.name, system, experiment, held_out, system.truth, starts)


TASKS = {
    task.name: task
    for task in (
        *_furuta_tasks(),
        _other(
            systems.PENDULUM,
            Experiment("release", (math.pi - 0.03, 0.0), no_input),
            Experiment("held-out", (1.5, 0.0), no_input),
        ),
        _other(
            systems.CARTPOLE,
            Experiment("chirp", (0.0, 0.8, 0.0, 0.0), chirp(2.0, 0.3, 3.0)),
            Experiment("held-out", (0.0, -0.5, 0.0, 0.0), chirp(2.0, 2.0, 0.3, 1.0)),
        ),
        _other(
            systems.ARM,
            Experiment("chirp", (0.5, 0.5, 0.0, 0.0), both(chirp(1.5, 0.2, 3.0), chirp(0.5, 3.0, 0.3, 1.0))),
            Experiment("held-out", (0.0, 0.0, 0.0, 0.0), both(chirp(1.2, 2.5, 0.3, 0.5), chirp(0.4, 0.5, 2.5))),
        ),
    )
}


def _swing_up(task: Task, integrate: truth.Integrator) -> tuple[np.ndarray, np.ndarray]:
    """The twin's controller at 100 Hz, in a loop with the tight integrator; it sees the true angles."""
    system, samples = task.system, round(0.01 / INTERVAL)
    p = system.parameters(task.truth)
    machine = FurutaTruth(
        motor_gain=p["hinge1.motor.gain"],
        arm_inertia_zz=p["arm.inertia.zz"],
        rod_inertia_yy=p["pendulum.inertia.yy"],
        rod_inertia_zz=p["pendulum.inertia.zz"],
        tilt=(0.0, 0.0),
    )
    control = swing_up_controller(machine, 0.01, phase=0.0)
    state, states, inputs = np.array(task.experiment.start), [], []
    for _ in range(round(DURATION / 0.01)):
        u = np.array([control(state[0], state[1])])
        piece = integrate(system, task.truth, state, u, INTERVAL * np.arange(samples + 1))
        states.extend(piece[:-1])
        inputs.extend([u] * samples)
        state = piece[-1]
    return np.array([*states, state]), np.array([*inputs, inputs[-1]])


def true_motion(
    task: Task, experiment: Experiment, cache: Path, integrate: truth.Integrator = truth.advance
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, true states and inputs of an experiment; kept in a file named by what they depend on."""
    time = INTERVAL * np.arange(round(DURATION / INTERVAL) + 1)
    inputs = None if experiment.inputs is None else experiment.inputs(time)
    content = repr((sorted(task.system.parameters(task.truth).items()), experiment.start, truth.RELATIVE)).encode()
    content += b"controller" if inputs is None else inputs.tobytes()
    content += b"" if integrate is truth.advance else integrate.__module__.encode()
    path = cache / f"truth-{task.system.name}-{experiment.name}-{hashlib.sha256(content).hexdigest()[:12]}.npz"
    if not path.exists():
        if inputs is None:
            states, inputs = _swing_up(task, integrate)
        else:
            states = truth.motion(task.system, task.truth, np.array(experiment.start), inputs, INTERVAL, integrate)
        cache.mkdir(parents=True, exist_ok=True)
        # Processes beside this one may make the same file.
        own = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(own, states=states, inputs=inputs)
        own.replace(path)
    kept = np.load(path)
    return time, kept["states"], kept["inputs"]


def measure(task: Task, seed: int, cache: Path, integrate: truth.Integrator = truth.advance) -> Data:
    """The recording of one seed."""
    time, states, inputs = true_motion(task, task.experiment, cache, integrate)
    positions = states[:, : len(task.system.joints)]
    noise = np.random.default_rng([seed, 2502]).normal(scale=NOISE, size=positions.shape)
    return Data(time, positions + noise, inputs)


def rollout_error(task: Task, values: Mapping[str, float], cache: Path) -> float:
    """Root mean square error of the positions [rad, m] of a rollout of the held-out experiment.

    The reduced equations with the estimated parameters, from the true start, over 10 s: the same yardstick for every
    method, whatever simulator it has of its own.
    """
    _, states, inputs = true_motion(task, task.held_out, cache)
    n = len(task.system.joints)
    try:
        found = truth.rollout(task.system, {**task.truth, **values}, np.array(task.held_out.start), inputs, INTERVAL)
    except (OverflowError, ValueError, ZeroDivisionError):
        return math.inf
    error = math.sqrt(np.mean((found[:, :n] - states[:, :n]) ** 2))
    return error if math.isfinite(error) else math.inf
