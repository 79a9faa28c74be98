"""Measured against predicted: turns, missing samples, steps coarser than samples, trajectories that end early."""

import numpy as np
import pytest

from shadowfit.evaluation.series import at_samples, compare
from shadowfit.models import read_model
from shadowfit.recordings import Recording


def test_turns_and_missing_samples():
    mechanism = read_model("pendulum")
    time = 0.1 * np.arange(5)
    measured = np.array([np.nan, 12.6, 12.7, np.nan, 12.9])
    found = compare(
        mechanism, Recording(time, {"theta": measured}), time, {"theta": measured[[1, 1, 2, 2, 4]] - 4 * np.pi}
    )
    series = found["theta"]
    np.testing.assert_allclose(series.predicted[[1, 2, 4], 0], [12.6, 12.7, 12.9])
    assert np.isnan(series.residual[[0, 3]]).all()
    np.testing.assert_allclose(series.residual[[1, 2, 4], 0], 0.0, atol=1e-12)
    assert series.rmse() == pytest.approx(0.0, abs=1e-12)


def test_a_sensor_without_channel_has_no_residuals():
    mechanism = read_model("furuta")
    time = 0.1 * np.arange(4)
    recording = Recording(time, {"theta1": np.zeros(4)})
    found = compare(mechanism, recording, time, {"theta1": np.full(4, 0.5), "theta2": np.ones(4)})
    assert found["theta1"].rmse() == pytest.approx(0.5)
    assert np.isnan(found["theta2"].rmse())
    np.testing.assert_array_equal(found["theta2"].predicted[:, 0], 1.0)


def test_values_between_steps_and_after_the_last():
    steps = 0.1 * np.arange(31)
    samples = 0.03 * np.arange(103)  # the last two lie 0.03 and 0.06 s behind the last step
    found = at_samples(steps, np.sin(2 * steps), samples)
    np.testing.assert_allclose(found, np.sin(2 * samples), atol=5e-4)
    early = at_samples(steps[:11], np.sin(2 * steps[:11]), samples)
    np.testing.assert_array_equal(np.isnan(early), samples > 1.1 + 1e-6)
    assert np.isnan(at_samples(steps[:1], np.zeros(1), samples)).all()
