"""Kinds of covariance against hand-computed regressions; bounds, priors, intervals, correlations."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from shadowfit.errors import ShadowfitError
from shadowfit.estimation.linear.projection import Leverages, Projection
from shadowfit.estimation.problem.rows import Group
from shadowfit.estimation.uncertainty.blocks import Disagreement
from shadowfit.estimation.uncertainty.covariance import Uncertainty, check_kind
from shadowfit.estimation.uncertainty.evidence import Evidence

COUNT, LABELS = 400, ("a", "b", "c")
SCALE = np.array([1.0, 2.0, 0.5])
REFERENCE = 0.1


def regression(seed=0, std=REFERENCE, design=None):
    """A linear regression without states: T is the design, and all of theory is known."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(COUNT, 3)) if design is None else design
    noise = std * rng.standard_normal(len(table))
    left = noise - table @ np.linalg.lstsq(table, noise)[0]
    return table, left


def agreeing(*_):
    """Pieces of the data that say the same."""
    return Disagreement((), np.zeros(3), np.full(3, np.inf), np.zeros(3))


def evidence(table, left, **changes):
    nothing = np.zeros((0, table.shape[1]))
    none = Leverages(np.zeros((len(left), 1)), np.zeros((1, 1)))
    projection = Projection(
        table[:, None], left[:, None], nothing, np.zeros(0), 0.0, True,
        lambda: none, lambda _: table * left[:, None], lambda: SimpleNamespace(left_of=lambda errors: errors),
    )  # fmt: skip
    plain = Evidence(
        LABELS, SCALE, REFERENCE, np.zeros((3, 3)), np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3, bool),
        (projection,), (np.arange(3),), ((Group("y", 0, 1, 1),),), (np.ones((len(left), 1), bool),), np.ones(0),
        agreeing,
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def uncertainty(known, kind="gauss-newton", values=(1.0, 1.0, 1.0), lower=-np.inf, upper=np.inf):
    return Uncertainty(kind, known, np.array(values), np.full(3, lower), np.full(3, upper))


def test_textbook_covariances():
    table, left = regression(std=0.3)
    inverse, squares = np.linalg.inv(table.T @ table), left @ left
    known = evidence(table, left)
    np.testing.assert_allclose(uncertainty(known).covariance, REFERENCE**2 * inverse, rtol=1e-10)
    found = uncertainty(known, "residual")
    np.testing.assert_allclose(found.covariance, squares / (COUNT - 3) * inverse, rtol=1e-10)
    np.testing.assert_allclose(found.degrees, COUNT - 3)
    np.testing.assert_allclose(uncertainty(known, "paper").covariance, squares / (COUNT - 1) * inverse, rtol=1e-10)
    assert known.noise[0].level() == pytest.approx(np.sqrt(squares / (COUNT - 3)))


def test_acting_forces_take_their_part_of_the_information_away():
    table, left = regression(std=0.3)
    pull = np.array([0.1, 0.0, 0.2]) * np.diagonal(table.T @ table)
    known = evidence(table, left, prior=np.diag(pull), pull=pull)
    expected = REFERENCE**2 * np.linalg.inv(table.T @ table - np.diag(pull))
    np.testing.assert_allclose(uncertainty(known).covariance, expected, rtol=1e-10)


def test_robust_agrees_with_the_others_where_noise_is_white():
    ratios = []
    for seed in range(20):
        known = evidence(*regression(seed))
        ratios.append(uncertainty(known, "robust").std / uncertainty(known).std)
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.05)


@pytest.mark.slow
def test_only_the_robust_kind_holds_where_noise_and_design_are_correlated_in_time():
    covered = {"gauss-newton": 0, "residual": 0, "robust": 0}
    seeds = 200
    for seed in range(seeds):
        rng = np.random.default_rng([5, seed])
        raw = rng.standard_normal((COUNT, 4))
        for k in range(1, COUNT):
            raw[k] = 0.7 * raw[k - 1] + np.sqrt(1.0 - 0.49) * raw[k]
        table, noise = raw[:, :3], REFERENCE * raw[:, 3]
        shift = np.linalg.lstsq(table, noise)[0]
        known = evidence(table, noise - table @ shift)
        for kind in covered:
            interval = uncertainty(known, kind, shift).intervals()[0]
            covered[kind] += interval.lower <= 0.0 <= interval.upper
    assert covered["gauss-newton"] < 0.85 * seeds
    assert covered["residual"] < 0.85 * seeds
    assert covered["robust"] > 0.90 * seeds


