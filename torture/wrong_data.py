"""Recordings that are not the machine's: an answer in green would be believed."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from shadowfit.dynamics import simulate
from shadowfit.estimation import Options, fit
from shadowfit.evaluation import save_estimate, verdict
from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model
from shadowfit.models.twins import furuta_swing_up
from shadowfit.recordings import Recording, read_recording
from torture.tally import Tally

WHOLE_FIT = 180.0  # s: of 1000 steps and 13 parameters; what takes longer hangs
STUDIES = Path(__file__).resolve().parents[1] / "studies"


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine with a recording of its own, and what is fitted."""

    mechanism: Mechanism
    recording: Recording
    free: tuple[str, ...]


def pendulum() -> Machine:
    """A rod that swings."""
    mechanism = load_model("pendulum").mechanism.set({"pendulum.inertia.xx": 5e-4})
    recording = _recorded("pendulum", mechanism, {"hinge": 2.0}, {}, 3.0)
    return Machine(mechanism, recording, ("pendulum.inertia.yy", "hinge.viscous"))


def double_pendulum() -> Machine:
    """Two rods."""
    mechanism = load_model("chain2").mechanism.set({"hinge1.viscous": 5e-4, "hinge2.viscous": 3e-4})
    recording = _recorded("chain2", mechanism, {"hinge1": 1.5, "hinge2": 0.8}, {}, 4.0)
    return Machine(mechanism, recording, ("link1.inertia.yy", "link2.inertia.yy", "hinge1.viscous", "hinge2.viscous"))


def cart_pole() -> Machine:
    """A cart that is pushed, with a hanging pole."""
    mechanism = load_model("cartpole").mechanism
    (name,) = mechanism.inputs.names

    def push(time: np.ndarray) -> np.ndarray:
        return 2.0 * np.sin(4.0 * time) + 1.5 * np.sin(9.0 * time + 1.0)

    recording = _recorded("cartpole", mechanism, {"pivot": 0.4}, {name: push}, 4.0)
    return Machine(mechanism, recording, ("cart.mass", "pole.inertia.yy", "rail.viscous", "pivot.viscous"))


def furuta() -> Machine:
    """The demonstration's."""
    twin = furuta_swing_up()
    return Machine(load_model(twin.model).mechanism.set(twin.settings), twin.recording, twin.free)


