"""The most noise that readings can have: white noise, smooth motions, steps of an encoder."""

from types import SimpleNamespace

import numpy as np
import pytest

from shadowfit.estimation.problem.noise_floor import _floor, noise_floor

TIME = 0.01 * np.arange(2000)
MOTION = np.sin(3.0 * TIME) + 0.4 * np.sin(11.0 * TIME)


def test_white_noise_is_found():
    noise = 1e-3 * np.random.default_rng(0).standard_normal(len(TIME))
    assert _floor(noise) == pytest.approx(1e-3, rel=0.1)
    assert _floor(MOTION + noise) == pytest.approx(1e-3, rel=0.1)


def test_a_smooth_motion_has_next_to_none():
    assert _floor(MOTION) < 1e-6


def test_steps_of_an_encoder_stay():
    step = 2.0 * np.pi / 2048
    assert _floor(step * np.round(MOTION / step)) >= step / np.sqrt(12.0) * 0.99
    assert _floor(step * np.round(0.01 * MOTION / step)) >= step / np.sqrt(12.0) * 0.99


def test_too_few_samples_or_none_that_moves_tell_nothing():
    assert _floor(MOTION[:20]) == np.inf
    assert _floor(np.ones(500)) == np.inf


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_a_sensor_that_was_not_recorded_tells_nothing(shape):
    absent = SimpleNamespace(measured=[np.zeros(shape)], present=[np.zeros(0, int)])
    assert noise_floor([absent], 0) == np.inf
