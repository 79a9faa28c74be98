"""Results on disk: everything comes back, the calibrated model is usable, failed and interrupted fits are kept."""

import contextlib
import dataclasses
import json
import os
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from shadowfit.estimation import Status
from shadowfit.evaluation import load_result, save_estimate, write_report
from shadowfit.evaluation.rollout import start_states
from shadowfit.evaluation.store import ResultError, blamed, recording_names
from shadowfit.models import load_model


def test_the_summary_has_the_documented_fields(saved, estimate, truth):
    summary = saved.summary
    assert summary["converged"] is True
    assert summary["status"] in ("gradient", "step", "decrease")
    assert summary["cost"] == estimate.cost
    assert summary["cost_dynamics"] + summary["cost_observation"] == pytest.approx(summary["cost"], rel=1e-12)
    assert set(summary["seconds"]) == {"total", "initial", "compile", "solve"}
    for name, value in truth.items():
        row = summary["parameters"][name]
        assert set(row) == {
            *("value", "std", "unit", "start", "lower", "upper", "at_bound", "identifiable", "truth"),
            *("interval", "one_sided", "prior_std", "from_prior"),
        }
        assert abs(row["value"] - value) < 5.0 * row["std"]
    assert summary["recordings"][0]["fingerprint"] == estimate.problem.tracks[0].recording.fingerprint
    assert summary["recordings"][0]["sensors"]["theta"]["rmse"] == pytest.approx(1e-3, rel=0.2)
    assert summary["settings"]["optimiser"]["max_iterations"] == 200


def test_the_json_is_strict(saved):
    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    text = (saved.folder / "result.json").read_text("utf-8")
    assert json.loads(text, parse_constant=refuse) == saved.summary


def test_arrays_come_back(saved, estimate):
    assert saved.labels == tuple(row.name for row in estimate.parameters)
    np.testing.assert_array_equal(saved.covariance, estimate.uncertainty().covariance)
    time, states = saved.states["swing"]
    expected = estimate.trajectory().states
    np.testing.assert_array_equal(time, estimate.trajectory().time)
    np.testing.assert_array_equal(states.pose.position, expected.pose.position)
    np.testing.assert_array_equal(states.velocity, start_states(estimate).velocity)


def test_the_log_ends_at_the_estimate(saved, estimate):
    assert saved.log["number"].tolist() == list(range(len(estimate.log)))
    assert saved.log["cost"][-1] == pytest.approx(estimate.cost, rel=1e-10)
    np.testing.assert_allclose(
        [saved.log[row.name][-1] for row in estimate.parameters], [row.value for row in estimate.parameters], rtol=1e-10
    )


def test_the_trajectory_table(saved, recording):
    table = saved.tables["swing"]
    np.testing.assert_allclose(table["time [s]"], recording.time, atol=1e-9)
    np.testing.assert_allclose(table["theta.measured [rad]"], recording.channel("theta"), atol=1e-11)
    residual = table["theta.estimated [rad]"] - table["theta.measured [rad]"]
    np.testing.assert_allclose(table["theta.residual [rad]"], residual, atol=1e-10)
    np.testing.assert_allclose(table["hinge.position [rad]"], table["theta.estimated [rad]"], atol=1e-10)
    rollout = table["theta.rollout [rad]"] - table["theta.measured [rad]"]
    assert np.sqrt(np.mean(rollout**2)) < 0.01, "the model was simulated with the parameters that made the data"


def test_the_calibrated_model(saved, estimate):
    mechanism = saved.mechanism()
    assert all(mechanism.get(name) == value for name, value in estimate.values.items())
    text = (saved.folder / "model.toml").read_text("utf-8")
    assert "# A rod that swings about a horizontal hinge" in text, "the file's own comments stay"


def with_outcome(estimate, **changes):
    return dataclasses.replace(estimate, outcome=dataclasses.replace(estimate.outcome, **changes))


def test_an_interrupted_fit_is_saved(estimate, tmp_path):
    stopped = with_outcome(estimate, status=Status.INTERRUPTED, log=estimate.log[:2])
    summary = save_estimate(stopped, tmp_path / "stopped")
    assert (summary["status"], summary["converged"], summary["iterations"]) == ("interrupted", False, 1)
    result = load_result(tmp_path / "stopped")
    assert not result.converged
    assert "was interrupted" in write_report(result).read_text("utf-8")


def test_a_fit_that_failed_at_once_is_saved(estimate, tmp_path):
    linearisation = estimate.outcome.linearisation
    nothing = jax.tree.map(lambda x: np.full_like(x, np.nan), linearisation.point.nodes)
    point = dataclasses.replace(linearisation.point, nodes=nothing)
    broken = dataclasses.replace(
        linearisation, point=point, cost=dataclasses.replace(linearisation.cost, dynamics=(np.nan,))
    )
    failed = with_outcome(estimate, linearisation=broken, status=Status.NUMERICS, log=())
    failed.__dict__["information"] = np.full((2, 2), np.nan)
    summary = save_estimate(failed, tmp_path / "failed")
    assert summary["cost"] is None
    assert not any(row["identifiable"] for row in summary["parameters"].values())
    assert "failed numerically" in write_report(load_result(tmp_path / "failed")).read_text("utf-8")


