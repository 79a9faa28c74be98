"""``shadowfit fleet``: a whole run on files, what it writes, and going on after a kill."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from estimation.oscillators import NOISE, oscillation
from estimation.scenes import spring_slider
from shadowfit import read_model, write_model
from shadowfit.cli import progress
from shadowfit.cli.app import app
from shadowfit.errors import WriteError
from shadowfit.estimation import Options
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.levenberg_marquardt import Iteration
from shadowfit.estimation.solve.system import LocalSystem
from shadowfit.estimation.spread import fleet
from shadowfit.estimation.spread.fleet import fit_fleet
from shadowfit.estimation.spread.pilot import Pilot
from shadowfit.estimation.spread.system import SpreadSystem
from shadowfit.evaluation import fleet as fleet_files
from shadowfit.evaluation.fleet import FleetMemory, save_fleet
from shadowfit.parallel import Crew

STIFFNESS, DAMPING = "rail.spring.stiffness", "rail.spring.damping"
FREE = ["--free", f"{STIFFNESS}=8", "--free", f"{DAMPING}=0.5"]


@pytest.fixture
def files(tmp_path):
    write_model(spring_slider(std=NOISE), tmp_path / "block.toml")
    for number in range(4):
        swing = oscillation(number, steps=60)
        rows = np.column_stack([swing.time, swing.channels["x"]]).tolist()
        (tmp_path / f"{swing.name}.csv").write_text("time,x\n" + "".join(f"{t!r},{x!r}\n" for t, x in rows))
    return tmp_path


def call(files, *more):
    command = ["fleet", str(files / "block.toml"), str(files / "swing-*.csv"), *FREE, "--state-weight", "1e4"]
    return CliRunner().invoke(app, [*command, "--out", str(files / "out"), "--quiet", *more])


def test_common_and_own_parameters_are_written(files):
    ran = call(files, "--each", DAMPING, "--json")
    assert ran.exit_code == 0, ran.output
    summary = json.loads(ran.stdout)
    assert summary == json.loads((files / "out" / "fleet.json").read_text())
    row = summary["parameters"][STIFFNESS]
    assert abs(row["value"] - 9.0) < 5.0 * row["std"]
    with (files / "out" / "recordings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [one["recording"] for one in rows] == [str(files / f"swing-{i}.csv") for i in range(4)]
    assert all(float(one[f"{DAMPING}.std"]) > 0.0 for one in rows)
    assert read_model(files / "out" / "model.toml").get(STIFFNESS) == row["value"]
    assert not (files / "out" / "unfinished-fleet.json").exists()


@pytest.mark.parametrize("system", [LocalSystem, SpreadSystem], ids=["the first few", "all"])
def test_an_interrupted_fit_leaves_the_earlier_result_and_goes_on(files, monkeypatch, system):
    def stop(*_):
        raise KeyboardInterrupt

    (files / "out").mkdir()
    (files / "out" / "fleet.json").write_text("earlier")
    with monkeypatch.context() as patched:
        patched.setattr(system, "propose", stop)
        ran = call(files)
    assert (ran.exit_code, "interrupted" in ran.stderr) == (130, True)
    assert (files / "out" / "fleet.json").read_text() == "earlier"
    assert call(files, "--json").exit_code == 0
    again = json.loads((files / "out" / "fleet.json").read_text())["parameters"]
    assert call(files, "--json").exit_code == 0
    whole = json.loads((files / "out" / "fleet.json").read_text())["parameters"]
    assert again[STIFFNESS]["value"] == pytest.approx(whole[STIFFNESS]["value"], abs=0.02 * whole[STIFFNESS]["std"])


def test_a_write_that_fails_keeps_the_earlier_result_whole(files, monkeypatch):
    assert call(files).exit_code == 0
    before = {path.name: path.read_bytes() for path in (files / "out").iterdir()}
    real = fleet_files.write_text

    def full(path, text):
        if path.name == "fleet.json":
            raise WriteError(f"{path} cannot be written: No space left on device")
        real(path, text)

    monkeypatch.setattr(fleet_files, "write_text", full)
    ran = call(files, "--max-iterations", "1")
    assert (ran.exit_code, "No space left" in ran.stderr) == (2, True)
    after = {path.name: path.read_bytes() for path in (files / "out").iterdir()}
    assert "unfinished-fleet.json" in after  # with which the same command goes on
    assert {name: after[name] for name in before} == before


def test_bad_input_is_one_sentence(files):
    assert "no file matches" in CliRunner().invoke(app, ["fleet", "pendulum", str(files / "none*.csv")]).output
    assert "there is no recording" in CliRunner().invoke(app, ["fleet", "pendulum"]).output
    ran = call(files, "--scheduler", "tcp://127.0.0.1:9", "--workers", "2")
    assert ran.exit_code == 2
    assert "started beside it" in ran.output


def test_progress_has_a_rate_and_an_end(monkeypatch):
    """Three evaluations of 40 recordings in 6 s for the first iteration, one in 2 s for the second; ten are allowed."""
    moments = iter([100.0, 106.0, 108.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments))
    pace = progress.FleetPace(40, 10)
    seen = [Iteration(number, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, trials, {}, 0.0) for number, trials in enumerate([0, 3, 1])]
    assert [pace(one) for one in seen] == [
        "",
        "20 recordings/s, at most 0:00:54 left",
        "20 recordings/s, at most 0:00:32 left",
    ]


class Killed(Exception):
    """What ends a driver."""


def kill_after_two(iteration):
    if iteration.number == 2:
        raise Killed


def test_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    swings = [oscillation(number, steps=60) for number in range(4)]
    start = {STIFFNESS: 8.0, DAMPING: 0.5}
    memory = FleetMemory(tmp_path, "this fit")
    setting = {"options": Options(state_weight=1e4), "crew": Crew(1)}
    model = spring_slider(std=NOISE)
    whole = fit_fleet(model, swings, start, **setting)
    with pytest.raises(Killed):
        fit_fleet(model, swings, start, **setting, memory=memory, progress=kill_after_two)
    assert FleetMemory(tmp_path, "another fit").recall() is None
    kept = memory.recall()
    assert [(entry.number, entry.cost) for entry in kept.log] == [(entry.number, entry.cost) for entry in whole.log[:3]]
    assert {name: kept.values[name] for name in start} == kept.log[-1].parameters

    monkeypatch.setattr(fleet, "pilot_fit", None)  # what is known is not found again
    again = fit_fleet(model, swings, start, **setting, memory=memory)
    assert [entry.number for entry in again.log] == list(range(len(again.log)))
    assert [entry.cost for entry in again.log[:3]] == [entry.cost for entry in kept.log]
    for one, other in zip(again.parameters, whole.parameters, strict=True):
        assert one.value == pytest.approx(other.value, abs=0.02 * other.std)
    save_fleet(again, tmp_path)
    assert memory.recall() is None


def test_what_is_kept_comes_back(tmp_path):
    pilot = Pilot(Weights(np.diag([3.0, 0.1]), (1.0, 2.0), 0.5, (0.1, 0.2)), {"a": 1.5, "tilt": np.ones(4)}, {"a": 0.1})
    memory = FleetMemory(tmp_path, "key")
    memory.keep(pilot)
    found = memory.recall()
    np.testing.assert_array_equal(found.weights.dynamics, pilot.weights.dynamics)
    assert (found.weights.std, found.weights.impulse_std) == (pilot.weights.std, pilot.weights.impulse_std)
    np.testing.assert_array_equal(found.values["tilt"], np.ones(4))
    assert (found.values["a"], found.spread) == (1.5, {"a": 0.1})
    (tmp_path / "unfinished-fleet.json").write_text('{"key": "key", "weig')
    assert memory.recall() is None
