"""The demonstration ends as a newcomer hopes, and every sentence that it prints is true of the files it writes."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demonstration prints, without line breaks, and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    run = CliRunner().invoke(app, ["demo", "--out", str(folder)], env={"COLUMNS": "10000"})
    assert run.exit_code == 0, run.output
    return run.stdout, folder


@pytest.fixture(scope="module")
def columns(demo):
    """Heading without unit → column of the trajectory's table."""
    with (demo[1] / "trajectory_swing_up.csv").open() as file:
        heads, *rows = csv.reader(file)
    return dict(zip((head.partition(" [")[0] for head in heads), np.array(rows, float).T, strict=True))


@pytest.fixture(scope="module")
def result(demo):
    return json.loads((demo[1] / "result.json").read_text("utf-8"))


def test_it_ends_green_with_every_free_number_told(demo, result):
    printed = demo[0]
    assert result["verdict"] == "green"
    assert not re.search(r"^(red|amber)", printed, re.MULTILINE)
    assert f"{len(result['parameters'])} of {len(result['parameters'])} parameters are identified" in printed
    assert (demo[1] / "report.html").stat().st_size > 10_000
    for name, row in result["parameters"].items():
        assert abs(row["value"] - row["truth"]) < 4.0 * row["std"] < 0.05 * row["truth"], name


def test_the_time_for_which_simulations_are_to_be_believed_is_that_of_the_table(demo, columns):
    (listed,) = re.findall(r"stays within 5 % of the spread of (.*?)\. Believe", demo[0])
    told = re.findall(r"(\w+) for ([\d.]+) s of ([\d.]+) s", listed)
    assert told
    for sensor, left, whole in told:
        measured = columns[f"{sensor}.measured"]
        off = np.abs(columns[f"{sensor}.rollout"] - measured) > 0.05 * np.std(measured)
        assert float(left) == pytest.approx(columns["time"][np.argmax(off)], abs=0.005)
        assert float(whole) == pytest.approx(columns["time"][-1])


def test_how_well_the_sensors_are_followed_is_that_of_the_table(demo, columns):
    told = re.findall(r"(theta\d) to ([\d.]+) rad \(noise ([\d.]+)\)", demo[0].partition("follows ")[2])
    assert [sensor for sensor, *_ in told] == ["theta1", "theta2"]
    for sensor, left, _ in told:
        off = columns[f"{sensor}.estimated"] - columns[f"{sensor}.measured"]
        assert float(left) == pytest.approx(np.sqrt(np.mean(off**2)), rel=0.02)
