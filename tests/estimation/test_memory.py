"""Errors with a memory: products over lags, what white errors leave, and standard deviations that hold."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter

from shadowfit.estimation.linear.projection import Leverages, Projection
from shadowfit.estimation.uncertainty.memory import _lagged_products, added_variance, excess, row_variances

STEPS = 2000


def regression(rows, residual, left=lambda errors: errors):
    """A problem of one row a step; ``left``: what states leave of errors, all if there are none."""
    steps, parameters = rows.shape
    return Projection(
        rows[:, None],
        residual[:, None],
        np.zeros((0, parameters)),
        np.zeros(0),
        0.0,
        True,
        lambda: Leverages(np.zeros((steps, 1)), np.zeros((1, 1))),
        lambda own: np.zeros((0, parameters)),
        lambda: SimpleNamespace(left_of=left),
    )


def remembering(rng, decay):
    """Errors of unit variance with the autocorrelation ``decay^l``."""
    return lfilter([np.sqrt(1.0 - decay**2)], [1.0, -decay], rng.standard_normal(STEPS + 500))[500:]


def test_products_over_lags_are_sums():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(30, 3)), np.array([0.7, 0.2, -0.1])
    expected = np.zeros((3, 3))
    for lag, weight in enumerate(weights, start=1):
        for k in range(30 - lag):
            expected += weight * (np.outer(rows[k], rows[k + lag]) + np.outer(rows[k + lag], rows[k]))
    np.testing.assert_allclose(_lagged_products(rows, weights), expected, atol=1e-12)


def test_white_errors_add_nothing():
    rng = np.random.default_rng(1)
    rows = np.stack([np.ones(STEPS), np.sin(0.01 * np.arange(STEPS))], axis=1)
    added = added_variance(regression(rows, rng.standard_normal(STEPS)), np.ones(1))
    np.testing.assert_array_equal(added, 0.0)


def test_residuals_that_white_errors_leave_alike_add_nothing():
    """States that follow fast errors leave slow ones: neighbours are alike, and no error has a memory."""
    rng = np.random.default_rng(2)
    smooth = np.ones(9) / 9.0
    residual = np.convolve(rng.standard_normal(STEPS), smooth, "same")
    white = np.stack([np.convolve(rng.standard_normal(STEPS), smooth, "same") for _ in range(8)], axis=1)
    assert len(excess(residual, white)) == 0
    assert len(excess(residual, rng.standard_normal((STEPS, 8)))) > 5


@pytest.mark.parametrize("decay", [0.6, 0.9, 0.97])
def test_standard_deviations_are_those_of_many_experiments(decay):
    """Of a straight line through errors with a memory, the scatter over draws is what one of them tells."""
    rows = np.stack([np.ones(STEPS), np.linspace(-1.0, 1.0, STEPS)], axis=1)
    inverse = np.linalg.inv(rows.T @ rows)
    rng, estimates, told = np.random.default_rng(3), [], []
    for _ in range(200):
        error = remembering(rng, decay)
        step = inverse @ rows.T @ error
        estimates.append(step)
        meat = rows.T @ rows + added_variance(regression(rows, error - rows @ step), np.ones(1))
        told.append(np.diagonal(inverse @ meat @ inverse))
    scatter = np.mean(np.square(estimates), axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean(told, axis=0) / scatter), 1.0, atol=0.25)
    # White error bars would be too small by the root of (1 + decay)/(1 − decay).
    assert np.all(np.sqrt(scatter / np.diagonal(inverse)) > 0.8 * np.sqrt((1.0 + decay) / (1.0 - decay)))


def test_missing_samples_are_left_out():
    rng = np.random.default_rng(4)
    rows, error = rng.normal(size=(STEPS, 2)).cumsum(axis=0), remembering(rng, 0.9)
    every = regression(rows[::2], error[::2])
    gaps = np.where(np.arange(STEPS) % 2 == 0, error, 0.0)
    spread = regression(rows, gaps)
    np.testing.assert_allclose(added_variance(spread, np.ones(1)), added_variance(every, np.ones(1)), rtol=0.05)


def test_variances_of_rows():
    np.testing.assert_allclose(row_variances(4, np.array([1.0, 2.0]), 6, 0.25), [0.25, 1.0, 0.25, 1.0, 0.25, 0.25])