def test_the_model_is_the_fitted_one_with_any_moment_of_inertia(estimate, tmp_path):
    """Held moments that this motion cannot see give way to the estimated one, and that is said."""
    linearisation = estimate.outcome.linearisation
    values = linearisation.point.values
    point = dataclasses.replace(
        linearisation.point, values=dataclasses.replace(values, numbers=np.array([0.5, *values.numbers[1:]]))
    )
    odd = with_outcome(estimate, linearisation=dataclasses.replace(linearisation, point=point))
    summary = save_estimate(odd, tmp_path / "odd", model_text=load_model("pendulum").text)
    told = [notice["text"] for notice in summary["notices"]]
    assert any("pendulum.inertia.zz = 0.2517" in text and "without effect on this motion" in text for text in told)
    mechanism = load_result(tmp_path / "odd").mechanism()
    assert mechanism.get("pendulum.inertia.yy") == summary["parameters"]["pendulum.inertia.yy"]["value"] == 0.5
    assert mechanism.get("pendulum.inertia.zz") == summary["bodies"]["followers"]["pendulum.inertia.zz"]
    assert mechanism.get("hinge.viscous") == estimate.values["hinge.viscous"]


def test_names_of_recordings(estimate):
    def renamed(*names):
        tracks = [
            dataclasses.replace(estimate.problem.tracks[0], recording=dataclasses.replace(recording, name=name))
            for name in names
        ]
        return dataclasses.replace(estimate, problem=dataclasses.replace(estimate.problem, tracks=tuple(tracks)))

    recording = estimate.problem.tracks[0].recording
    assert recording_names(renamed("a/b c", "run", "Run", "run", "..")) == [
        "a_b_c",
        "run",
        "Run_2",
        "run_3",
        "recording",
    ]


@pytest.mark.parametrize("damage", ["missing folder", "missing table", "no json", "other schema", "cut archive"])
def test_a_damaged_result_is_named(saved, tmp_path, damage):
    folder = tmp_path / "copy"
    if damage != "missing folder":
        folder.mkdir()
        for file in saved.folder.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
    if damage == "missing table":
        (folder / "trajectory_swing.csv").unlink()
    elif damage == "no json":
        (folder / "result.json").write_text("{")
    elif damage == "other schema":
        (folder / "result.json").write_text('{"schema": "else"}')
    elif damage == "cut archive":
        (folder / "state.npz").write_bytes((folder / "state.npz").read_bytes()[:100])
    with pytest.raises(ResultError, match="copy"):
        load_result(folder)


FILES_READ = ("result.json", "model.toml", "log.csv", "state.npz", "trajectory_swing.csv", "manifest.json")


@pytest.fixture
def copied(saved, tmp_path):
    return Path(shutil.copytree(saved.folder, tmp_path / "copy"))


@pytest.mark.parametrize("name", FILES_READ)
@pytest.mark.parametrize("how", ["one digit", "cut", "missing", "a pipe"])
def test_a_file_that_is_not_the_fits_is_named(copied, name, how):
    path = copied / name
    content = path.read_bytes()
    if how == "one digit":
        place = next(i for i in range(len(content) // 2, len(content)) if content[i : i + 1].isdigit())
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
        if how == "a pipe":
            os.mkfifo(path)
    # A digest that was changed is one of another file.
    with pytest.raises(ResultError, match="not as the fit wrote" if path.name == "manifest.json" else name):
        load_result(copied)


def test_a_file_of_another_run_is_named(copied, estimate, tmp_path):
    shorter = with_outcome(estimate, log=estimate.outcome.log[:-1])
    save_estimate(shorter, tmp_path / "other")
    shutil.copy(tmp_path / "other" / "log.csv", copied / "log.csv")
    with pytest.raises(ResultError, match=r"log\.csv: not as the fit wrote it: .* of another run; .* --force"):
        load_result(copied)
    assert load_result(copied, force=True).changed == ("log.csv",)


def test_results_of_earlier_versions_are_read(copied):
    summary = json.loads((copied / "result.json").read_text())
    del summary["manifest"]
    (copied / "result.json").write_text(json.dumps(summary))
    (copied / "manifest.json").unlink()
    assert load_result(copied).changed == ()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_stands_in_a_changed_result_there_is_no_traceback(copied, seed):
    """Values of any type in any place of the summary, used all the same."""
    random = np.random.default_rng(seed)
    sound = json.loads((copied / "result.json").read_text())
    junk = [None, -1, 1e308, "x" * 50, [], {}, [[1]], {"a": []}, True]
    answers = 0
    for _ in range(12):
        changed = json.loads(json.dumps(sound))
        place, steps = changed, int(random.integers(1, 4))
        for step in range(steps):
            keys = list(place) if isinstance(place, dict) else range(len(place))
            if not keys:
                break
            key = keys[int(random.integers(len(keys)))]
            if step == steps - 1 or not isinstance(place[key], dict | list) or not place[key]:
                place[key] = junk[int(random.integers(len(junk)))]
                break
            place = place[key]
        (copied / "result.json").write_text(json.dumps(changed))
        with contextlib.suppress(ResultError):
            forced = load_result(copied, force=True)
            with blamed(forced):
                write_report(forced)
                answers += 1
    assert answers > 0
