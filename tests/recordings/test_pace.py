"""How fast a motion is: in its own units, whatever noise, offsets and turns there are."""

import numpy as np
import pytest

from shadowfit.recordings.pace import pace

PERIOD = 0.8
TIME = 0.002 * np.arange(5000)
SWING = np.sin(2.0 * np.pi * TIME / PERIOD)


def test_a_sine_has_half_forgotten_after_a_sixth_of_its_period():
    assert pace(SWING, 0.002) == pytest.approx(PERIOD / 6.0, rel=0.02)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("slower", [1e-6, 1.0, 1e6])
def test_it_has_no_scale_of_its_own(size, slower):
    assert pace(size * SWING + 3.0 * size, 0.002 * slower) == pytest.approx(slower * pace(SWING, 0.002), rel=1e-9)


def test_noise_is_taken_off():
    noisy = SWING + np.random.default_rng(0).normal(0.0, 0.3, len(TIME))
    assert pace(noisy, 0.002) == pytest.approx(pace(SWING, 0.002), rel=0.1)


def test_noise_alone_has_none():
    assert pace(np.random.default_rng(0).normal(size=2000), 0.01) == np.inf
    assert pace(np.ones(2000), 0.01) == np.inf


def test_missing_samples_are_left_out():
    holed = SWING.copy()
    holed[np.random.default_rng(0).random(len(TIME)) < 0.2] = np.nan
    assert pace(holed, 0.002) == pytest.approx(pace(SWING, 0.002), rel=0.02)
    assert pace(np.full(100, np.nan), 0.002) == np.inf


def test_turns_do_not_count():
    """A wheel that turns ten times a second has half forgotten after a sixth of a turn, counted on or not."""
    angle = 2.0 * np.pi * 10.0 * TIME
    for readings in (angle, np.angle(np.exp(1j * angle))):
        assert pace(readings, 0.002, angle=True) == pytest.approx(0.1 / 6.0, rel=0.05)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
def test_a_part_of_a_swing_does_not_tell(share):
    part = np.linspace(0.0, share * PERIOD, 300)
    for phase in (0.0, 0.3, 1.0):
        assert pace(np.cos(2.0 * np.pi * part / PERIOD + phase), part[1]) == np.inf
