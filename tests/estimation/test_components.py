"""Sizes of variance components: the likelihood is that of the dense problem, what is planted is found, else nothing."""

import numpy as np
import pytest

from shadowfit.estimation.uncertainty import components

ROWS, PARAMETERS, FUNCTIONS = 400, 3, 5


def tables(seed, *sizes):
    """Derivatives by parameters, columns of groups, and residuals with functions of given sizes beside white errors."""
    rng = np.random.default_rng(seed)
    by_parameters = rng.standard_normal((ROWS, PARAMETERS))
    columns = rng.standard_normal((ROWS, FUNCTIONS * len(sizes)))
    coefficients = np.repeat(sizes, FUNCTIONS) * rng.standard_normal(columns.shape[1])
    return by_parameters, columns, 0.5 * rng.standard_normal(ROWS) - columns @ coefficients


def rows_of(by_parameters, columns, residual):
    count = columns.shape[1] // FUNCTIONS
    groups = tuple(tuple(range(g * FUNCTIONS, (g + 1) * FUNCTIONS)) for g in range(count))
    halves = (slice(0, ROWS // 3), slice(ROWS // 3, ROWS))
    others = np.concatenate([columns, residual[:, None]], axis=1)
    return components.projected(((by_parameters[half], others[half]) for half in halves), ROWS - PARAMETERS, groups)


def test_likelihood_is_the_restricted_one_of_the_dense_problem():
    by_parameters, columns, residual = tables(0, 0.3, 0.0)
    rows = rows_of(by_parameters, columns, residual)

    def dense(ratio):
        covariance = np.eye(ROWS) + (columns * np.repeat(ratio, FUNCTIONS)) @ columns.T
        inverse = np.linalg.inv(covariance)
        information = by_parameters.T @ inverse @ by_parameters
        left = inverse - inverse @ by_parameters @ np.linalg.solve(information, by_parameters.T @ inverse)
        degrees = ROWS - PARAMETERS
        variance = residual @ left @ residual / degrees
        determinants = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1]
        return degrees * np.log(variance) + determinants

    ratios = np.array([[0.0, 0.0], [0.1, 0.0], [2.0, 0.5]])
    ours, reference = (
        [own(ratio) for ratio in ratios] for own in (lambda r: components._beside(rows, r).deviance, dense)
    )
    assert np.diff(ours) == pytest.approx(np.diff(reference), rel=1e-9)


def test_planted_group_is_found_with_its_size_and_the_other_is_not_there():
    found = [components.chosen(rows_of(*tables(seed, 0.2, 0.0))) for seed in range(20)]
    assert all(one.present == (0,) for one in found)
    sizes = np.sqrt([one.ratio[0] * one.variance for one in found])
    assert np.sqrt(np.mean(sizes**2)) == pytest.approx(0.2, rel=0.25)
    assert np.sqrt(np.mean([one.variance for one in found])) == pytest.approx(0.5, rel=0.03)


def test_nothing_is_found_where_nothing_is():
    gains = [components.chosen(rows_of(*tables(seed, 0.0, 0.0))).gain.max() for seed in range(30)]
    assert max(components.probability(gain) for gain in gains) < 0.5
    assert np.mean([components.probability(gain) for gain in gains if gain > 0.0] or [0.0]) < 0.2


def test_what_is_gained_is_the_fall_of_the_likelihood():
    rows = rows_of(*tables(1, 1.0, 0.0))
    found = components.chosen(rows)
    here, without = (components._beside(rows, ratio).deviance for ratio in (found.ratio, np.zeros(2)))
    assert found.fall == pytest.approx(without - here)
    assert found.fall == pytest.approx(found.gain[0], rel=0.01)


def test_one_more_group_counts_as_if_all_were_taken_together():
    rows, sizes = rows_of(*tables(2, 0.4, 0.2)), 10.0 ** np.arange(-4.0, 3.0)
    value, size = components._beside(rows, np.array([0.7, 0.0])).least(1, sizes)
    together = [components._beside(rows, np.array([0.7, one])).deviance for one in sizes]
    assert value == pytest.approx(min(together), rel=1e-12)
    assert size == sizes[int(np.argmin(together))]


def test_no_functions_let_the_likelihood_rise_by_more_than_all_of_them_without_a_prior():
    for seed, sizes in ((3, (0.5, 0.1, 0.0)), (4, (0.0, 0.0)), (5, (30.0, 0.2))):
        rows = rows_of(*tables(seed, *sizes))
        assert 0.0 <= components.chosen(rows).fall <= components.most_fall(rows)
