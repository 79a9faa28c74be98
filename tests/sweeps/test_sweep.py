"""Sweeps: grids, checks before anything runs, resuming, and the command."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.evaluation.columns import write_csv
from shadowfit.sweeps.sweep import SweepError, read_sweep

SPEC = """
model = "pendulum"
recordings = ["swing.csv"]

[set]
"hinge.dry" = 0.0

[free]
"pendulum.inertia.yy" = { start = 0.005 }
"hinge.visc*" = {}

[options]
unknowns = "configuration"
timestep = 0.02

[[axis]]
name = "compliance"
change = ["set.hinge.compliance.*"]
values = [1e-6, 1e-5]

[[axis]]
change = "options.state_weight"
range = { from = 1, to = 100, points = 3 }
"""


def spec(tmp_path, text=SPEC):
    time = 0.02 * np.arange(101)
    write_csv(tmp_path / "swing.csv", {"time [s]": time, "theta [rad]": 0.5 * np.cos(5.0 * time)})
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    return file


def test_every_combination_is_a_case(tmp_path):
    sweep = read_sweep(spec(tmp_path))
    assert [axis.name for axis in sweep.axes] == ["compliance", "state_weight"]
    assert len(sweep.cases) == 6
    assert sweep.points["compliance=1e-05_state_weight=10"] == {"compliance": 1e-5, "state_weight": 10.0}
    arguments = {case.name: case.arguments for case in sweep.cases}["compliance=1e-05_state_weight=10"]
    assert arguments["set"] == {"hinge.dry": 0.0, "hinge.compliance.*": 1e-5}
    assert arguments["options"] == {"unknowns": "configuration", "timestep": 0.02, "state_weight": 10.0}
    assert len({case.group for case in sweep.cases}) == 1, "numbers alone compile nothing anew"


def test_without_axes_it_is_one_case(tmp_path):
    assert len(read_sweep(spec(tmp_path, SPEC.split("[[axis]]", maxsplit=1)[0])).cases) == 1


def test_other_data_are_another_case(tmp_path):
    before = read_sweep(spec(tmp_path)).cases[0].arguments
    write_csv(tmp_path / "swing.csv", {"time [s]": 0.02 * np.arange(101), "theta [rad]": np.linspace(0, 1, 101)})
    assert read_sweep(tmp_path / "sweep.toml").cases[0].arguments != before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('model = "pendulum"', "modle = 'pendulum'", "no key 'modle'; did you mean 'model'"),
        ('recordings = ["swing.csv"]', "", "recordings is missing"),
        ('recordings = ["swing.csv"]', "recordings = 'swing.csv'", "recordings is 'swing.csv'; write a list"),
        ('recordings = ["swing.csv"]', "recordings = ['other.csv']", "other.csv cannot be read"),
        ("state_weight", "state_wait", "case compliance=1e-06_state_wait=1: options has no key 'state_wait'"),
        ('"hinge.dry" = 0.0', '"hinge.drie" = 0.0', "no parameter 'hinge.drie'; did you mean 'hinge.dry'"),
        ('"hinge.dry" = 0.0', '"hinge.dry" = "no"', "hinge.dry: 'no' is not a number"),
        ("values = [1e-6, 1e-5]", "values = [0.0]", "needs a positive compliance"),
        ("values = [1e-6, 1e-5]", "values = []", "a list of at least one value"),
        ("values = [1e-6, 1e-5]", "", "axis 1: give either values or range"),
        ("set.hinge", "free.hinge", "must begin with set., options. or optimiser."),
        ("points = 3", "points = 1", "points of at least 2"),
        ("from = 1", "from = 0", "positive ones for spacing 'log'"),
        ("{ start = 0.005 }", "{ begin = 0.005 }", "no key 'begin'"),
        ("{ start = 0.005 }", "0.005", "write a table such as"),
        ("[options]", "[options", "is not TOML"),
        ('change = "options.state_weight"', 'name = "compliance"\nchange = "options.cutoff"', "two axes have the name"),
    ],
)
def test_mistakes_are_found_before_anything_runs(tmp_path, old, new, message):
    assert old in SPEC
    with pytest.raises(SweepError) as caught:
        read_sweep(spec(tmp_path, SPEC.replace(old, new)))
    assert message in str(caught.value)
    assert "sweep.toml" in str(caught.value)


def test_a_mistake_is_one_message(tmp_path):
    result = CliRunner().invoke(app, ["sweep", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "none.toml cannot be read" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command_runs_and_goes_on(tmp_path):
    file = spec(tmp_path, SPEC.replace("points = 3", "points = 2").replace("values = [1e-6, 1e-5]", "values = [1e-6]"))
    out = tmp_path / "out"
    command = ["sweep", str(file), "--out", str(out), "--workers", "2", "--json"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    rows = json.loads(first.stdout)["cases"]
    assert [row["state_weight"] for row in rows] == [1.0, 100.0]
    assert all(row["converged"] and row["pendulum.inertia.yy"] > 0.0 for row in rows)
    assert json.loads((out / "summary.json").read_text()) == rows
    assert (out / "summary.csv").read_text().count("\n") == 3
    (out / "cases" / "compliance=1e-06_state_weight=1.json").unlink()
    second = CliRunner().invoke(app, command)
    assert second.exit_code == 0
    assert "kept from before" in second.stderr
    again = json.loads(second.stdout)["cases"]
    assert [row["cost"] for row in again] == pytest.approx([row["cost"] for row in rows])
