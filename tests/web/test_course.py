"""What the page shows of a fit that goes on, and of runs side by side, from the files that a fit keeps."""

import json

import numpy as np
import pytest

from shadowfit.evaluation.checkpoint import MOST_POINTS, largest_parts
from shadowfit.evaluation.columns import write_csv
from shadowfit.projects.project import Part
from shadowfit.projects.runs import Run
from shadowfit.web.comparison import comparison
from shadowfit.web.course import cost_chart, course, newest_values, parameter_chart, residual_chart
from shadowfit.web.views import unused

LOG = [
    {"number": 0, "cost": 2.0, "dynamics": 1.5, "observation": 0.5, "step": None, "seconds": 0.1},
    {"number": 1, "cost": 1.0, "dynamics": 0.0, "observation": 1.0, "step": 0.2, "seconds": 0.1},
]


@pytest.fixture
def run(tmp_path):
    (tmp_path / "result").mkdir()
    return Run(tmp_path, 1, "fit", ("fit", "pendulum"), 0, 0.0)


def test_before_the_first_iteration(run):
    assert course(run) == {}
    assert all(one["data"] == [] for one in cost_chart({})["series"])
    assert newest_values({}) == '<div class="newest-values"></div>'


def test_while_it_goes_on(run):
    live = {"log": LOG, "parameters": {"<b>": 4.0}, "traces": {"<b>": [2.0, 4.0], "zero": [1.0, 0.0]}}
    live["residuals"] = [{"name": "theta", "time": [0.0, 0.1], "left": [1.5, None]}]
    (run.result / "unfinished.json").write_text(json.dumps(live))
    found = course(run)
    assert found["number"] == [0, 1]
    costs = {one["name"]: one["data"] for one in cost_chart(found)["series"]}
    assert costs == {"cost": [[0, 2.0], [1, 1.0]], "dynamics": [[0, 1.5]], "observation": [[0, 0.5], [1, 1.0]]}
    (relative,) = parameter_chart(found)["series"]
    assert relative["data"] == [[0, 0.5], [1, 1.0]]
    assert "&lt;b&gt;</span> 2 → <b>4</b>" in newest_values(found)
    (curve,) = residual_chart(found)["series"]
    assert (curve["name"], curve["data"]) == ("theta", [[0.0, 1.5], [0.1, None]])


def test_after_it(run):
    columns = {key: [entry[key] for entry in LOG] for key in ("number", "cost", "dynamics", "observation")}
    write_csv(run.result / "log.csv", {**columns, "seconds": [0.1, 0.1], "hinge.viscous": [1.0, 3.0]})
    assert course(run)["parameters"] == {"hinge.viscous": [1.0, 3.0]}
    assert course(run)["residuals"] == []
    summary = {"model": {"sensors": {"theta": {"std": 0.5, "unit": "rad"}, "camera": {"std": 2.0, "unit": "m"}}}}
    (run.result / "result.json").write_text(json.dumps(summary))
    table = {"time [s]": [0.0, 0.1], "theta.residual [rad]": [1.0, -1.0], "camera.x.residual [m]": [4.0, 0.0]}
    write_csv(run.result / "trajectory_swing.csv", {**table, "u [V]": [1.0, 2.0]})
    curves = {own["name"]: own["left"] for own in course(run)["residuals"]}
    assert curves == {"theta": [2.0, -2.0], "camera.x": [2.0, 0.0]}


def test_curves_keep_their_outliers():
    values = np.zeros(5000)
    values[1234], values[77] = -9.0, np.nan
    time, left = largest_parts(np.arange(5000.0), values)
    assert len(time) == len(left) <= MOST_POINTS
    assert left.min() == -9.0
    assert np.isfinite(left).all()


@pytest.mark.parametrize(
    ("windows", "gaps"),
    [
        ([(None, None)], []),
        ([(1.0, 2.0)], [(None, 1.0), (2.0, None)]),
        ([(3.0, None), (0.5, 2.0)], [(None, 0.5), (2.0, 3.0)]),
        ([(None, 2.0), (1.0, None)], []),
        ([], []),
    ],
)
def test_what_no_part_uses_is_grey(windows, gaps):
    assert unused([Part((), *window) for window in windows]) == gaps


def row(value, std):
    ends = None if std is None else [value - std, value + std]
    return {"value": value, "interval": ends, "unit": "kg", "at_bound": std is None, "identifiable": True}


def test_runs_side_by_side():
    page = comparison(
        {2: {"parameters": {"<m>": row(1.0, 0.5)}}, 1: {"parameters": {"<m>": row(2.0, None), "n": row(3.0, 1.0)}}}
    )
    assert "<m>" not in page
    assert page.count("<circle") == 3
    assert page.count("<line") == 2
    assert "run 2" in page
    assert "at bound" in page
    assert "No parameter" in comparison({1: {"parameters": {}}})
