"""Results: the parameter table, uncertainty, bounds, costs and trajectories."""

import numpy as np
import pytest

from estimation.scenes import all_rows, problem_of, twin
from shadowfit.estimation import Free, LevenbergMarquardt, fit
from shadowfit.estimation.fit import solve
from shadowfit.models import builtin

pytestmark = pytest.mark.slow

PENDULUM = builtin.pendulum()
AWAY = {"pendulum.inertia.yy": 0.01, "hinge.viscous": 1e-3, "hinge.dry": 5e-4}


@pytest.fixture(scope="module")
def recording():
    return twin(PENDULUM, {"hinge": 2.5}, 200, noise=1e-3)


@pytest.fixture(scope="module")
def estimate(recording):
    return solve(problem_of(PENDULUM, recording, AWAY), LevenbergMarquardt())


def test_rows_carry_what_was_asked_and_found(estimate):
    rows = {row.name: row for row in estimate.parameters}
    assert list(rows) == list(AWAY)
    inertia = rows["pendulum.inertia.yy"]
    assert inertia.unit == "kg m²"
    assert inertia.start == 0.01
    assert inertia.lower == pytest.approx(1e-5)
    assert inertia.upper > 1.0
    assert inertia.identifiable
    assert not inertia.at_bound
    assert abs(inertia.value - PENDULUM.get("pendulum.inertia.yy")) < 6 * inertia.std
    assert estimate.mechanism().get("pendulum.inertia.yy") == inertia.value


def test_covariance_is_the_inverse_of_the_full_information(estimate):
    rows = all_rows(estimate.problem, estimate.outcome.linearisation.point, estimate.weights)
    basis, _ = np.linalg.qr(rows.states)
    left = (rows.parameters - basis @ (basis.T @ rows.parameters)) / estimate.weights.reference
    expected = np.linalg.inv(left.T @ left)
    std = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(estimate.covariance / np.outer(std, std), expected / np.outer(std, std), atol=1e-5)
    np.testing.assert_allclose([row.std for row in estimate.parameters], std, rtol=1e-5)


def test_costs_are_per_step_and_add_up(estimate):
    assert estimate.steps == 201
    assert estimate.cost == pytest.approx(estimate.outcome.linearisation.cost.total / 201)
    assert estimate.cost_dynamics + estimate.cost_observation == pytest.approx(estimate.cost, rel=1e-2)
    # Observations are left over by about their noise, which is one sensor's variance a step.
    assert estimate.cost_observation == pytest.approx(1e-6, rel=0.5)


def test_parameters_on_a_bound_are_flagged_and_do_not_count_as_uncertain(recording):
    bounded = fit(PENDULUM, recording, {**AWAY, "pendulum.inertia.yy": Free(0.01, 0.006, 0.02)})
    flags = {row.name: row.at_bound for row in bounded.parameters}
    assert flags["pendulum.inertia.yy"]
    assert np.isnan(bounded.parameters[0].std)
    np.testing.assert_array_equal(bounded.covariance[0], 0.0)
    assert "at bound" in bounded.summary()


def test_trajectory_follows_the_readings(estimate, recording):
    found = estimate.trajectory()
    np.testing.assert_allclose(found.time, recording.time)
    assert np.std(found.readings["theta"] - recording.channels["theta"]) < 2e-3
    turned = np.gradient(found.readings["theta"], found.time)[5:-5]
    speed = np.asarray(found.states.velocity)[5:-5, 0, 3]
    np.testing.assert_allclose(np.abs(speed), np.abs(turned), atol=0.05)


def test_summary_says_how_it_ended_and_what_was_found(estimate):
    text = estimate.summary()
    assert text.startswith(estimate.status.value)
    for name in AWAY:
        assert name in text
    assert "kg m²" in text


def test_seconds_add_up(estimate):
    assert estimate.seconds.total == pytest.approx(estimate.seconds.initial + estimate.seconds.solve, rel=0.05)
