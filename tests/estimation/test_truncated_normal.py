"""Draws of truncated normal variables: the moments that are known, in places of any size, and what is nowhere."""

import numpy as np
import pytest

from shadowfit.estimation.uncertainty.truncated_normal import ImpossibleError, truncated_normal


def drawn(excess, size=2, count=20_000, seed=0):
    return truncated_normal(excess, size, count, np.random.default_rng(seed))


def test_nothing_forbidden_is_a_normal_distribution():
    points = drawn(lambda x: np.full(len(x), -1.0))
    np.testing.assert_allclose(np.cov(points.T), np.eye(2), atol=0.04)


def test_half_of_it_has_the_mean_of_half_a_normal_distribution():
    points = drawn(lambda x: -x[:, 0])
    assert points[:, 0].min() >= 0.0
    assert np.mean(points[:, 0]) == pytest.approx(np.sqrt(2.0 / np.pi), abs=0.02)
    assert np.mean(points[:, 1]) == pytest.approx(0.0, abs=0.03)


def test_a_far_tail_is_reached_in_stages():
    """Beyond five standard deviations lies one draw of 3.5 million."""
    edge = 5.0
    points = drawn(lambda x: edge - x[:, 0], count=4000)
    assert points[:, 0].min() >= edge
    # Of the tail: φ(a)/Q(a), and what is left of the variance.
    assert np.mean(points[:, 0]) == pytest.approx(5.1865, abs=0.02)
    assert np.std(points[:, 0]) == pytest.approx(0.1760, abs=0.02)


def test_a_corner_of_many_dimensions_is_the_same_in_each():
    points = drawn(lambda x: np.max(-x, axis=1), size=8, count=4000)
    assert points.min() >= 0.0
    np.testing.assert_allclose(points.mean(axis=0), np.sqrt(2.0 / np.pi), atol=0.06)


def test_a_disc_equals_what_rejection_leaves():
    def excess(x):
        return np.hypot(x[:, 0] - 1.0, x[:, 1]) - 0.7

    everything = np.random.default_rng(1).standard_normal((200_000, 2))
    expected = everything[excess(everything) <= 0.0]
    points = drawn(excess)
    np.testing.assert_allclose(points.mean(axis=0), expected.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.cov(points.T), np.cov(expected.T), atol=0.02)


def test_nothing_possible_says_so():
    with pytest.raises(ImpossibleError, match="next to no values"):
        drawn(lambda x: np.ones(len(x)), count=10)
