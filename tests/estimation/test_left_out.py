"""Predictions of left-out pieces: equal to those of a fit to the other pieces; too short data cannot be cut."""

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Options, fit
from shadowfit.estimation.solve.prediction import linearised, window_errors
from shadowfit.estimation.uncertainty.left_out import predict_left_out

OPTIONS = Options(timestep=0.02, unknowns="joint", correction="none", state_weight=1e2)
FREE = {"rail.spring.stiffness": 8.0}
STARTS = (0.3, -0.2, 0.1, -0.4)


def recording(start, steps=60):
    return twin(spring_slider(), {"rail": start}, steps, timestep=0.02, noise=1e-3)


@pytest.fixture(scope="module")
def estimate():
    return fit(spring_slider(), [recording(start) for start in STARTS], FREE, options=OPTIONS)


def left_out(estimate):
    point = estimate.outcome.linearisation.point
    return predict_left_out(estimate.problem, point, point, estimate.weights)


def test_each_recording_is_predicted_by_a_fit_to_the_others(estimate):
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    others = [[recording(other) for other in STARTS if other != start] for start in STARTS]
    refits = [fit(spring_slider(), each, FREE, options=OPTIONS) for each in others]
    stiffness = [refit.values["rail.spring.stiffness"] for refit in refits]
    motions = [linearised(problem, point, i) for i in range(len(STARTS))]
    changes = np.array(stiffness) - estimate.values["rail.spring.stiffness"]
    given = [
        (motion, (motion.residual + motion.parameters @ np.array([change]))[..., None])
        for motion, change in zip(motions, changes, strict=True)
    ]
    by_refits = window_errors(problem, given)[0]
    plain = window_errors(problem, [(motion, motion.residual[..., None]) for motion in motions])[0]
    prediction = left_out(estimate)
    # The fits differ by some thousandths of the stiffness: linearisation is good to that part of the change.
    np.testing.assert_allclose(prediction.errors, by_refits.errors, rtol=1e-3)
    assert np.all(prediction.errors[-1] > plain.errors[-1])


def test_data_too_short_to_be_cut():
    assert left_out(fit(spring_slider(), recording(0.3, 15), FREE, options=OPTIONS)) is None
