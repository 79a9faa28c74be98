"""Whole fits in this process: on damaged data, with clocks that jump."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

from shadowfit.dynamics import simulate
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.evaluation import load_result, save_estimate
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_recording
from torture.mutation import mutated
from torture.reading import recordings
from torture.tally import Tally

FREE = ("hinge.viscous", "pendulum.inertia.yy")
QUICK = LevenbergMarquardt(max_iterations=8)


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
    run = simulate(
        model.mechanism, state, timestep=0.01, steps=200, discretization="exact", joints="compliant", substeps=1
    )
    noise = np.random.default_rng(3).normal(0.0, 1e-3, 201)
    return Recording(np.asarray(run.time), {"theta": np.asarray(run.readings["theta"]) + noise}, name="swing")
