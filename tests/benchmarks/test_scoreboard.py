"""The scoreboard: cases in processes of their own, metrics as data, and what counts as worse."""

import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.peers import sticking, systems, truth
from benchmarks.scoreboard import board, groups, outcomes, page
from benchmarks.scoreboard.case import Case
from benchmarks.scoreboard.measure import Metric, Tolerance
from benchmarks.scoreboard.measures import real, right_wrong, robots, speed, stability, twins
from benchmarks.scoreboard.outcome import held_pairs
from benchmarks.scoreboard.programs import size
from benchmarks.scoreboard.table import table

TOLERANCE = Tolerance(absolute=0.1, relative=0.5)


@pytest.mark.parametrize(
    ("direction", "goal", "baseline", "worse", "better"),
    [
        ("lower", (None, None), 1.0, 1.6, 0.1),
        ("lower", (None, None), 0.1, 0.21, 0.0),
        ("higher", (None, None), 1.0, 0.4, 9.0),
        ("target", (0.9, 1.1), 2.0, 3.2, 1.0),
        ("target", (0.9, 1.1), 1.0, 1.7, 0.9),
        ("target", (None, 2.0), 1.0, 2.6, 2.4),
    ],
)
def test_only_what_is_worse_by_more_than_the_tolerance_is_beyond(direction, goal, baseline, worse, better):
    metric = Metric("key", "what it says", "", direction, goal, TOLERANCE)
    assert metric.beyond(worse, baseline, "full")
    assert not metric.beyond(better, baseline, "full")
    assert not metric.beyond(baseline, baseline, "full")


def test_a_value_that_is_missing_is_worse_than_any():
    metric = Metric("key", "what it says")
    assert metric.beyond(None, 1.0, "full")
    assert metric.beyond(math.inf, 1.0, "full")
    assert not metric.beyond(1.0, None, "full")


def test_numbers_to_read_are_never_beyond():
    assert not Metric("seconds", "time", "s", "report").beyond(1e9, 1.0, "full")


def test_the_quick_form_has_a_tolerance_of_its_own():
    metric = Metric("key", "what it says", tolerance=Tolerance(0.1), quick=Tolerance(1.0))
    assert metric.beyond(1.5, 1.0, "full")
    assert not metric.beyond(1.5, 1.0, "quick")


@pytest.mark.parametrize("name", groups.NAMES)
def test_metrics_come_back_from_json(name):
    metrics = [measure.metric for measure in groups.group(name).measures]
    assert [Metric.from_json(json.loads(json.dumps(metric.to_json()))) for metric in metrics] == metrics
    assert len({metric.key for metric in metrics}) == len(metrics)


@pytest.mark.parametrize("name", groups.NAMES)
def test_the_quick_form_is_part_of_the_full_one(name):
    group = groups.group(name)
    quick, full = ({case.name: case for case in group.cases(form)} for form in ("quick", "full"))
    assert quick
    assert quick.items() <= full.items()
    assert all(case.scenario in group.words() for case in full.values())


def test_a_scenario_can_be_asked_for_whatever_its_form():
    assert {case.scenario for case in groups.group("twins").cases("quick", ["arm"], seeds=2)} == {"arm"}
    assert len(groups.group("twins").cases("full", ["arm"], seeds=2)) == 2


def test_a_case_is_run_once_for_a_library_and_its_errors_are_outcomes(tmp_path):
    case, ran = Case("twins", "no such scenario", "seed 0"), []
    for _ in range(2):
        found = outcomes.run([case], tmp_path, told=lambda case, outcome: ran.append(case.name))
        assert "KeyError" in found[case.name]["error"]
    assert ran == [case.name]


def test_a_case_that_takes_too_long_is_ended(tmp_path):
    case = Case("twins", "pendulum-stick", "seed 0", limit=0.01)
    assert outcomes.run([case], tmp_path)[case.name] == {"error": "longer than 0.01 s"}


def test_a_run_that_is_stopped_ends_its_cases_and_keeps_nothing_of_them(tmp_path):
    cases = [Case("twins", "no such scenario", "seed 0"), Case("twins", "furuta-swing-up-stick", "seed 0")]

    def stops(case, outcome):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcomes.run(cases, tmp_path, 2, stops)
    first, second = (outcomes.kept(tmp_path, case, outcomes.digest()) for case in cases)
    assert "KeyError" in first["error"]
    assert second is None


def twin(values, std=1.0, interval=2.0, **more):
    rows = {
        name: {
            "value": value,
            "std": std,
            "truth": 0.0,
            "identifiable": True,
            "at_bound": False,
            "interval": [value - interval, value + interval],
        }
        for name, value in values.items()
    }
    return {"parameters": rows, "verdict": "green", "seconds": 1.0, "converged": True, **more}


def test_bars_as_wide_as_estimates_scatter():
    random = np.random.default_rng(0)
    found = {f"seed {i}": twin({"a": x}) for i, x in enumerate(random.standard_normal(400))}
    values = {measure.metric.key: measure.of(found) for measure in twins.MEASURES}
    assert values["bar/scatter"] == pytest.approx(1.0, abs=0.1)
    assert values["coverage"] == pytest.approx(95.0, abs=2.5)
    assert values["red"] == 0.0


