"""Time-step and cut-off of recordings, fast and slow."""

import numpy as np
import pytest

from shadowfit.estimation.problem.pacing import default_cutoff, default_timestep, pace_of
from shadowfit.models import load_model
from shadowfit.recordings import Recording


@pytest.mark.parametrize(("interval", "expected"), [(0.01, 0.01), (0.002, 0.01), (0.003, 0.009), (0.02, 0.02)])
def test_default_timestep_is_a_multiple_of_the_sampling_interval(interval, expected):
    assert default_timestep([1.0, interval]) == pytest.approx(expected)


@pytest.mark.parametrize("period", [1e-4, 0.03, 0.1])
def test_a_period_of_a_fast_swing_has_48_steps(period):
    time = period / 500.0 * np.arange(4000)
    quickest = pace_of(
        load_model("pendulum").mechanism, Recording(time, {"theta": 0.3 * np.sin(2 * np.pi * time / period)})
    )
    step = default_timestep([time[1]], quickest)
    assert period / 52.0 < step <= period / 47.0
    assert default_cutoff(quickest) == pytest.approx(max(10.0, 4.8 / period), rel=0.03)


def test_slow_and_resting_machines_have_the_usual_step():
    random, time = np.random.default_rng(0), 0.002 * np.arange(5000)
    mechanism = load_model("pendulum").mechanism
    slow = Recording(time, {"theta": np.sin(2.0 * time)})
    still = Recording(time, {"theta": random.normal(0.0, 1e-3, len(time))})
    for recording in (slow, still):
        quickest = pace_of(mechanism, recording)
        assert default_timestep([0.002], quickest) == 0.01
        assert default_cutoff(quickest) == 10.0
