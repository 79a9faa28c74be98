"""Results: the parameter table, uncertainty, bounds, costs and trajectories."""

import numpy as np
import pytest

from dynamics.scenes import with_joints
from estimation.scenes import POSES, STEPPER, all_rows, problem_of, twin
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.estimation.fit import solve
from shadowfit.mechanism import Mechanism, ball
from shadowfit.mechanism.body import Body
from shadowfit.models import builtin

PENDULUM = builtin.pendulum()


def stiff(mechanism):
    return with_joints(mechanism, compliance=1e-8)


AWAY = {"pendulum.inertia.yy": 0.01, "hinge.viscous": 1e-3, "hinge.dry": 5e-4}


@pytest.fixture(scope="module")
def recording():
    """A hundred steps: dense matrices of twice as many take eight times as long."""
    return twin(PENDULUM, {"hinge": 2.5}, 100, noise=1e-3)


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


def projected(rows):
    """Rows of the parameters without what the states can follow, and the states' share of every residual."""
    basis, _ = np.linalg.qr(rows.states)
    return rows.parameters - basis @ (basis.T @ rows.parameters), np.sum(basis**2, axis=1)


def assert_same_covariance(actual, expected, tolerance=1e-8):
    std = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(actual / np.outer(std, std), expected / np.outer(std, std), atol=tolerance)


@pytest.mark.parametrize("state_weight", [1e2, 1e7])
def test_covariance_is_the_inverse_of_the_full_information(recording, state_weight):
    estimate = fit(PENDULUM, recording, AWAY, options=Options(**POSES, state_weight=state_weight))
    rows = all_rows(estimate.problem, estimate.outcome.linearisation.point, estimate.weights)
    left, _ = projected(rows)
    expected = np.linalg.inv(left.T @ left) * estimate.weights.reference**2
    assert_same_covariance(estimate.uncertainty("gauss-newton").covariance, expected)
    std = [row.std for row in estimate.table("gauss-newton")]
    np.testing.assert_allclose(std, np.sqrt(np.diagonal(expected)), rtol=1e-8)


def test_residual_covariances_equal_the_dense_computation(estimate):
    rows = all_rows(estimate.problem, estimate.outcome.linearisation.point, estimate.weights)
    left, share = projected(rows)
    inverse = np.linalg.inv(left.T @ left)
    steps = estimate.steps
    table, residual = left[: 7 * steps].reshape(steps, 7, 3), rows.residual[: 7 * steps].reshape(steps, 7)
    start = left[7 * steps :]
    basis, _ = np.linalg.qr(np.hstack([rows.states, rows.parameters]))
    hat = (basis @ basis.T)[: 7 * steps, : 7 * steps].reshape(steps, 7, steps, 7)
    taken = np.einsum("kikj->ij", hat)
    meat = estimate.weights.reference**2 * start.T @ start
    plain = meat.copy()
    for own in (slice(0, 6), slice(6, 7)):
        squares = residual[:, own].T @ residual[:, own]
        values, vectors = np.linalg.eigh(steps * np.eye(len(squares)) - taken[own, own])
        seen = values > 1e-4 * steps
        root = (vectors[:, seen] / np.sqrt(values[seen])) @ vectors[:, seen].T
        rest = vectors[:, ~seen]
        spread = root @ squares @ root + estimate.weights.reference**2 * rest @ rest.T
        meat += np.einsum("kip,ij,kjq->pq", table[:, own], spread, table[:, own])
        plain += np.einsum("kip,ij,kjq->pq", table[:, own], squares / (steps - 1), table[:, own])
    assert_same_covariance(estimate.uncertainty("residual").covariance, inverse @ meat @ inverse)
    assert_same_covariance(estimate.uncertainty("paper").covariance, inverse @ plain @ inverse)
    projection = estimate.evidence.projections[0]
    np.testing.assert_allclose(projection.leverages.each.ravel(), share[: 7 * steps], atol=1e-8)
    # Everything that is left over: samples less the two free numbers of the first state and the parameters.
    assert sum(noise.degrees for noise in estimate.evidence.noise) == pytest.approx(steps - 2 - 3, abs=1e-3)


@pytest.mark.slow
def test_residuals_of_several_samples_in_a_step_belong_to_their_sensors():
    """Two encoders, five samples in each step: the groups' squares are the sensors' shares of the cost."""
    twin_of = twin(builtin.furuta(friction=False), {"hinge2": 0.4}, 200, timestep=2e-3, noise=1e-3)
    mechanism = builtin.furuta(friction=False).set({"theta1.std": 1e-3, "theta2.std": 4e-3})
    found = fit(mechanism, twin_of, ["hinge1.viscous"], options=Options(**STEPPER, timestep=0.01))
    here = found.outcome.linearisation
    squares = [float(np.trace(noise.squares)) for noise in found.evidence.noise]
    np.testing.assert_allclose(squares[1:], here.cost.sensors[0], rtol=1e-12)
    assert squares[0] == pytest.approx(here.cost.dynamics[0], rel=1e-12)
    samples = [int(here.sum()) for here in found.problem.tracks[0].present]
    assert [noise.count for noise in found.evidence.noise[1:]] == samples


