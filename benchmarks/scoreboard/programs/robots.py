"""Robots with the model files of ``studies/robots.py``: torques of a part that was not fitted, and halves that agree.

Arms are fitted on the first 70 % of a recording, with all inertial numbers, friction, rotors and offsets free, and
asked for the torques along the motion of the rest; least squares on filtered derivatives with Pinocchio's regressor
(:mod:`benchmarks.arm`) is asked the same. Legs, of which targets of their position loops were recorded, are fitted on
both halves of a recording.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rigs.base_parameters import base_parameters
from benchmarks.rigs.real import STUDIES
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, outcome
from shadowfit.evaluation import load_result, validate
from shadowfit.evaluation.torques import whole_share
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_recording

sys.path.insert(0, str(STUDIES))
import robots  # type: ignore[import-not-found]

SCENARIOS: dict[str, robots.Robot] = robots.ROBOTS
LEGS = {name for name, robot in SCENARIOS.items() if robot.overlay == robots.LEGS}
QUICK = ("tx40", "panda")
FIT, LEAST_SQUARES = "first 70 %", "least squares"
HALVES = {"first half": (-np.inf, 1.0), "second half": (1.0, np.inf)}


def cases(form: Form) -> list[Case]:
    """Two for each robot: a fit and its yardstick, or two halves."""
    return [
        Case("robots", name, variant, limit=900.0, needs_data=True)
        for name in SCENARIOS
        if form == "full" or name in QUICK
        for variant in (HALVES if name in LEGS else (FIT, LEAST_SQUARES))
    ]


def run(case: Case) -> dict[str, Any]:
    """One fit, or the yardstick."""
    robot, data = SCENARIOS[case.scenario], Path(os.environ["SHADOWFIT_DATA"])
    os.environ["SHADOWFIT_FOLDERS"] = str(data)  # model files name robot files there
    if case.variant == LEAST_SQUARES:
        return least_squares(robot.reference, data)
    split = float(robot.split)
    if case.variant in HALVES:
        part = recording(robot, data).between(*(split * bound for bound in HALVES[case.variant]))
        return {**fit(robot, data, part, None), "pairs": [["halves", "halves"]]}
    whole = recording(robot, data)
    with tempfile.TemporaryDirectory() as folder:
        found = fit(robot, data, whole.between(-np.inf, split), Path(folder))
        saved = load_result(folder)
        torques = validate(saved, whole.between(split, np.inf))[0].torques
        told = {} if robot.published is None else {"bases": list(base_parameters(data / robot.published, saved))}
    joints = {joint: own.rmse for joint, own in torques.items()}
    return {**found, **told, "torque error": 100.0 * whole_share(torques), "joints": joints}


def recording(robot: robots.Robot, data: Path) -> Recording:
    """The whole recording."""
    return read_recording(data / robot.recording, channels=dict(column.split("=") for column in robot.channels))


def fit(robot: robots.Robot, data: Path, part: Recording, folder: Path | None) -> dict[str, Any]:
    """A fit of a part, with plain defaults."""
    with tempfile.TemporaryDirectory() as own:
        model = Path(own) / "robot.toml"
        model.write_text(f'robot = "{(data / robot.file).resolve()}"\n{robot.overlay}', encoding="utf-8")
        mechanism = load_model(str(model)).mechanism
    return outcome(fitted(mechanism, part, robot.free), folder=folder)


def least_squares(reference: str, data: Path) -> dict[str, Any]:
    """Torque error of the rest by least squares [%]."""
    from benchmarks import arm  # noqa: PLC0415  (only here Pinocchio is needed)

    file, table, angle, torque, cutoff = arm.ARMS[reference]
    errors = arm.torque_errors(data / file, data / table, angle, torque, cutoff, without_repeats=True)
    return {"least squares": 100.0 * float(errors["rest"]["whole"])}
