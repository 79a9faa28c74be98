"""Quantities that follow from parameters: error bars by the delta method, in the result and in the report."""

import numpy as np
import pytest

from shadowfit.evaluation import load_result, save_estimate
from shadowfit.evaluation.derived import derived, read_expressions
from shadowfit.evaluation.report import page
from shadowfit.models.expressions import ExpressionError, parse_expression

QUANTITIES = {
    "inertia": "pendulum.inertia.yy",
    "twice": "2 * hinge.viscous + 1",
    "time": "pendulum.inertia.yy / hinge.viscous",
    "period": "2 * pi * sqrt(pendulum.inertia.yy / (pendulum.mass * 9.81))",
    "fixed": "pendulum.mass * 2",
}


@pytest.fixture(scope="module")
def rows(estimate):
    expressions = read_expressions(QUANTITIES, estimate.mechanism())
    return derived(estimate, expressions)


def test_a_parameter_itself_has_its_own_error_bars(rows, estimate):
    spread = estimate.uncertainty("robust")
    place = spread.labels.index("pendulum.inertia.yy")
    assert rows["inertia"]["value"] == spread.values[place]
    assert rows["inertia"]["std"] == pytest.approx(spread.std[place], rel=1e-12)
    own = spread.intervals()[place]
    assert rows["inertia"]["interval"] == pytest.approx([own.lower, own.upper], rel=1e-9)


def test_a_linear_function_scales_them(rows, estimate):
    spread = estimate.uncertainty("robust")
    assert rows["twice"]["std"] == pytest.approx(2 * spread.std[spread.labels.index("hinge.viscous")], rel=1e-12)
    assert rows["fixed"]["std"] == 0.0


def test_a_ratio_knows_the_correlation(rows, estimate):
    """The spread of a ratio over many draws from the joint covariance."""
    spread = estimate.uncertainty("robust")
    draws = np.random.default_rng(0).multivariate_normal(spread.values, spread.covariance, 200_000)
    inertia, viscous = (draws[:, spread.labels.index(name)] for name in ("pendulum.inertia.yy", "hinge.viscous"))
    share = spread.std / spread.values
    assert np.all(share < 0.05), "so small that the delta method is right to a few per cent"
    assert rows["time"]["std"] == pytest.approx(np.std(inertia / viscous), rel=0.02)
    assert rows["time"]["value"] == pytest.approx(spread.values[0] / spread.values[1], rel=1e-12)


def test_units_follow_from_those_of_the_parameters(rows):
    units = {name: row["unit"] for name, row in rows.items()}
    assert units == {"inertia": "kg m²", "twice": None, "time": "s", "period": None, "fixed": "kg"}


def test_a_unit_may_be_stated(estimate):
    expressions = read_expressions({"period [s]": QUANTITIES["period"]}, estimate.mechanism())
    assert list(expressions) == ["period"]
    assert derived(estimate, expressions)["period"]["unit"] == "s"


def test_in_the_result_and_the_report(estimate, tmp_path):
    expressions = read_expressions({"period [ms]": QUANTITIES["period"]}, estimate.mechanism())
    summary = save_estimate(estimate, tmp_path, derived=expressions)
    assert summary["derived"]["period"]["expression"] == QUANTITIES["period"]
    text = page(load_result(tmp_path))
    assert 'id="derived"' in text
    assert f"{summary['derived']['period']['value']:.6g}" in text
    assert "<td>ms</td>" in text


def test_a_quantity_without_a_value_is_no_loss(estimate):
    row = derived(estimate, {"x": parse_expression("log(hinge.viscous - 1)")})["x"]
    assert row["value"] is None
    assert "has no value here" in row["problem"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hinge.viscos", "did you mean 'hinge.viscous'"),
        ("gravity.tilt * 2", "is a rotation"),
        ("log(hinge.viscous - 1)", "has no value here"),
        ("hinge.viscous +", "not an expression"),
    ],
)
def test_mistakes_are_found_before_the_fit(text, message, estimate):
    with pytest.raises(ExpressionError, match=message):
        read_expressions({"x": text}, estimate.mechanism())
