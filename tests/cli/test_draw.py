"""``shadowfit draw``: a table of machines on the screen or in a file, and what is refused."""

import io

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.dynamics import place, simulate
from shadowfit.estimation import fit
from shadowfit.evaluation import load_result
from shadowfit.models import load_model
from shadowfit.recordings import Recording


def run(*arguments):
    return CliRunner().invoke(app, ["draw", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A good result and a red one: of the same swing, and of a pendulum five times as heavy."""
    folder, model = tmp_path_factory.mktemp("results"), load_model("pendulum")
    motion = simulate(model.mechanism, place(model.mechanism, {"hinge": 2.0}), timestep=0.01, steps=150)
    recording = Recording(motion.time, {"theta": motion.readings["theta"]}, name="swing")
    heavy = model.mechanism.set({"pendulum.mass": 5.0})
    fit(model.mechanism, recording, "hinge.viscous").save(folder / "good")
    fit(heavy, recording, "hinge.viscous").save(folder / "red")
    return folder


def test_the_table_goes_to_the_screen(results):
    told = run(results / "good", "--count", "4", "--seed", "2", "--force")
    assert told.exit_code == 0, told.output
    assert polars.read_csv(io.StringIO(told.stdout)).shape == (4, 1)


def test_a_file_is_not_replaced_unasked(results, tmp_path):
    target = tmp_path / "machines.csv"
    assert run(results / "good", "--count", "3", "--out", target, "--force").exit_code == 0
    again = run(results / "good", "--count", "5", "--out", target)
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert polars.read_csv(target).height == 3


@pytest.mark.parametrize(
    ("result", "options", "sentence"),
    [("red", (), "--force"), ("good", ("--count", "0"), "at least 1"), ("nowhere", (), "result.json is missing")],
)
def test_what_cannot_be_drawn_is_a_sentence(results, result, options, sentence):
    told = run(results / result, *options)
    assert told.exit_code == 2
    assert sentence in " ".join(told.stderr.split())
    assert told.stdout == ""


def test_a_red_result_is_drawn_from_by_force(results):
    assert run(results / "red", "--force", "--count", "2").exit_code == 0


def export(*arguments):
    return CliRunner().invoke(app, ["export", *(str(argument) for argument in arguments)])


def test_draws_go_into_copies_of_a_model_file(results, tmp_path):
    model = tmp_path / "pendulum.toml"
    model.write_text(load_model("pendulum").text, "utf-8")
    told = export(results / "good", model, "--draws", "3", "--seed", "1", "--force")
    assert told.exit_code == 0, told.output
    drawn = load_result(results / "good").draw(3, 1, red=True).to_dict()["hinge.viscous"]
    written = [load_model(tmp_path / f"pendulum.calibrated.{i}.toml").mechanism.get("hinge.viscous") for i in range(3)]
    np.testing.assert_allclose(written, drawn, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [(("--ranges", "most"), "a percentage such as 95%"), (("--for", "mjlab"), "must be a file .xml")],
)
def test_what_cannot_be_exported_is_a_sentence(results, tmp_path, options, sentence):
    model = tmp_path / "pendulum.toml"
    model.write_text(load_model("pendulum").text, "utf-8")
    told = export(results / "good", model, *options)
    assert told.exit_code == 2
    assert sentence in " ".join(told.stderr.split())
    assert list(tmp_path.iterdir()) == [model]
