"""Detection of quantised channels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.recordings import quantisation, quantisation_std


def decaying_swing(samples=4000, amplitude=2.0):
    t = np.linspace(0.0, 10.0, samples)
    return amplitude * np.exp(-0.2 * t) * np.cos(6.0 * t + 0.3)


def rounded(values, step, offset=0.0):
    return step * np.rint((values - offset) / step) + offset


@given(
    st.sampled_from([2048, 4096, 8192, 40000]),
    st.floats(-1.0, 1.0),
    st.floats(0.2, 3.0),
    st.sampled_from([None, 6]),
)
def test_an_encoder_grid_is_found(counts, offset, amplitude, decimals):
    step = 2 * math.pi / counts
    values = rounded(decaying_swing(amplitude=amplitude), step, offset)
    if decimals is not None:
        values = np.round(values, decimals)  # as a text file stores it
    assert quantisation(values) == pytest.approx(step, rel=1e-4)


def test_missing_samples_a_few_outliers_and_few_levels_do_not_hide_the_grid():
    step = 2 * math.pi / 4096
    values = rounded(decaying_swing(), step)
    values[::7] = np.nan
    values[5] += 0.37 * step
    assert quantisation(values) == pytest.approx(step, rel=1e-4)
    assert quantisation(rounded(decaying_swing(amplitude=3.2 * step), step)) == pytest.approx(step, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(0, 3000), st.booleans())
def test_continuous_signals_have_no_grid(seed, samples, noise_only):
    noise = np.random.default_rng(seed).normal(size=samples)
    signal = 0.0 if noise_only else decaying_swing(samples)
    assert quantisation(signal + 1e-3 * noise) is None


@pytest.mark.parametrize("values", [[], [1.0], np.ones(100), np.tile([-1.5, 1.5], 50), np.full(9, np.nan)])
def test_signals_without_levels_have_no_grid(values):
    assert quantisation(values) is None


def test_standard_deviation_is_that_of_rounding():
    values = np.random.default_rng(1).uniform(-50.0, 50.0, 200_000)
    error = rounded(values, 0.25) - values
    assert quantisation_std(0.25) == pytest.approx(error.std(), rel=1e-2)