def _recorded(
    model: str,
    mechanism: Mechanism,
    start: Mapping[str, float],
    inputs: Mapping[str, Callable[[np.ndarray], np.ndarray]],
    seconds: float,
) -> Recording:
    """A simulation at a tenth of the sampling interval of 10 ms, with the sensors' noise."""
    steps, random = int(1000 * seconds), np.random.default_rng(3)
    state = load_model(model).start.with_joints(dict(start), {}).state(mechanism)
    # An input is held from sample to sample.
    held = 0.01 * (np.arange(steps) // 10)
    commands = {name: own(held) for name, own in inputs.items()}
    run = simulate(mechanism, state, commands, timestep=1e-3, steps=steps, joints="rigid", substeps=1)
    channels = {
        name: np.asarray(run.readings[name]).reshape(steps + 1)[::10]
        + random.normal(0.0, float(sensor.std), steps // 10 + 1)
        for name, sensor in mechanism.sensors.items()
    }
    time = np.asarray(run.time)[::10]
    return Recording(time, channels | {name: own(time) for name, own in inputs.items()}, name=model)


# Recordings of real machines, where there are some: model file, recording, columns, seconds, free parameters.
REAL = {
    "real pendulum": (
        "single_pendulum.toml",
        "pendulum_single_uw/single_free_swing_500Hz.csv",
        {},
        8.0,
        ("pendulum.inertia.yy", "hinge.viscous", "hinge.coulomb", "theta1.offset"),
    ),
    "real cart-pole": (
        "cartpole.toml",
        "cartpole_quanser/qcp_chirp_3to0Hz_pos3.5V_250Hz_0.csv",
        {},
        5.0,
        ("cart.mass", "pole.inertia.yy", "rail.viscous", "rail.coulomb", "pivot.viscous", "theta.offset"),
    ),
    "real driven double pendulum": (
        "double_pendulum_dfki.toml",
        "double_pendulum_dfki/A0_traj00.csv",
        {"tau1": "tau_cmd1", "tau2": "tau_cmd2"},
        10.0,
        ("link1.com.z", "link1.inertia.yy", "link2.com.z", "link2.inertia.yy", "*.viscous", "*.coulomb"),
    ),
}


def real(name: str) -> Machine:
    """A machine of REAL."""
    model, file, columns, seconds, free = REAL[name]
    recording = read_recording(Path(os.environ["SHADOWFIT_DATA"]) / file, channels=columns)
    begin = float(recording.time[0])
    return Machine(load_model(str(STUDIES / model)).mechanism, recording.between(begin, begin + seconds), free)


def machines() -> dict[str, Callable[[], Machine]]:
    """All of them by name; real ones where their recordings are."""
    found: dict[str, Callable[[], Machine]] = {
        "pendulum": pendulum,
        "double pendulum": double_pendulum,
        "cart-pole": cart_pole,
        "Furuta pendulum": furuta,
    }
    if os.environ.get("SHADOWFIT_DATA"):
        found |= {name: lambda name=name: real(name) for name in REAL}
    return found


def wrongs(machine: Machine) -> Iterator[tuple[str, Recording]]:
    """What a machine's recording can be mistaken for."""
    own, random = machine.recording, np.random.default_rng(11)
    sensors = {name: own.channels[name] for name in machine.mechanism.sensors.names if name in own.channels}
    inputs = {name: own.channels[name] for name in machine.mechanism.inputs.names if name in own.channels}

    def changed(channels: Mapping[str, np.ndarray]) -> Recording:
        return dataclasses.replace(own, channels={**own.channels, **channels})

    yield "noise", changed({k: random.normal(np.mean(v), np.std(v), len(v)) for k, v in sensors.items()})
    yield "a random walk", changed({k: np.cumsum(random.normal(0.0, 0.02, len(v))) for k, v in sensors.items()})
    yield "shuffled", changed({k: random.permutation(v) for k, v in sensors.items()})
    backwards = own.time[0] + own.time[-1] - own.time[::-1]
    yield "backwards", dataclasses.replace(own, time=backwards, channels={k: v[::-1] for k, v in own.channels.items()})
    yield "in degrees", changed({k: np.degrees(v) for k, v in list(sensors.items())[:1]})
    if len(sensors) + len(inputs) > 1:  # a single angle that is mirrored is another swing of the same machine
        for name, values in (sensors | inputs).items():
            yield f"{name} mirrored", changed({name: -values})
    if len(sensors) > 1:
        one, other = list(sensors)[:2]
        yield "swapped", changed({one: sensors[other], other: sensors[one]})
    for name, values in inputs.items():
        yield f"{name} of another run", changed({name: np.roll(values, len(own) // 3)})


def wrong_data(folder: Path, names: tuple[str, ...] | None = None) -> Tally:
    """Fits of machines to recordings that are not theirs: never green."""
    tally = Tally("wrong data")
    for name, make in machines().items():
        if names is not None and name not in names:
            continue
        machine = make()
        for what, recording in wrongs(machine):
            answer = tally.attempt(
                lambda machine=machine, recording=recording: colour(machine, recording, folder / "wrong"),
                lambda name=name, what=what: f"{name}, {what}",
                WHOLE_FIT,
            )
            if answer == "green":
                tally.note("wrong", f"{name}, {what}: green")
    return tally


def colour(machine: Machine, recording: Recording, folder: Path) -> str:
    """Of the verdict on a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = Options.physical(machine.mechanism)
        estimate = fit(machine.mechanism, recording, machine.free, options=options)
        return verdict.colour(save_estimate(estimate, folder))
