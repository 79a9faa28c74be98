"""Predictions over windows: equal to dense least squares, exact for the true model, worse for a wrong one."""

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Options, fit
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.prediction import predict

OPTIONS = Options(timestep=0.02, unknowns="joint", correction="none", state_weight=1e2)


@pytest.fixture(scope="module")
def estimate():
    recording = twin(spring_slider(), {"rail": 0.3}, 120, timestep=0.02, noise=1e-3)
    return fit(spring_slider(), recording, {"rail.spring.stiffness": 8.0}, options=OPTIONS)


def values_at(estimate, stiffness):
    point = estimate.outcome.linearisation.point
    change = stiffness - estimate.values["rail.spring.stiffness"]
    return estimate.problem.parameters.plus(point.values, np.array([change]))


def test_whole_recording_is_the_best_simulation(estimate):
    """Dense: equations of motion as constraints, samples fitted by the two first states alone."""
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    found = predict(problem, point, point.values)
    rows = next(iter(objective.chunk_rows(problem, point, Weights(np.eye(1), (1.0,), 1.0), 0)))
    steps = problem.tracks[0].steps
    motion, reading = np.zeros((steps, steps + 2)), np.zeros((steps, steps + 2))
    for k in range(steps):
        motion[k, k : k + 3] = rows.states[k, 0, :, 0]
        reading[k, k : k + 3] = rows.states[k, 1, :, 0]
    free = np.zeros((steps + 2, 2))
    free[0, 0] = free[1, 1] = 1.0
    inverse = np.linalg.inv(motion[:, 2:])
    free[2:] = -inverse @ motion[:, :2]
    forced = np.concatenate([np.zeros(2), -inverse @ rows.residual[:steps, 0]])
    error = reading @ forced + rows.residual[:steps, 1]
    error -= reading @ free @ np.linalg.lstsq(reading @ free, error, rcond=None)[0]
    spread = np.std(problem.tracks[0].measured[0])
    assert found.steps[-1] == steps
    assert found.errors[-1, 0] == pytest.approx(np.sqrt(np.mean(error**2)) / spread, rel=1e-6)


def test_wrong_stiffness_shows_over_long_windows(estimate):
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    right = predict(problem, point, point.values)
    wrong = predict(problem, point, values_at(estimate, 1.1 * estimate.values["rail.spring.stiffness"]))
    assert wrong.score > right.score + 0.1
    ratio = wrong.errors[:, 0] / right.errors[:, 0]
    assert ratio[0] < 1.5
    assert ratio[-1] > 10.0
    assert np.all(wrong.errors <= 1.0)


def test_a_diverging_model_is_no_worse_than_no_model(estimate):
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    found = predict(problem, point, values_at(estimate, 1e6))
    assert np.all(np.isfinite(found.errors))
    assert found.errors.max() <= 1.0
