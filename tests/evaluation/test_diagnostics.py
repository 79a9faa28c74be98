"""Residual diagnostics: white noise looks white, a sine does not; counts add up."""

import numpy as np
import pytest

from shadowfit.evaluation.diagnostics import autocorrelation, diagnose


def test_noise_looks_like_noise():
    values = np.random.default_rng(0).normal(0.0, 2e-3, 4000)
    values[::50] = np.nan
    found = diagnose(values, 2e-3)
    assert found.std == pytest.approx(1.0, abs=0.05)
    assert np.sum(found.density * np.diff(found.edges)) == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(found.quantiles[20:-20], found.normal[20:-20], atol=0.1)
    assert np.mean(np.abs(found.autocorrelation[1:]) > found.white) < 0.15


def test_a_sine_is_correlated():
    wave = np.sin(2 * np.pi * np.arange(1000) / 20)
    np.testing.assert_allclose(autocorrelation(wave, 20)[[0, 10, 20]], [1.0, -0.99, 0.98], atol=1e-6)
    assert not autocorrelation(np.ones(10), 3).any()


def test_too_few():
    assert diagnose(np.full(50, np.nan), 1.0) is None
