"""The most noise that readings can have: white noise, smooth motions, steps of an encoder."""

import numpy as np
import pytest

from shadowfit.estimation.problem.noise_floor import _floor

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
