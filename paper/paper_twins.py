"""Twins of the paper's machines: finely simulated recordings of which the truth is known.

The rig's own data are not public. Each recording is simulated with SPOOK at a hundredth of the time-step of the fits
(1e-4 s) and with stiff bearings (compliance 1e-6), sampled at 1 kHz and read by encoders of 4096 counts a turn, with
white noise where it is asked for. A test compares these simulations with equations of motion in joint angles, which
share nothing with the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.dynamics import State, place, simulate
from shadowfit.evaluation.columns import write_csv
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model, parse_model
from shadowfit.models.atomic import write_text
from shadowfit.models.twins import FurutaTruth, counted, named_truth, swing_up_controller
from shadowfit.sweeps.cases import digest

TASK = f"{__name__}:make_twin"
FINE_STEP = 1e-4  # s
FINELY: dict[str, Any] = {"timestep": FINE_STEP, "discretization": "spook"}
SAMPLE_INTERVAL = 1e-3  # s
COMPLIANCE = 1e-6  # m/N and rad/(N m)
CONTROL_INTERVAL = 0.01  # s, between changes of the control signal; the steps of the fits then see a constant one
PULSE_VOLTAGE = 1.5  # V

PENDULUM_TRUTH: dict[str, float] = {
    "pendulum.inertia.yy": 0.0039,
    "hinge.viscous": 2e-4,
    "hinge.dry": 0.0018,
    "hinge.stribeck": 0.0012,
    "hinge.stribeck_rate": 1.0,
}
"""Near the paper's Table 2. It gives no numbers for Stribeck friction: sliding doubles its friction near rest here."""

SYNTHETIC_TRUTH: dict[str, float] = {
    "arm.inertia.zz": 0.003,
    "pendulum.inertia.yy": 0.004,
    "hinge1.viscous": 1e-3,
    "hinge2.viscous": 1e-4,
}
"""The four unknowns of the paper's Section 4.7, from its table of the simulation's parameters."""

SYNTHETIC_KNOWN: dict[str, float] = {
    "arm.inertia.xx": 0.003,
    "arm.inertia.yy": 0.003,
    "pendulum.inertia.zz": 0.004,
    "hinge1.motor.shaft_inertia": 1e-4,
    "hinge1.dry": 0.0,
    "hinge2.dry": 0.0,
}
"""The rest of it. The arm never turns about its x axis: the paper's 1e-4 there has no effect, and fails our checks."""


def stribeck_model() -> str:
    """Model file of the pendulum with Stribeck friction."""
    text = load_model("pendulum").text
    changed = text.replace('friction = "coulomb"', 'friction = "stribeck"').replace(
        'name = "pendulum"', 'name = "pendulum_stribeck"'
    )
    assert changed.count("stribeck") == 2, "the built-in model is written otherwise now"
    return changed


