"""Residual diagnostics: white noise looks white, a sine does not; counts add up."""

import numpy as np
import pytest

from shadowfit.evaluation.diagnostics import autocorrelation, diagnose, ljung_box, outliers


def test_noise_looks_like_noise():
    values = np.random.default_rng(0).normal(0.0, 2e-3, 4000)
    values[::50] = np.nan
    found = diagnose(values, 2e-3)
    assert found.std == pytest.approx(1.0, abs=0.05)
    assert np.sum(found.density * np.diff(found.edges)) == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(found.quantiles[20:-20], found.normal[20:-20], atol=0.1)
    assert np.mean(np.abs(found.autocorrelation[1:]) > found.white) < 0.15
    assert found.whiteness > 1e-3
    assert found.normality > 1e-3


def test_a_sine_is_correlated():
    wave = np.sin(2 * np.pi * np.arange(1000) / 20)
    np.testing.assert_allclose(autocorrelation(wave, 20)[[0, 10, 20]], [1.0, -0.99, 0.98], atol=1e-6)
    assert not autocorrelation(np.ones(10), 3).any()


def test_too_few():
    assert diagnose(np.full(50, np.nan), 1.0) is None


def test_whiteness_is_a_probability():
    """Of white noise the test finds one in twenty below 0.05, of a slight correlation nearly all."""
    rng = np.random.default_rng(3)
    white = [ljung_box(rng.standard_normal(400)) for _ in range(400)]
    assert 0.02 < np.mean(np.array(white) < 0.05) < 0.09
    noise = rng.standard_normal((50, 401))
    coloured = [ljung_box(row[1:] + 0.5 * row[:-1]) for row in noise]
    assert np.mean(np.array(coloured) < 0.01) > 0.95


def test_outliers_and_tails():
    values = np.random.default_rng(5).normal(0.0, 1.0, 500)
    values[[40, 300]] = [9.0, -8.0]
    values[7] = np.nan
    assert set(outliers(values)) >= {40, 300}
    assert len(outliers(values)) <= 3
    assert diagnose(values, 1.0).normality < 1e-6
    assert outliers(np.zeros(20)).size == 0
    assert outliers(np.full(5, np.nan)).size == 0