def test_standard_deviations_of_the_states_equal_the_inverse(estimate):
    rows = all_rows(estimate.problem, estimate.outcome.linearisation.point, estimate.weights)
    jacobian = np.hstack([rows.states, rows.parameters])
    size = np.linalg.norm(jacobian, axis=0)
    _, triangle = np.linalg.qr(jacobian / size)
    root = np.linalg.inv(triangle)
    std = estimate.weights.reference * np.linalg.norm(root, axis=1) / size
    expected = std[:-3].reshape(-1, 1, 6)[1 : 1 + estimate.steps]
    # The normal equations behind them have the squared condition of the rows.
    np.testing.assert_allclose(estimate.state_std(), expected, rtol=1e-5)


def test_costs_are_per_step_and_add_up(estimate):
    assert estimate.steps == 101
    assert estimate.cost == pytest.approx(estimate.outcome.linearisation.cost.total / 101)
    assert estimate.cost_dynamics + estimate.cost_observation == pytest.approx(estimate.cost, rel=1e-2)
    # Observations are left over by about their noise, which is one sensor's variance a step.
    assert estimate.cost_observation == pytest.approx(1e-6, rel=0.5)


def test_parameters_on_a_bound_are_flagged_and_do_not_count_as_uncertain(recording):
    bounded = fit(
        PENDULUM, recording, {**AWAY, "pendulum.inertia.yy": Free(0.01, 0.006, 0.02)}, options=Options(**STEPPER)
    )
    flags = {row.name: row.at_bound for row in bounded.parameters}
    assert flags["pendulum.inertia.yy"]
    assert np.isnan(bounded.parameters[0].std)
    interval = bounded.uncertainty("gauss-newton").intervals()[0]
    assert interval.one_sided
    assert interval.lower == interval.upper == 0.006
    # The data push hard against the bound: if it is right, the model is wrong by that much.
    wider = bounded.uncertainty().intervals()[0]
    assert wider.one_sided
    assert wider.lower == 0.006 < wider.upper
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
    verdict, status, *_ = text.splitlines()
    assert verdict.startswith(("green", "amber", "red"))
    assert status.startswith(estimate.status.value)
    for name in AWAY:
        assert name in text
    assert "kg m²" in text


def test_seconds_add_up(estimate):
    assert estimate.seconds.total == pytest.approx(estimate.seconds.initial + estimate.seconds.solve, rel=0.05)


@pytest.mark.slow
def test_what_a_release_cannot_tell_is_named():
    """The Furuta pendulum released without drive: two of the arm's inertias and the motor's gain are not excited."""
    truth = stiff(builtin.furuta().set({"hinge1.viscous": 1e-3}))
    recording = twin(truth, {"hinge2": np.pi - 0.3}, 300, noise=1e-3)
    names = ("hinge1.motor.gain", *(f"arm.inertia.{axis}" for axis in ("xx", "yy", "zz")), "pendulum.inertia.yy")
    estimate = fit(
        truth, recording, dict.fromkeys((*names, "hinge1.viscous", "hinge2.viscous")), options=Options(**STEPPER)
    )
    texts = [finding.text for finding in estimate.findings]
    for name in names[:3]:
        assert f"{name}: no information in these data" in texts
    rows = {row.name: row for row in estimate.parameters}
    assert not any(rows[name].identifiable for name in names[:3])
    assert rows["arm.inertia.zz"].identifiable
    assert rows["pendulum.inertia.yy"].identifiable


@pytest.mark.slow
def test_a_body_that_spins_unseen_leaves_the_others_their_error_bars():
    """A bead on a ball joint at the rod's end: no sensor and no torque tells how it turns about its own centre."""
    bead = Body(0.02, (1e-6, 1e-6, 1e-6))
    joint = ball("pendulum", "bead", parent_point=(0.1, 0.0, 0.0))
    plain = stiff(builtin.pendulum())
    truth = Mechanism(
        {**dict(plain.bodies.items()), "bead": bead},
        {**dict(plain.joints.items()), "string": joint},
        sensors=dict(plain.sensors.items()),
        name="bead",
    )
    truth = stiff(truth)
    recording = twin(truth, {"hinge": 2.5}, 200, noise=1e-3)
    estimate = fit(truth, recording, {"pendulum.inertia.yy": 0.005, "hinge.viscous": 1e-3}, options=Options(**STEPPER))
    assert estimate.evidence.projections[0].settled
    for row, size in zip(estimate.parameters, (0.01, 1.0), strict=True):
        assert row.identifiable, estimate.summary()
        assert 0.0 < row.std < size * truth.get(row.name)
        assert abs(row.value - truth.get(row.name)) < 5 * row.std