def test_missing_samples_are_no_degrees_of_freedom():
    table, left = regression()
    here = np.ones((COUNT, 1), bool)
    table[::4], left[::4], here[::4] = 0.0, 0.0, False
    known = evidence(table, left, present=(here,))
    assert known.noise[0].degrees == pytest.approx(300 - 3)


def test_parameters_on_a_bound_are_held_and_have_one_sided_intervals():
    table, left = regression()
    pull = np.array([0.0, 0.0, 30.0])
    known = evidence(table, left, at_bound=np.array([False, False, True]), prior_gradient=pull)
    found = uncertainty(known, lower=1.0)
    two = REFERENCE**2 * np.linalg.inv(table[:, :2].T @ table[:, :2])
    np.testing.assert_allclose(found.covariance[:2, :2], two, rtol=1e-10)
    np.testing.assert_array_equal(found.covariance[2], 0.0)
    assert np.isnan(found.std[2])
    inverse = np.linalg.inv(table.T @ table)
    assert found.freed_std[2] == pytest.approx(REFERENCE * np.sqrt(inverse[2, 2]))
    first, _, last = found.intervals(0.9)
    assert last.one_sided
    assert not first.one_sided
    assert last.lower == 1.0
    # The pull is far beyond the bound: nothing above it is left.
    assert 1.0 - (inverse @ pull)[2] + 1.645 * found.freed_std[2] < 1.0
    assert last.upper == 1.0
    gentle = uncertainty(dataclasses.replace(known, prior_gradient=0.01 * pull), lower=1.0).intervals(0.9)[2]
    expected = 1.0 - 0.01 * (inverse @ pull)[2] + stats.norm.ppf(0.95) * found.freed_std[2]
    assert gentle.upper == pytest.approx(expected)


@pytest.mark.parametrize("bars_beyond", [0.3, 1.41, 1.42, 2.9, 40.0])
def test_data_that_push_hard_against_a_bound_say_how_wrong_the_model_is(bars_beyond):
    """The truth is inside: of the distance beyond the bound, squared, what noise does not explain is the model's."""
    matrix, held = np.array([[2.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.9, 0.0, 1.0]]), np.array([False, False, True])

    def bread(free):
        inverse = np.zeros((3, 3))
        inverse[np.ix_(free, free)] = np.linalg.inv(matrix[np.ix_(free, free)])
        return inverse

    inverse = np.linalg.inv(matrix)
    bar = REFERENCE * np.sqrt(inverse[2, 2])
    distance = bars_beyond * bar
    known = SimpleNamespace(
        labels=LABELS, at_bound=held, matrix=matrix, bread=bread, on_edge=False, file_prior=np.zeros((3, 3)),
        over_stairs=None,
        gradient=np.array([0.0, 0.0, distance / inverse[2, 2]]),
        covariance=lambda _, free=~held: (REFERENCE**2 * bread(free), np.full(3, np.inf)),
    )  # fmt: skip
    found = uncertainty(known, "robust", values=(1.0, 1.0, 0.0), lower=0.0)
    wrong = bars_beyond > np.sqrt(2.0)
    spread = np.sqrt(distance**2 - bar**2) if wrong else bar
    assert found.freed_std[2] == pytest.approx(spread)
    assert uncertainty(known, "gauss-newton").freed_std[2] == pytest.approx(bar)
    upper = found.intervals(0.95)[2].upper
    assert upper == pytest.approx(max(1.96 * spread - distance, 0.0), rel=1e-3)
    # The first one follows by 0.45 of what is inside of a normal variable around the free estimate.
    added, inside = (
        found.std[0] ** 2 - REFERENCE**2 / 2.0,
        stats.truncnorm(distance / spread, np.inf, -distance, spread),
    )
    assert np.sqrt(added) == pytest.approx(0.45 * np.sqrt(inside.moment(2)), rel=1e-3)
    # What the data tell of the first and the third together the bound does not touch.
    whole, together = found.with_bounds, np.array([1.0, 0.0, 0.45])
    assert together @ whole @ together == pytest.approx(REFERENCE**2 / 2.0)
    assert whole[0, 0] == pytest.approx(found.std[0] ** 2)
    assert whole[2, 2] > 0.0


def test_intervals_beside_a_bound_span_what_the_bound_hides():
    """Two parameters that share their effect: with one on its bound, the other may be wrong by what that one lacks."""
    table, left = regression()
    table[:, 1] = table[:, 0] + 0.1 * table[:, 1]
    pull = np.array([1.0, 1.05, 0.0])
    known = evidence(table, left, at_bound=np.array([False, True, False]), prior_gradient=pull)
    found = uncertainty(known, lower=1.0, values=(5.0, 1.0, 5.0))
    unbounded = 5.0 - (np.linalg.inv(table.T @ table) @ pull)[0]
    interval = found.intervals()[0]
    assert interval.lower < unbounded < interval.upper
    assert interval.lower < 5.0 < interval.upper
    assert interval.upper - interval.lower > 5.0 * np.sqrt(found.covariance[0, 0])


