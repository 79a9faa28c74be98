"""Whole fits in this process: on damaged and on wrong data, with clocks that jump."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from shadowfit.dynamics import simulate
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.evaluation import load_result, save_estimate, verdict
from shadowfit.models import load_model
from shadowfit.models.twins import furuta_swing_up
from shadowfit.recordings import Recording, read_recording
from torture.mutation import mutated
from torture.reading import recordings
from torture.tally import Tally

FREE = ("hinge.viscous", "pendulum.inertia.yy")
QUICK = LevenbergMarquardt(max_iterations=8)
WHOLE_FIT = 180.0  # s: of 1000 steps and 13 parameters; what takes longer hangs


def damaged_data(folder: Path, count: int, number: int = 0) -> Tally:
    """Fits on tables that were damaged and can still be read."""
    random, tally = np.random.default_rng(number), Tally("fits on damaged data")
    mechanism, path = load_model("pendulum").mechanism, folder / "fit.csv"
    while tally.tried < count:
        content = mutated(recordings()[".csv"], random)
        path.write_bytes(content)
        try:
            recording = read_recording(path)
        except ValueError:
            continue
        options = Options(memory=1e8, state_weight=(100.0, "auto")[tally.tried % 2])

        def attack(recording: Recording = recording, options: Options = options) -> Estimate:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return fit(mechanism, recording, FREE, options=options, optimiser=QUICK)

        estimate = tally.attempt(attack, lambda content=content: repr(content[:2000]))
        if estimate is not None and estimate.status.converged and not np.isfinite(estimate.cost):
            tally.note("wrong", f"converged to {estimate.cost}: {content[:2000]!r}")
        if estimate is not None and tally.tried % 10 == 0:
            _save(estimate, folder / "saved", tally, repr(content[:2000]))
    return tally


def _save(estimate: Estimate, folder: Path, tally: Tally, what: str) -> None:
    def attack() -> object:
        save_estimate(estimate, folder)
        json.loads((folder / "result.json").read_text(), parse_constant=_refuse)
        return load_result(folder)

    tally.attempt(attack, lambda: f"saving: {what}")


def _refuse(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def jumping_clocks(folder: Path, count: int, number: int = 0) -> Tally:
    """Clocks of the day that jump by years while a fit runs and is written: the same digits."""
    random, tally = np.random.default_rng(number), Tally("clocks that jump")
    mechanism, recording = load_model("pendulum").mechanism, _swing()
    expected = fit(mechanism, recording, FREE).values

    def attack() -> dict[str, float]:
        with mock.patch("time.time", side_effect=lambda: float(random.normal(2e9, 1e9))):
            estimate = fit(mechanism, recording, FREE)
            save_estimate(estimate, folder / "clock")
        return estimate.values

    for _ in range(count):
        found = tally.attempt(attack, lambda: "a clock that jumps")
        if found is not None and found != expected:
            tally.note("wrong", f"{found} instead of {expected}")
    return tally


def _swing() -> Recording:
    model = load_model("pendulum")
    state = model.start.with_joints({"hinge": 1.5}, {}).state(model.mechanism)
    run = simulate(model.mechanism, state, timestep=0.01, steps=200, discretization="exact")
    noise = np.random.default_rng(3).normal(0.0, 1e-3, 201)
    return Recording(np.asarray(run.time), {"theta": np.asarray(run.readings["theta"]) + noise}, name="swing")


# ---- wrong data: an answer in green would be believed


def _rng() -> np.random.Generator:
    return np.random.default_rng(11)


WRONG: dict[str, Callable[[Recording], dict[str, np.ndarray]]] = {
    "noise": lambda r: {key: _rng().normal(np.mean(v), np.std(v), len(v)) for key, v in r.channels.items()},
    "a random walk": lambda r: {key: np.cumsum(_rng().normal(0.0, 0.02, len(v))) for key, v in r.channels.items()},
    "shuffled": lambda r: {key: _rng().permutation(v) for key, v in r.channels.items()},
    "theta2 mirrored": lambda r: {**r.channels, "theta2": -r.channels["theta2"]},
    "u mirrored": lambda r: {**r.channels, "u": -r.channels["u"]},
    "backwards in time": lambda r: {key: v[::-1] for key, v in r.channels.items()},
    "angles swapped": lambda r: {**r.channels, "theta1": r.channels["theta2"], "theta2": r.channels["theta1"]},
    "u of another run": lambda r: {**r.channels, "u": np.roll(r.channels["u"], len(r) // 3)},
    "degrees": lambda r: {**r.channels, "theta1": np.degrees(r.channels["theta1"])},
}


def wrong_data(folder: Path, names: tuple[str, ...] = tuple(WRONG)) -> Tally:
    """The demonstration's fit on data that are not the machine's: never green."""
    tally, twin = Tally("wrong data"), furuta_swing_up()
    mechanism = load_model(twin.model).mechanism.set(twin.settings)

    def attack(recording: Recording) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = fit(mechanism, recording, twin.free, options=Options.physical(mechanism))
            return verdict.colour(save_estimate(estimate, folder / "wrong"))

    for name in names:
        recording = Recording(twin.recording.time, WRONG[name](twin.recording), twin.recording.units, name=name)
        answer = tally.attempt(lambda recording=recording: attack(recording), lambda name=name: name, WHOLE_FIT)
        if answer == "green":
            tally.note("wrong", f"{name}: green")
    return tally
