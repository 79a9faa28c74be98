"""Pieces of the data: random effects by hand, bars that widen where pieces disagree and stay where they agree."""

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.uncertainty.blocks import Scatter, estimate_alone, random_effects, trend

OPTIONS = Options(timestep=0.02, unknowns="joint", correction="none", state_weight=1e6)
FREE = {"rail.spring.stiffness": 8.0, "rail.spring.damping": 0.5}


def recorded(stiffness, seed):
    machine = spring_slider().set({"rail.spring.stiffness": stiffness})
    return twin(machine, {"rail": 0.3}, 150, timestep=0.02, noise=1e-3, seed=seed)


def test_values_that_agree_add_nothing():
    assert random_effects(np.array([1.0, 1.1, 0.9, 1.0]), np.full(4, 0.1)) == Scatter()


def test_equal_bars_leave_the_spread_of_the_values():
    """With equal bars DerSimonian and Laird's variance of the mean is that of the values, divided by their number."""
    values, std = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.full(6, 0.1)
    found = random_effects(values, std)
    assert found.variance == pytest.approx(0.1**2 / 6)
    assert (1.0 + found.growth) * found.variance == pytest.approx(np.var(values, ddof=1) / 6)
    assert found.effect**2 + 0.1**2 == pytest.approx(np.var(values, ddof=1))


def test_a_trend_is_found_where_no_two_neighbours_differ():
    """Eight values along a line of three quarters of a bar a piece: their scatter may be chance, their order is not."""
    times, values, std = np.arange(8.0), 0.075 * np.arange(8.0), np.full(8, 0.1)
    assert random_effects(values, std).probability < 0.5 < trend(times, values, std).probability
    found = trend(times, values, std)
    # β² var(t), less what noise makes of it, is not divided by the number of pieces.
    assert found.effect**2 == pytest.approx(0.075**2 * np.var(times) - 0.1**2 / 8)
    assert found.growth * found.variance == pytest.approx(found.effect**2)


def test_shuffled_values_have_no_trend():
    shuffled = 0.05 * np.array([3.0, 6.0, 0.0, 5.0, 2.0, 7.0, 1.0, 4.0])
    assert trend(np.arange(8.0), shuffled, np.full(8, 0.1)) == Scatter()


def test_pieces_without_information_have_no_say():
    assert random_effects(np.array([1.0, 7.0]), np.array([0.1, np.inf])) == Scatter()


def test_bars_stay_where_pieces_agree():
    stiffness = float(spring_slider().get("rail.spring.stiffness"))
    estimate = fit(spring_slider(), [recorded(stiffness, seed) for seed in (1, 2)], FREE, options=OPTIONS)
    np.testing.assert_allclose(estimate.uncertainty("robust").std, estimate.uncertainty("gauss-newton").std, rtol=1e-3)


def test_bars_span_recordings_that_disagree():
    stiffness = float(spring_slider().get("rail.spring.stiffness"))
    pair = [recorded(0.9 * stiffness, 1), recorded(1.1 * stiffness, 2)]
    estimate = fit(spring_slider(), pair, FREE, options=OPTIONS)
    row = estimate.table("robust")[0]
    assert estimate.uncertainty("gauss-newton").std[0] < 0.01 * stiffness
    # Two values that differ by 0.2: their mean is known to about 0.1.
    assert 0.05 * stiffness < row.std < 0.2 * stiffness
    assert estimate.evidence.disagreement.spread[0] == pytest.approx(0.1 * np.sqrt(2.0) * stiffness, rel=0.3)
    [coarsest, *_] = estimate.evidence.disagreement.pieces
    own = [estimate.values["rail.spring.stiffness"] + piece.difference[0] for piece in coarsest]
    assert own[1] - own[0] == pytest.approx(0.2 * stiffness, rel=0.3)


def test_pieces_are_compared_about_what_sits_on_a_bound():
    """Two recordings on both sides of a bound that their mean lies beyond: how far it is off is not known better."""
    stiffness = float(spring_slider().get("rail.spring.stiffness"))
    pair = [recorded(0.9 * stiffness, 1), recorded(1.1 * stiffness, 2)]
    free = {"rail.spring.stiffness": Free(lower=1.02 * stiffness), "rail.spring.damping": None}
    begins = spring_slider().set({"rail.spring.stiffness": 1.1 * stiffness})
    estimate = fit(begins, pair, free, options=OPTIONS)
    assert estimate.at_bound[0]
    assert estimate.uncertainty("gauss-newton").freed_std[0] < 0.01 * stiffness
    assert 0.05 * stiffness < estimate.uncertainty("robust").freed_std[0] < 0.2 * stiffness
    (interval, _) = estimate.uncertainty("robust").intervals(0.95)
    assert interval.upper > 1.1 * stiffness


def test_what_rounding_leaves_of_an_unseen_parameter_moves_no_other():
    """Information of 1e-31 beside a rounding error as large as correlations allow: the others are as without it."""
    seen = np.array([[4.0, 1.0], [1.0, 2.0]])
    whole = np.zeros((3, 3))
    whole[:2, :2], whole[2, 2] = seen, 1e-31
    whole[0, 2] = whole[2, 0] = 0.999 * np.sqrt(4.0 * 1e-31)
    gradient, free, sizes = np.array([1.0, -2.0, 3e-16]), np.ones(3, bool), np.ones(3)
    value, std = estimate_alone(whole, gradient, whole, free, sizes)
    np.testing.assert_allclose(value, [*-np.linalg.solve(seen, gradient[:2]), 0.0], rtol=1e-12)
    np.testing.assert_allclose(std[:2], np.sqrt(np.diagonal(np.linalg.inv(seen))), rtol=1e-12)
    assert std[2] == np.inf
    # In other units the same parameter is seen: its size makes up for it.
    assert np.isfinite(estimate_alone(whole, gradient, whole, free, np.array([1.0, 1.0, 1e15]))[1][2])
