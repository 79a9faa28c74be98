"""The step within bounds and cones: the optimality conditions, the step of the box where it is inside, all subsets."""

import itertools

import numpy as np
import pytest

from shadowfit.estimation.linear.box_step import box_step
from shadowfit.estimation.linear.cone_step import cone_step
from shadowfit.estimation.problem.solids import entry_cones, step_inside
from shadowfit.mechanism.second_moments import inertia_matrix, second_moments, thickness

BRICK = np.array([2.0, 3.0, 4.0, 0.2, -0.1, 0.3])


def program(seed, size=6):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((size + 2, size))
    return table.T @ table, 10.0 * rng.standard_normal(size)


def free_bounds(size=6):
    return np.full(size, -np.inf), np.full(size, np.inf)


@pytest.mark.parametrize("seed", range(8))
def test_the_step_is_optimal(seed):
    """``Hδ + g`` is a nonnegative combination of the cones' normals, whose matrices are orthogonal to C."""
    matrix, gradient = program(seed)
    cones = entry_cones(BRICK[None], np.arange(6)[None])
    found = cone_step(matrix, gradient, free_bounds(), cones)
    assert found.ok
    entries = BRICK + found.step
    assert thickness(inertia_matrix(entries)) > 0.0
    value = 0.5 * found.step @ matrix @ found.step + gradient @ found.step
    rng = np.random.default_rng(100 + seed)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            other = found.step + size * rng.standard_normal(6)
            if cones.contain(other):
                assert 0.5 * other @ matrix @ other + gradient @ other >= value - 1e-7 * abs(value)


def test_a_step_that_stays_inside_is_the_step_of_the_box():
    matrix, gradient = program(0)
    cones = entry_cones(BRICK[None], np.arange(6)[None])
    bounds = np.full(6, -0.05), np.full(6, 0.05)
    found, plain = (f(matrix, gradient, *how) for f, how in ((cone_step, (bounds, cones)), (box_step, bounds)))
    np.testing.assert_array_equal(found.step, plain.step)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_any_subset_of_the_entries_stays_possible(count):
    matrix, gradient = program(3, count)
    for chosen in itertools.combinations(range(6), count):
        places = np.full((1, 6), -1)
        places[0, list(chosen)] = np.arange(count)
        found = cone_step(matrix, 30.0 * gradient, free_bounds(count), entry_cones(BRICK[None], places))
        entries = BRICK.copy()
        entries[list(chosen)] += found.step
        assert found.ok
        assert np.linalg.eigvalsh(inertia_matrix(entries))[0] > 0.0
        assert thickness(inertia_matrix(entries)) > 0.0


def test_one_moment_ends_where_the_triangle_inequality_does():
    cones = entry_cones(np.array([[2.0, 3.0, 4.0, 0.0, 0.0, 0.0]]), np.array([[-1, -1, 0, -1, -1, -1]]))
    up, down = (cone_step(np.eye(1), np.array([g]), free_bounds(1), cones).step[0] for g in (-9.0, 9.0))
    assert up == pytest.approx(1.0, abs=1e-6)
    assert down == pytest.approx(-3.0, abs=1e-6)


def test_bounds_and_cones_together():
    matrix, gradient = np.eye(6), -np.array([9.0, 0.0, 9.0, 0.0, 0.0, 0.0])
    bounds = np.full(6, -1.0), np.array([0.5, 0.25, np.inf, 1.0, 1.0, 1.0])
    start = np.array([2.0, 3.0, 4.0, 0.0, 0.0, 0.0])
    found = cone_step(matrix, gradient, bounds, entry_cones(start[None], np.arange(6)[None]))
    # zz is held back by the sum of xx and yy; these go as far as their bounds allow.
    np.testing.assert_allclose(start[:3] + found.step[:3], [2.5, 3.25, 5.75], atol=1e-6)
    assert found.step[0] == 0.5
    assert found.at_upper[:2].all()


def test_scale_free():
    matrix, gradient = program(1)
    cones = entry_cones(BRICK[None], np.arange(6)[None])
    small = entry_cones(1e-9 * BRICK[None], np.arange(6)[None])
    found = cone_step(matrix, gradient, free_bounds(), cones).step
    same = cone_step(1e18 * matrix, 1e9 * gradient, free_bounds(), small).step
    np.testing.assert_allclose(1e9 * same, found, rtol=1e-5, atol=1e-6)


def test_the_way_in_is_the_shortest():
    rng = np.random.default_rng(4)
    for _ in range(10):
        outside = np.array([*np.abs(rng.standard_normal(3)), *rng.standard_normal(3)])
        cones = entry_cones(outside[None], np.arange(6)[None])
        step = step_inside(cones, np.ones(6), *free_bounds())
        moved = second_moments(inertia_matrix(outside + step))
        assert np.linalg.eigvalsh(moved)[0] > 0.0
        for _ in range(200):
            other = step + 0.05 * rng.standard_normal(6)
            if cones.contain(other):
                assert np.linalg.norm(other) >= np.linalg.norm(step) - 1e-5


def test_nothing_is_found_where_nothing_is():
    cones = entry_cones(np.array([[1.0, 1.0, 5.0, 0.0, 0.0, 0.0]]), np.array([[-1, -1, -1, 0, -1, -1]]))
    assert step_inside(cones, np.ones(1), *free_bounds(1)) is None


def test_a_cone_that_does_not_hold_the_start_has_no_say():
    matrix, gradient = program(2)
    outside = np.array([1.0, 1.0, 5.0, 0.0, 0.0, 0.0])
    found = cone_step(matrix, gradient, free_bounds(), entry_cones(outside[None], np.arange(6)[None]))
    assert found.ok
    # Its inertia is positive definite all the same, and stays so.
    assert np.linalg.eigvalsh(inertia_matrix(outside + found.step))[0] > 0.0
