"""What the page shows of a fit that goes on, and of runs side by side, from the files that a fit keeps."""

import json

import pytest

from shadowfit.evaluation.columns import write_csv
from shadowfit.projects.runs import Run
from shadowfit.web.comparison import comparison
from shadowfit.web.course import cost_chart, course, newest_values, parameter_chart

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
    (run.result / "unfinished.json").write_text(json.dumps(live))
    found = course(run)
    assert found["number"] == [0, 1]
    costs = {one["name"]: one["data"] for one in cost_chart(found)["series"]}
    assert costs == {"cost": [[0, 2.0], [1, 1.0]], "dynamics": [[0, 1.5]], "observation": [[0, 0.5], [1, 1.0]]}
    (relative,) = parameter_chart(found)["series"]
    assert relative["data"] == [[0, 0.5], [1, 1.0]]
    assert "&lt;b&gt;</span> 2 → <b>4</b>" in newest_values(found)


def test_after_it(run):
    columns = {key: [entry[key] for entry in LOG] for key in ("number", "cost", "dynamics", "observation")}
    write_csv(run.result / "log.csv", {**columns, "seconds": [0.1, 0.1], "hinge.viscous": [1.0, 3.0]})
    assert course(run)["parameters"] == {"hinge.viscous": [1.0, 3.0]}


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