@pytest.mark.parametrize("pull", [0.0, 0.02, 0.2])
def test_standard_deviations_know_that_the_truth_lies_inside_of_a_bound(pull):
    """Drawn from what the data say, as far as it is inside: how far others are from where they were found."""
    table, left = regression()
    table[:, 1] = table[:, 0] + 0.1 * table[:, 1]
    gradient = np.array([0.0, pull, 0.0])
    known = evidence(table, left, at_bound=np.array([False, True, False]), prior_gradient=gradient)
    found = uncertainty(known, lower=1.0)
    inverse = np.linalg.inv(table.T @ table)
    draws = np.random.default_rng(0).multivariate_normal(-inverse @ gradient, REFERENCE**2 * inverse, 200_000)
    inside = draws[draws[:, 1] > 0.0]
    np.testing.assert_allclose(found.std[[0, 2]], np.sqrt(np.mean(inside**2, axis=0))[[0, 2]], rtol=0.03)


def test_a_rotor_on_its_bound_is_not_told_by_the_bodies_of_the_file():
    """It turns with a link alike: the data know the sum of both, and nobody has vouched for the link."""
    table, left = regression()
    table[:, 2] = table[:, 0] + 1e-3 * table[:, 2]
    believed = np.diag([1e4, 0.0, 0.0])
    held = np.array([False, False, True])
    known = evidence(
        table, left, at_bound=held, prior=believed, file_prior=believed, prior_gradient=np.array([0, 0, 1])
    )
    found = uncertainty(known, lower=1.0)
    data = REFERENCE * np.sqrt(np.linalg.inv(table.T @ table)[2, 2])
    assert data > 30.0 * REFERENCE * np.sqrt(np.linalg.inv(table.T @ table + believed)[2, 2])
    assert found.freed_std[2] == pytest.approx(data, rel=1e-3)
    assert found.intervals(0.95)[2].upper > 1.0 + data


def test_intervals_are_cut_at_the_bounds():
    table, left = regression()
    interval = uncertainty(evidence(table, left), lower=0.9999).intervals()[0]
    assert interval.lower == 0.9999
    assert interval.upper > 1.005
    with pytest.raises(ShadowfitError, match="between 0 and 1"):
        uncertainty(evidence(table, left)).intervals(95.0)


def test_priors_count_as_information():
    table, left = regression()
    table[:, 1] = 0.0
    prior = np.array([0.0, (REFERENCE / 0.3) ** 2, 0.0])
    for kind in ("gauss-newton", "residual", "robust"):
        assert uncertainty(evidence(table, left, prior=prior), kind).std[1] == pytest.approx(0.3, rel=0.02)
    np.testing.assert_allclose(evidence(table, left, prior=prior).prior_std, [np.inf, 0.3, np.inf])


def test_unidentified_parameters_are_told_and_leave_the_others_alone():
    table, left = regression()
    table[:, 1] = 0.0
    known = evidence(table, left)
    assert [finding.text for finding in known.findings] == ["b: no information in these data"]
    two = np.linalg.inv(table[:, [0, 2]].T @ table[:, [0, 2]])
    found = uncertainty(known)
    np.testing.assert_allclose(found.std[[0, 2]], REFERENCE * np.sqrt(np.diagonal(two)), rtol=1e-10)
    assert found.std[1] == pytest.approx(10.0 * SCALE[1])


def test_correlations():
    table, left = regression()
    table[:, 1] = table[:, 0] + 0.1 * table[:, 1]
    found = uncertainty(evidence(table, left)).correlation
    np.testing.assert_allclose(np.diagonal(found), 1.0)
    assert found[0, 1] < -0.98
    np.testing.assert_allclose(found, found.T)


def test_kinds_have_names():
    assert check_kind("robust") == "robust"
    with pytest.raises(ShadowfitError, match="residual"):
        check_kind("residuals")


def test_acting_forces_leave_a_little_where_the_data_say_less_than_they_take():
    """Error bars grow to ten times those of the data, whatever else is taken away."""
    table, left = regression(std=0.3)
    for size in (1.0, 1e3, 1e9):
        pull = size * np.diagonal(table.T @ table)
        known = evidence(table, left, prior=0.0 * pull, pull=pull)
        assert uncertainty(known).std == pytest.approx(10.0 * uncertainty(evidence(table, left)).std, rel=0.02)
