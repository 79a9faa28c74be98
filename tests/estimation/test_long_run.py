"""Variance of sums of correlated series, by simulation."""

import numpy as np
import pytest

from shadowfit.estimation.uncertainty.long_run import long_run_covariance


def autoregression(rng, coefficient, count, columns):
    noise = rng.standard_normal((count + 200, columns))
    series = np.zeros_like(noise)
    for k in range(1, len(noise)):
        series[k] = coefficient * series[k - 1] + noise[k]
    return series[200:]


@pytest.mark.parametrize("coefficient", [-0.4, 0.0, 0.6, 0.9])
def test_mean_estimate_is_the_variance_of_the_sum(coefficient):
    rng = np.random.default_rng(3)
    count = 600
    estimates = [long_run_covariance(autoregression(rng, coefficient, count, 2)).covariance for _ in range(60)]
    expected = count / (1.0 - coefficient) ** 2
    np.testing.assert_allclose(np.diagonal(np.mean(estimates, axis=0)) / expected, 1.0, atol=0.15)
    np.testing.assert_allclose(np.mean(estimates, axis=0)[0, 1] / expected, 0.0, atol=0.1)


def test_white_noise_counts_nearly_all_its_samples():
    found = long_run_covariance(np.random.default_rng(1).standard_normal((500, 3)))
    assert found.degrees > 100.0
    assert np.all(np.linalg.eigvalsh(found.covariance) > 0.0)


def test_cross_correlation_survives():
    rng = np.random.default_rng(2)
    one = autoregression(rng, 0.5, 4000, 1)
    found = long_run_covariance(np.hstack([one, one + 0.1 * autoregression(rng, 0.5, 4000, 1)])).covariance
    assert found[0, 1] / np.sqrt(found[0, 0] * found[1, 1]) > 0.98


def test_wild_scores_do_not_overflow():
    series = np.random.default_rng(5).normal(size=(300, 2))
    usual = long_run_covariance(series).covariance
    wild = long_run_covariance(series * np.array([1e140, 1e-140])).covariance
    np.testing.assert_allclose(wild / np.outer([1e140, 1e-140], [1e140, 1e-140]), usual, rtol=1e-12)
    assert np.isnan(long_run_covariance(np.array([[1.0], [np.inf], [2.0]])).covariance).all()
