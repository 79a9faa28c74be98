"""Fitting from the command line: output and exit status, the JSON object, free parameters, validation, mistakes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.cli.options import OptionError, free_parameters, impulse_variances, known_beforehand, state_weight
from shadowfit.dynamics import simulate
from shadowfit.errors import MechanismError
from shadowfit.estimation import Free
from shadowfit.evaluation.columns import write_csv
from shadowfit.models import builtin, load_model, read_model

VISCOUS = 4e-4


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """A swing of the built-in pendulum with more friction, in degrees and under another name."""
    model = load_model("pendulum")
    mechanism = model.mechanism.set({"hinge.viscous": VISCOUS})
    state = model.start.with_joints({"hinge": 2.0}, {}).state(mechanism)
    swing = simulate(mechanism, state, timestep=0.001, steps=2000, joints="compliant", substeps=1)
    noise = np.random.default_rng(0).normal(0.0, 1e-3, 201)
    path = tmp_path_factory.mktemp("data") / "swing.csv"
    theta = np.asarray(swing.readings["theta"])[::10] + noise
    write_csv(path, {"time [s]": np.asarray(swing.time)[::10], "alpha [deg]": np.degrees(theta)})
    return path


@pytest.fixture(scope="module")
def fitted(csv, tmp_path_factory):
    """A fit with --json, and its folder."""
    out = tmp_path_factory.mktemp("fit") / "result"
    result = run(
        *("fit", "pendulum", csv, "--free", "hinge.visc*=1e-4@0:1", "--channel", "theta=alpha", "--json", "--out", out)
    )
    assert result.exit_code == 0, result.output
    return result, out


def test_json_is_one_object_on_standard_output(fitted):
    result, out = fitted
    summary = json.loads(result.stdout)
    assert summary == json.loads((out / "result.json").read_text("utf-8"))
    assert {
        *("status", "converged", "iterations", "cost", "cost_dynamics", "cost_observation", "parameters", "seconds"),
        *("recordings", "version"),
    } <= set(summary)
    row = summary["parameters"]["hinge.viscous"]
    assert (row["start"], row["lower"], row["upper"], row["unit"]) == (1e-4, 0.0, 1.0, "N m s/rad")
    assert abs(row["value"] - VISCOUS) < 5.0 * row["std"] < 5e-4
    assert "iteration 0" in result.stderr, "plain lines where there is no terminal"
    # Nothing is left to compile where a fit of the same kind was made before.
    assert 0.0 <= summary["seconds"]["compile"] < summary["seconds"]["total"]


def test_the_calibrated_model_is_one_to_simulate(fitted, tmp_path):
    _, out = fitted
    value = json.loads((out / "result.json").read_text("utf-8"))["parameters"]["hinge.viscous"]["value"]
    assert read_model(out / "model.toml").get("hinge.viscous") == value
    result = run("simulate", out / "model.toml", "--duration", 0.1, "--out", tmp_path / "run.csv")
    assert result.exit_code == 0, result.output


def test_not_converged_is_written_and_status_one(csv, tmp_path):
    out = tmp_path / "short"
    result = run(
        *("fit", "pendulum", csv, "--free", "hinge.viscous", "--channel", "theta=alpha", "--quiet"),
        *("--max-iterations", 1, "--out", out),
    )
    assert result.exit_code == 1, result.output
    assert "stopped at its iteration limit" in result.stdout
    assert result.stderr == ""
    assert (out / "report.html").exists()


def test_report_is_written_again(fitted):
    _, out = fitted
    before = (out / "report.html").read_text("utf-8")
    (out / "report.html").unlink()
    result = run("report", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out / "report.html")
    assert (out / "report.html").read_text("utf-8") == before


def test_validate(fitted, csv):
    _, out = fitted
    result = run("validate", out, csv, "--channel", "theta=alpha", "--json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["validations"]
    fitted_cost = json.loads((out / "result.json").read_text("utf-8"))["cost"]
    assert found["cost"] == pytest.approx(fitted_cost, rel=1e-3), "the states of the fit are those of the validation"
    assert found["sensors"]["theta"]["rollout_rmse"] < 0.05
    plain = run("validate", out, csv, "--channel", "theta=alpha", "--quiet")
    assert plain.exit_code == 0, plain.output
    assert "swing (of the fit)" in plain.stdout
    assert plain.stderr == ""


@pytest.mark.parametrize(
    ("text", "name", "free"),
    [
        ("hinge.viscous", "hinge.viscous", Free()),
        ("hinge.viscous=2", "hinge.viscous", Free(start=2.0)),
        ("*.visc*@0:1e-2", "hinge.viscous", Free(lower=0.0, upper=0.01)),
        ("hinge.dry=-1@-2:", "hinge.dry", Free(start=-1.0, lower=-2.0)),
        ("hinge.dry@:3", "hinge.dry", Free(upper=3.0)),
    ],
)
def test_free_parameters(text, name, free):
    assert free_parameters([text], read_model("pendulum")) == {name: free}


def test_priors_and_values_of_each_recording():
    pendulum = read_model("pendulum")
    known = {"hinge.viscous": Free(prior=1e-3)}
    found = free_parameters(["hinge.viscous", "theta.offset"], pendulum, known, ["theta.*"])
    assert found == {"hinge.viscous": Free(prior=1e-3), "theta.offset": Free(per_recording=True)}
    for wrong in ({"priors": {"hinge.dry": Free(prior=1.0)}}, {"each": ["hinge.d*"]}):
        with pytest.raises(OptionError, match="name it with --free as well"):
            free_parameters(["hinge.viscous"], pendulum, **wrong)


@pytest.mark.parametrize("text", ["", "=1", "a=", "a@", "a@1", "a@:", "a=x", "a@1:y", "a=1@"])
def test_free_parameters_that_are_not_written_right(text):
    with pytest.raises(OptionError, match="--free"):
        free_parameters([text], read_model("pendulum"))


def test_impulse_variances():
    """By body or component; one for all others."""
    pendulum = builtin.furuta()
    assert impulse_variances(pendulum, []) is None
    found = impulse_variances(pendulum, ["arm=10", "pendulum.ry=0.5"])
    assert found == [10.0] * 6 + [1.0, 1.0, 1.0, 1.0, 0.5, 1.0]
    with pytest.raises(OptionError, match="write BODY or BODY"):
        impulse_variances(pendulum, ["arm.yaw=2"])


def test_state_weight():
    assert state_weight("1e3") == 1000.0
    assert state_weight("auto") == "auto"
    for text in ("0", "-1", "nan", "many"):
        with pytest.raises(OptionError, match="--state-weight"):
            state_weight(text)


MISTAKES = {
    "unknown parameter": (("--free", "hinge.viscos"), "did you mean 'hinge.viscous'"),
    "unknown pattern": (("--free", "*.springs"), "has no parameter '*.springs'"),
    "start outside": (("--free", "hinge.viscous=2@0:1"), "outside its bounds [0, 1]"),
    "bounds": (("--free", "hinge.viscous@1:0"), "lower must be below upper"),
    "a setting": (("--free", "theta.std"), "is a setting"),
    "weight": (("--state-weight", "-3"), "--state-weight -3"),
    "residual": (("--residual", "explicit"), "implicit"),
    "iterations": (("--max-iterations", "0"), "--max-iterations"),
    "channel": (("--channel", "theta=beta"), "there is no column 'beta'"),
    "time-step": (("--timestep", "5"), "steps of 5 s; at least 3 are needed"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case, csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = MISTAKES[case]
    if case != "channel":
        arguments = ("--channel", "theta=alpha", *arguments)
    result = run("fit", "pendulum", csv, *arguments)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_result(tmp_path, csv):
    for arguments in (("report", tmp_path), ("validate", tmp_path, csv)):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "result.json is missing" in result.stderr


def test_a_part_of_a_recording_can_be_fitted(csv, tmp_path):
    result = run(
        *("fit", "pendulum", csv, "--channel", "theta=alpha", "--from", 0.495, "--to", 1.505, "--huber", 2.0),
        *("--json", "--quiet", "--out", tmp_path / "part"),
    )
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["recordings"][0]["samples"] == 101
    assert summary["settings"]["huber"] == 2.0


def test_a_part_without_samples_is_refused(csv, tmp_path):
    result = run("fit", "pendulum", csv, "--channel", "theta=alpha", "--from", 7, "--out", tmp_path / "none")
    assert result.exit_code == 2
    assert "0 samples lie between 7 and inf s" in result.output


def test_priors_in_per_cent_have_the_size_of_their_link():
    pendulum = read_model("pendulum")
    body = next(iter(pendulum.bodies))
    mass, moments = (
        pendulum.get(f"{body}.mass"),
        [pendulum.get(f"{body}.inertia.{axis}") for axis in ("xx", "yy", "zz")],
    )
    known = known_beforehand([f"{body}.inertial=10%", "theta.offset=0.2"], pendulum)
    assert len(known) == 11
    found = {name: free.prior for name, free in known.items()}
    assert found["theta.offset"] == 0.2
    assert found[f"{body}.mass"] == pytest.approx(0.1 * mass)
    assert found[f"{body}.com.y"] == pytest.approx(0.1 * (sum(moments) / (2.0 * mass)) ** 0.5)
    assert found[f"{body}.inertia.xy"] == found[f"{body}.inertia.zz"] == pytest.approx(0.1 * sum(moments) / 3.0)
    with pytest.raises(MechanismError, match=r"theta\.offset has no size of its own"):
        known_beforehand(["theta.offset=10%"], pendulum)
    with pytest.raises(OptionError, match="'ten' is not a number"):
        known_beforehand([f"{body}.mass=ten%"], pendulum)
    assert known_beforehand([f"{body}.inertial=entropic:30%"], pendulum) == {f"{body}.inertial": Free(entropic=0.3)}


def test_errors_of_a_result_of_a_file_and_of_the_model_are_believed(csv, fitted, tmp_path):
    """Levels that were found are given again: by the result's folder, as TOML, and in the model file."""
    _, earlier = fitted
    found = json.loads((earlier / "result.json").read_text("utf-8"))["errors"]
    noise = 2.0 * found["sensors"]["theta"]
    table = f"sensors.theta = {noise}\nforces.hinge = {found['forces']['hinge']}\n"
    file, model = tmp_path / "errors.toml", tmp_path / "machine.toml"
    file.write_text(table, "utf-8")
    model.write_text(f"{load_model('pendulum').text}\n[errors]\n{table}", "utf-8")
    for name, machine, given, level in (
        ("folder", "pendulum", ("--errors", earlier), found["sensors"]["theta"]),
        ("file", "pendulum", ("--errors", file), noise),
        ("model", model, (), noise),
    ):
        out = tmp_path / name
        again = run(
            *("fit", machine, csv, "--free", "hinge.visc*=1e-4@0:1", "--channel", "theta=alpha", "--out", out),
            *("--no-report", *given),
        )
        assert again.exit_code == 0, again.output
        errors = json.loads((out / "result.json").read_text("utf-8"))["errors"]
        assert errors["sensors"]["theta"] == pytest.approx(level)


def test_errors_that_cannot_be_read_are_named(csv, tmp_path):
    file = tmp_path / "errors.toml"
    file.write_text("sensors.theta = \n", "utf-8")
    for given in (file, tmp_path / "missing.toml"):
        result = run("fit", "pendulum", csv, "--channel", "theta=alpha", "--errors", given, "--out", tmp_path / "out")
        assert result.exit_code == 2
        assert str(given) in result.output.replace("\n", "")