def test_regions_of_pairs_hold_as_many_as_they_say():
    random = np.random.default_rng(0)
    root, rows = np.array([[1.0, 0.0], [1.8, 0.1]]), [SimpleNamespace(name=name, identifiable=True) for name in "ab"]
    held = []
    for _ in range(400):
        table = dict(zip("ab", root @ random.standard_normal((2, 400)), strict=True))
        draws = SimpleNamespace(to_dict=lambda table=table: table)
        estimate = SimpleNamespace(parameters=rows, draw=lambda *_, draws=draws, **__: draws)
        held += held_pairs(estimate, dict(zip("ab", root @ random.standard_normal(2), strict=True)))
    found = {"seed 0": {**twin({"a": 0.0}), "regions": held}}
    assert {measure.metric.key: measure.of(found) for measure in twins.MEASURES}["pairs"] == pytest.approx(
        95.0, abs=2.5
    )


def test_an_interval_without_an_end_holds_nothing():
    row = twin({"a": 0.0})
    row["parameters"]["a"]["interval"] = [-1.0, None]
    assert twins.coverage({"seed 0": row, "seed 1": {"error": "late"}}) == 0.0


def test_moves_ratios_and_choices_of_a_family():
    quiet = {"notices": [], "errors": [], "choices": {"time-step": "10 ms"}}
    other = {
        "notices": [["red", "off by 3.2 %"]],
        "errors": [["hinge", "speed", 0.1]],
        "choices": {"time-step": "5 ms"},
    }
    found = {
        "as it is": {**twin({"a": 1.0}, std=0.1), **quiet, "family": "reference"},
        "noise": {**twin({"a": 1.05}, std=0.3), **other, "family": "noise"},
        "clock": {"error": "late"},
    }
    values = {measure.metric.key: measure.of(found) for measure in stability.MEASURES}
    assert values["noise: move"] == pytest.approx(0.5)
    assert values["noise: bars"] == pytest.approx(3.0)
    # A sentence, a named error; 5 and 10 ms are within a factor of two.
    assert values["noise: choices"] == 2
    assert values["rounding: move"] is None


def board_of(**values):
    group = groups.group("twins")
    metrics = [measure.metric.to_json() for measure in group.measures]
    row = {"says": "a pendulum", "commit": "abc", "cases": 4, "values": values}
    about = {"twins": {"says": group.says, "program": "twins", "metrics": metrics}}
    return {"groups": about, "quick": {"twins": {"pendulum-stick": row}}, "full": {}}


def test_a_run_of_some_scenarios_leaves_the_others_in_the_board():
    old = board_of(coverage=95.0)
    new = board_of(coverage=80.0)
    new["quick"]["twins"] = {"arm": new["quick"]["twins"]["pendulum-stick"]}
    assert set(board.merged(old, new)["quick"]["twins"]) == {"pendulum-stick", "arm"}


def test_table_and_page_name_what_is_beyond_its_tolerance():
    now, baseline = board_of(coverage=50.0, red=0.0), board_of(coverage=95.0, red=25.0)
    lines = list(board.compared(now, baseline, "quick"))
    assert {line.metric.key: line.beyond for line in lines} == {"coverage": True, "red": False}
    assert table(lines).count("BEYOND") == 1
    text = page.text(baseline, now)
    assert "**50** (95)" in text
    assert "0 (25)" in text


def test_a_board_reads_back_as_written(tmp_path):
    board.write(tmp_path / "board.json", board_of(coverage=95.0))
    assert board.read(tmp_path / "board.json") == board_of(coverage=95.0)


def test_exact_friction_takes_its_level_times_the_way_and_stops():
    """From one turning point to the next the weight's energy falls by Coulomb's torque times the angle."""
    level, times = 0.02, 1e-3 * np.arange(12_001)
    numbers = {"hinge.viscous": 0.0, "hinge.coulomb": level}
    states = sticking.advance(systems.PENDULUM, numbers, np.array([2.5, 0.0]), np.zeros(0), times)
    p = systems.PENDULUM.parameters({})
    weight = p["pendulum.mass"] * systems.GRAVITY * p["pendulum.centre"]
    inertia = p["pendulum.inertia.yy"] + p["pendulum.mass"] * p["pendulum.centre"] ** 2
    energy = 0.5 * inertia * states[:, 1] ** 2 - weight * np.cos(states[:, 0])
    # Between two samples of one direction the way is the difference of angles.
    same = states[:-1, 1] * states[1:, 1] > 0.0
    lost, way = -np.diff(energy)[same], np.abs(np.diff(states[:, 0]))[same]
    np.testing.assert_allclose(lost, level * way, atol=1e-10)
    assert states[-1, 1] == 0.0
    assert weight * abs(np.sin(states[-1, 0])) < level