def make_twin(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Simulate one twin, and write its recording.

    Arguments: ``kind`` (a function of this file), ``file`` (relative to the folder), ``duration`` [s], ``noise``
    (standard deviation of added noise [rad]), ``seed`` (of noise, encoders' offsets and start), ``counts`` of the
    encoders in a turn (0: as exact as a float).
    """
    random = np.random.default_rng(arguments["seed"])
    made = _KINDS[arguments["kind"]](float(arguments["duration"]), random)
    columns: dict[str, Any] = {"time [s]": SAMPLE_INTERVAL * np.arange(len(next(iter(made.values()))))}
    exact = {f"{name} [rad]": values for name, values in made.items() if name.startswith("theta")}
    write_csv(folder / true_file(arguments["file"]), {**columns, **exact})
    for name, values in made.items():
        if name.startswith("theta"):
            measured = values + arguments["noise"] * random.standard_normal(len(values))
            counts = arguments.get("counts", 4096)
            offset = random.uniform()
            columns[f"{name} [rad]"] = counted(measured, offset, counts) if counts else measured
        else:
            columns[f"{name} [V]"] = values
    file = folder / arguments["file"]
    write_csv(file, columns)
    return {"file": arguments["file"], "digest": digest(file)}


def true_file(file: str) -> str:
    """File with the true angles beside that of a recording."""
    return file.removesuffix(".csv") + ".true.csv"


def pendulum(duration: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Release of the pendulum at rest, 0.03 to 0.15 rad from upright; it swings until friction stops it."""
    mechanism = stiff(parse_model(stribeck_model(), "stribeck").mechanism.set(PENDULUM_TRUTH))
    angle = np.pi - random.uniform(0.03, 0.15)
    return sampled(mechanism, place(mechanism, {"hinge": angle}), {}, duration)


def furuta_release(duration: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Release of the Furuta pendulum from almost upright; the motor is off."""
    mechanism = furuta_mechanism()
    angle = np.pi - random.uniform(0.02, 0.05)
    return sampled(mechanism, place(mechanism, {"hinge2": angle}), {"u": 0.0}, duration)


def furuta_pulse(duration: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """One second of constant voltage on the hanging Furuta pendulum, half a second after the start."""
    del random
    mechanism = furuta_mechanism()
    return sampled(mechanism, place(mechanism), {"u": lambda t: PULSE_VOLTAGE if 0.5 <= t < 1.5 else 0.0}, duration)


def furuta_swingup(duration: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Swing-up by an energy-shaping controller in the loop, which sees the encoders' counts 100 times a second."""
    true = FurutaTruth()
    mechanism = furuta_mechanism(true)
    control = swing_up_controller(true, CONTROL_INTERVAL, random.uniform(0.0, 2.0 * np.pi))
    offsets = random.uniform(0.0, 1.0, 2)
    state = place(mechanism)
    angles = {"theta1": [0.0], "theta2": [0.0]}
    signal: list[float] = []
    for _ in range(round(duration / CONTROL_INTERVAL)):
        seen = [float(counted(angle[-1], offset)) for angle, offset in zip(angles.values(), offsets, strict=True)]
        volt = control(*seen)
        run = simulate(mechanism, state, {"u": volt}, steps=round(CONTROL_INTERVAL / FINE_STEP), **FINELY)
        state = run.states[-1]
        for name, angle in angles.items():
            piece = np.asarray(run.readings[name])[_every() :: _every()]
            # Each piece counts its turns from zero; the motion goes on where it was.
            angle.extend((piece + 2.0 * np.pi * np.round((angle[-1] - piece[0]) / (2.0 * np.pi))).tolist())
        signal.extend([volt] * round(CONTROL_INTERVAL / SAMPLE_INTERVAL))
    signal.append(signal[-1])
    return {**{name: np.array(angle) for name, angle in angles.items()}, "u": np.array(signal)}


def synthetic(duration: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """The paper's synthetic release: level stand, no dry friction, 0.03 rad from upright."""
    del random
    mechanism = stiff(load_model("furuta").mechanism.set({**SYNTHETIC_KNOWN, **SYNTHETIC_TRUTH}))
    return sampled(mechanism, place(mechanism, {"hinge2": np.pi - 0.03}), {"u": 0.0}, duration)


_KINDS = {made.__name__: made for made in (pendulum, furuta_release, furuta_pulse, furuta_swingup, synthetic)}


def furuta_mechanism(truth: FurutaTruth | None = None) -> Mechanism:
    """The simulator's own mechanism with the numbers of the true machine."""
    true = truth or FurutaTruth()
    numbers = {name: value for name, value in named_truth(true).items() if "tilt" not in name}
    tilt = np.asarray(rotations.exp(jnp.array([*true.tilt, 0.0])))
    numbers["hinge1.motor.shaft_inertia"] = true.shaft_inertia
    return stiff(load_model("furuta").mechanism.set({**numbers, "gravity.tilt": tilt}))


def stiff(mechanism: Mechanism) -> Mechanism:
    """The mechanism with the bearings of the truth."""
    return mechanism.set(dict.fromkeys(mechanism.match("*.compliance.*"), COMPLIANCE))


def sampled(mechanism: Mechanism, state: State, inputs: Mapping[str, Any], duration: float) -> dict[str, np.ndarray]:
    """Sensors and inputs at the sampling rate, simulated with the fine step."""
    steps = round(duration / FINE_STEP)
    run = simulate(mechanism, state, inputs, steps=steps, **FINELY)
    columns = {name: np.asarray(values)[:: _every()] for name, values in run.readings.items()}
    times = SAMPLE_INTERVAL * np.arange(len(next(iter(columns.values()))))
    for name, value in inputs.items():
        columns[name] = np.array([value(t) if callable(value) else value for t in times])
    return columns


def _every() -> int:
    return round(SAMPLE_INTERVAL / FINE_STEP)


def write_models(folder: Path) -> None:
    """Model files that fits of the twins need besides the built-in ones."""
    write_text(folder / "models" / "pendulum_stribeck.toml", stribeck_model())
