"""The parameter step within bounds: optimality, agreement with enumeration and SciPy, both ways to the active set."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from shadowfit.complementarity import Status
from shadowfit.estimation.linear import box_step as module
from shadowfit.estimation.linear.box_step import BoundsError, box_step, parameter_covariance, solve_on


def random_problem(rng, p, spread=3.0):
    """Rows, residual and a box around zero: infinite, tight, zero-width and zero-distance bounds.

    Units of the variables differ by ``10^±spread``; ``unit`` is the size at which a variable changes the rows by one.
    """
    J = rng.normal(size=(p + 4, p)) * 10.0 ** rng.uniform(-spread, spread, size=p)
    r = 3.0 * rng.normal(size=p + 4)
    unit = 1.0 / np.linalg.norm(J, axis=0)
    lower, upper = -unit * rng.exponential(size=p), unit * rng.exponential(size=p)
    kind = rng.integers(6, size=p)
    lower[(kind == 0) | (kind == 1)] = -np.inf
    upper[(kind == 1) | (kind == 2)] = np.inf
    lower[kind == 3] = 0.0
    upper[kind == 4] = 0.0
    fixed = rng.random(p) < 0.1
    lower[fixed] = upper[fixed] = unit[fixed]
    return J, r, lower, upper, unit


def by_enumeration(H, g, lower, upper):
    """The best of all points that are optimal for some choice of active bounds."""
    best, lowest = None, np.inf
    for choice in map(np.array, itertools.product((-1, 0, 1), repeat=len(g))):
        point = np.where(choice < 0, lower, np.where(choice > 0, upper, 0.0))
        if not np.all(np.isfinite(point)):
            continue
        free = choice == 0
        point[free] = np.linalg.solve(H[np.ix_(free, free)], -(g + H @ point)[free])
        value = 0.5 * point @ H @ point + g @ point
        if np.all(point >= lower) and np.all(point <= upper) and value < lowest:
            best, lowest = point, value
    return best


@pytest.fixture(params=["newton", "lemke"])
def route(request, monkeypatch):
    """Both ways to the active set: steps on the host, and the complementarity solver alone."""
    if request.param == "lemke":
        monkeypatch.setattr(module, "NEWTON_STEPS", 0)
    return request.param


@pytest.mark.parametrize("seed", range(40))
def test_equals_enumeration(route, seed):
    J, r, lower, upper, unit = random_problem(np.random.default_rng(seed), 4)
    lower[lower == upper] -= unit[lower == upper]
    found = box_step(J.T @ J, J.T @ r, lower, upper)
    assert found.ok
    expected = by_enumeration(J.T @ J, J.T @ r, lower, upper)
    np.testing.assert_allclose(found.step / unit, expected / unit, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_equals_bounded_least_squares(route, seed):
    J, r, lower, upper, unit = random_problem(np.random.default_rng(seed), 13)
    fixed = lower == upper
    lower[fixed] -= unit[fixed]
    found = box_step(J.T @ J, J.T @ r, lower, upper)
    assert found.ok
    expected = lsq_linear(J * unit, -r, (lower / unit, upper / unit), method="bvls", tol=1e-15).x
    np.testing.assert_allclose(found.step / unit, expected, rtol=0.0, atol=1e-9)


# Few sizes: each one that needs Lemke's method compiles it.
@given(seed=st.integers(0, 2**32 - 1), p=st.sampled_from([1, 4, 13]))
def test_optimality_conditions(seed, p):
    J, r, lower, upper, unit = random_problem(np.random.default_rng(seed), p)
    H, g = J.T @ J, J.T @ r
    found = box_step(H, g, lower, upper)
    assert found.ok
    slope = found.gradient * unit
    np.testing.assert_allclose(found.gradient, H @ found.step + g)
    assert np.all((lower <= found.step) & (found.step <= upper))
    assert np.array_equal(found.step[found.at_lower], lower[found.at_lower])
    assert np.array_equal(found.step[found.at_upper], upper[found.at_upper])
    only_lower, only_upper = found.at_lower & ~found.at_upper, found.at_upper & ~found.at_lower
    size = 1e-9 * np.linalg.norm(r)
    assert np.all(slope[only_lower] >= -size)
    assert np.all(slope[only_upper] <= size)
    assert np.all(np.abs(slope[~found.at_lower & ~found.at_upper]) <= size)
    assert np.array_equal(found.at_lower & found.at_upper, lower == upper)


def test_guess_changes_nothing_but_the_way():
    rng = np.random.default_rng(0)
    J, r, lower, upper, unit = random_problem(rng, 10)
    H, g = J.T @ J, J.T @ r
    found = box_step(H, g, lower, upper)
    wrong = box_step(H, -g, lower, upper)
    assert not np.array_equal(wrong.at_lower, found.at_lower)
    for guess in (found, wrong):
        again = box_step(H, g, lower, upper, guess)
        np.testing.assert_allclose(again.step / unit, found.step / unit, rtol=0.0, atol=1e-12)
        assert np.array_equal(again.at_lower, found.at_lower)
        assert np.array_equal(again.at_upper, found.at_upper)


def test_far_bounds_do_not_spoil_near_ones(route):
    """One bound is met at −1, the others are finite but 1e15 away."""
    H = np.diag([2.0, 3.0, 1.0, 2.0]) + 0.3
    g = np.array([4.0, -1.0, 0.3, 0.0])
    found = box_step(H, g, np.array([-1.0, -1e15, -1e15, -1e15]), np.full(4, 1e15))
    others = np.linalg.solve(H[1:, 1:], -(g[1:] - H[1:, 0]))
    assert found.ok
    np.testing.assert_allclose(found.step, [-1.0, *others], rtol=1e-13)
    assert found.at_lower.tolist() == [True, False, False, False]


def test_all_variables_fixed_or_none_at_all(route):
    found = box_step(-np.eye(2), np.ones(2), np.array([1.0, -2.0]), np.array([1.0, -2.0]))
    assert found.ok
    assert found.step.tolist() == [1.0, -2.0]
    empty = box_step(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0))
    assert empty.ok
    assert empty.step.shape == (0,)


@pytest.mark.parametrize("matrix", [np.diag([1.0, -1.0]), np.ones((2, 2)) - 1e-3 * np.eye(2), np.full((2, 2), np.nan)])
def test_matrix_that_is_not_positive_definite_gives_a_status(matrix):
    found = box_step(matrix, np.ones(2), -np.ones(2), np.ones(2))
    assert not found.ok
    assert found.status is Status.INACCURATE
    assert found.step.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("lower", "upper"), [(1.0, -1.0), (np.nan, 1.0)])
def test_impossible_bounds_are_named(lower, upper):
    with pytest.raises(BoundsError, match="variable 1"):
        box_step(np.eye(2), np.ones(2), np.array([0.0, lower]), np.array([0.0, upper]))


def test_covariance_is_the_inverse_on_the_free_parameters():
    unit = np.array([1e6, 1.0, 1e-5, 1e2])
    J = np.random.default_rng(1).normal(size=(9, 4))
    H = J.T @ J / np.outer(unit, unit)
    free = np.array([True, False, True, True])
    whole, kept = np.linalg.inv(J.T @ J), np.linalg.inv(J[:, free].T @ J[:, free])
    np.testing.assert_allclose(parameter_covariance(H) / np.outer(unit, unit), whole, rtol=0.0, atol=1e-13)
    covariance = parameter_covariance(H, free) / np.outer(unit, unit)
    np.testing.assert_allclose(covariance[np.ix_(free, free)], kept, rtol=0.0, atol=1e-13)
    assert not covariance[1].any()
    assert not covariance[:, 1].any()
    assert parameter_covariance(np.ones((2, 2)) - 1e-3 * np.eye(2)) is None


def test_solve_on_takes_columns():
    H = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    free = np.array([True, False, True])
    right = np.arange(6.0).reshape(3, 2)
    solved = solve_on(H, free, right)
    np.testing.assert_allclose((H @ solved)[free], right[free])
    assert not solved[1].any()