def test_exact_friction_is_the_limit_of_friction_that_creeps():
    times, start = 2e-3 * np.arange(1001), np.array([1.0, 0.0])
    numbers = {"hinge.coulomb": 0.0}
    smooth = truth.advance(systems.PENDULUM, numbers, start, np.zeros(0), times)
    exact = sticking.advance(systems.PENDULUM, numbers, start, np.zeros(0), times)
    np.testing.assert_allclose(exact, smooth, atol=1e-9)


def simulated(error, best):
    row = {"kind": "fitted", "recording": "a", "sensor": "hinge", "error": error, "output error": best}
    return {**twin({"a": 0.0}), "noise": {"hinge": 0.1}, "pairs": [], "simulated": [row]}


def test_simulations_are_compared_with_the_output_error():
    assert real.ratios({"all": simulated(0.3, 0.2)}, "fitted") == {"a": pytest.approx(1.5)}
    assert real.ratios({"all": simulated(None, 0.2)}, "fitted") == {"a": None}


def test_fits_of_a_pair_are_compared_once():
    names = [["halves", "halves"]]
    found = {"first": {**twin({"a": 1.0}), "pairs": names}, "second": {**twin({"a": 3.0}), "pairs": names}}
    values = {measure.metric.key: measure.of(found) for measure in real.MEASURES}
    assert values["z, halves"] == pytest.approx(np.sqrt(2.0))
    assert values["z, signs"] is None
    assert values["z below 3"] == 100.0


def test_rows_without_recordings_are_marked_and_never_fail(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "SHADOWFIT_DATA"}
    command = [sys.executable, "-m", "benchmarks.scoreboard", "real", "single", "--quick", "--folder", str(tmp_path)]
    run = subprocess.run(command, cwd=outcomes.ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "real/single" in run.stdout
    assert "no data" in run.stdout


def said(wrong, *warnings, named=(), validate="green"):
    """What ``check`` and ``fit`` say of an estimate that is nine bars off: severities and sentences of the fit."""
    fit = min((severity for severity, _ in warnings), key=["red", "amber"].index, default="green")
    says = {
        "check": {"colour": "green", "notices": []},
        "fit": {"colour": fit, "notices": [list(one) for one in warnings]},
        "validate": {"colour": validate, "notices": []},
    }
    return {**twin({"a": 9.0}), "wrong": wrong, "says": says, "named": list(named)}


def test_a_mistake_is_seen_by_a_sentence_that_the_right_one_does_not_have():
    found = {
        "right, seed 0": said(False, ("amber", "drag of 3.1 is hardly told")),
        "as usual": said(True, ("amber", "drag of 2.7 is hardly told"), named=["drag of 2.7 is hardly told"]),
        "seen": said(True, ("amber", "the sign of u"), named=["the sign of u"]),
        "red": said(True, ("red", "drag of 2.7 is hardly told")),
        "late": {"error": "longer than 300 s"},
    }
    values = {measure.metric.key: measure.of(found) for measure in right_wrong.MEASURES}
    assert (values["right, red"], values["right, green"]) == (0.0, 0.0)
    assert values["wrong, seen"] == pytest.approx(200.0 / 3.0)
    assert values["wrong, named"] == pytest.approx(100.0 / 3.0)
    assert (values["misled"], values["contradictions"]) == (1.0, 1.0)


def test_times_are_told_by_a_yardstick_of_the_same_run():
    values = {measure.metric.key: measure.of({"run": {"ours": 3.0, "theirs": 2.0}}) for measure in speed.MEASURES}
    assert values["ratio"] == pytest.approx(1.5)
    assert speed.MEASURES[0].of({"run": {"error": "late"}}) is None


def test_numbers_set_by_hand_are_those_that_neither_algebra_nor_places_ask_for():
    text = "LIMIT = 30.0\ny = 0.5 * x[3] ** 2 - 1 + x[:, 4:7]\ndef f(n=11): return n > 1e-3 and True\n"
    assert sorted(size.numbers(text)) == [1e-3, 11.0, 30.0]
    assert list(size.constants("LIMIT, MORE = 3.0, -1\nNAME = 'x'\nsmall = 4\n")) == ["LIMIT", "MORE"]


def test_halves_are_compared_on_their_bounds_too():
    """A parameter on its bound has the half of its one-sided interval for a bar."""
    first, second = ({**twin({"a": value}), "pairs": [["halves", "halves"]]} for value in (0.0, 3.0))
    first["parameters"]["a"] |= {"std": None, "interval": [0.0, 1.96 * 4.0], "at_bound": True}
    second["parameters"]["a"] |= {"std": 3.0}
    assert robots.differences({"first half": first, "second half": second}) == {"a": pytest.approx(3.0 / 5.0)}


def test_torques_are_compared_with_least_squares_and_bases_with_what_was_published():
    fit = {**twin({"a": 0.0}), "iterations": 7, "torque error": 6.0, "bases": [["a + b", 1.0, 1.5, 0.25]]}
    found = {"first 70 %": fit, "least squares": {"least squares": 8.0}}
    values = {measure.metric.key: measure.of(found) for measure in robots.MEASURES}
    assert values["over least squares"] == pytest.approx(0.75)
    assert (values["bases, z"], values["bases within 3"]) == (pytest.approx(2.0), 100.0)
    assert values["z, halves"] is None
