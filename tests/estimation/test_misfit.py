"""Residuals against those that errors would leave: errors as believed give one, others their variance."""

from types import SimpleNamespace

import numpy as np
import pytest

from shadowfit.estimation.linear.projection import Leverages, Projection
from shadowfit.estimation.uncertainty.misfit import misfit

STEPS = 2000

ROWS = np.stack([np.ones(STEPS), np.sin(0.01 * np.arange(STEPS))], axis=1)


def regression(rows, residual, left):
    """A problem of one row a step; ``left``: what states leave of errors."""
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


def compared(size, functions=0.0, left=lambda errors: errors):
    """The misfit of a regression whose white errors have a size, where one is believed."""
    errors = size * np.random.default_rng(3).standard_normal(STEPS)
    residual = left((errors - ROWS @ np.linalg.lstsq(ROWS, errors)[0])[:, None, None])[:, 0, 0]
    problem = regression(ROWS, residual, left)
    inverse = np.linalg.inv(ROWS.T @ ROWS)
    return misfit([problem], [np.ones(1)], functions, lambda scores: np.sum(scores[0] * (inverse @ scores[0]), axis=0))


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_ratio_is_that_of_the_variances(size):
    assert compared(size).ratio == pytest.approx(size**2, rel=0.1)


def test_white_errors_hold_as_many_numbers_as_there_are():
    assert STEPS / 3.0 < compared(1.0).degrees < 3.0 * STEPS


def test_few_numbers_are_seen_through_states_that_follow_nearly_all():
    """Where only the mean of each half is left of errors, residuals hold two numbers."""

    def halves(errors):
        means = errors.reshape(2, -1, *errors.shape[1:]).mean(axis=1, keepdims=True)
        return np.broadcast_to(means, (2, STEPS // 2, *errors.shape[1:])).reshape(errors.shape)

    assert compared(1.0, left=halves).degrees < 4.0


def test_functions_count_beside_white_errors():
    assert compared(1.0, functions=3.0 * STEPS).ratio == pytest.approx(0.25, rel=0.1)
