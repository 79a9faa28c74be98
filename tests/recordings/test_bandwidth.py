"""Where a motion sinks into the noise of its samples."""

import numpy as np
import pytest

from shadowfit.recordings.bandwidth import bandwidth

RATE, SECONDS = 100.0, 30.0


def motion(time, frequency):
    """A band of equal strength up to a frequency [Hz]."""
    lines = np.arange(0.1, frequency, 0.05)
    phase = np.random.default_rng(1).uniform(0.0, 2.0 * np.pi, len(lines))
    return np.sum(np.sin(2.0 * np.pi * lines[:, None] * time + phase[:, None]), axis=0)


@pytest.mark.parametrize("frequency", [2.0, 6.0, 15.0])
def test_band_of_a_motion_in_white_noise(frequency):
    time = np.arange(0.0, SECONDS, 1.0 / RATE)
    samples = motion(time, frequency) + 1e-2 * np.random.default_rng(2).standard_normal(len(time))
    assert bandwidth(time, samples) == pytest.approx(frequency, abs=0.6)


def test_jitter_of_time_stamps_is_noise():
    """Samples that were taken a little earlier or later than they say sink into what that makes of them."""
    time = np.arange(0.0, SECONDS, 1.0 / RATE)
    taken = time + 1e-3 * np.random.default_rng(3).standard_normal(len(time))
    assert bandwidth(time, motion(taken, 3.0)) == pytest.approx(3.0, abs=1.0)


def test_samples_that_are_seconds_apart():
    """A column of milliseconds that is read as seconds: no limit is better than none found, and nothing is lost."""
    time = np.arange(0.0, SECONDS, 1.0 / RATE)
    samples = motion(time, 3.0) + 1e-2 * np.random.default_rng(2).standard_normal(len(time))
    assert bandwidth(1e3 * time, samples) > 0.0


def test_turns_and_missing_samples_change_nothing():
    time = np.arange(0.0, SECONDS, 1.0 / RATE)
    angle = motion(time, 4.0) + 1e-2 * np.random.default_rng(2).standard_normal(len(time))
    wrapped = np.angle(np.exp(1j * angle))
    wrapped[100:103] = np.nan
    assert bandwidth(time, wrapped, wraps=True) == pytest.approx(bandwidth(time, angle), abs=0.6)


def test_without_noise_or_with_few_samples_there_is_no_limit_below_the_samples_own():
    time = np.arange(0.0, SECONDS, 1.0 / RATE)
    assert bandwidth(time[:20], motion(time, 3.0)[:20]) == np.inf
    assert bandwidth(time, np.random.default_rng(4).standard_normal(len(time))) < RATE
