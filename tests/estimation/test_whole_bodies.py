"""Bodies all of whose inertial numbers are free: moments, their slopes, and steps that are straight in them."""

import numpy as np
import pytest

from shadowfit.estimation.linear.cone_step import Cones, joined
from shadowfit.estimation.problem.parameter import Free
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.whole_bodies import MARGIN, WholeBodies, moments, numbers_of, slopes
from shadowfit.models import load_model


@pytest.fixture
def numbers():
    """Three possible bodies: points of mass in random places."""
    rng = np.random.default_rng(3)
    found = []
    for count in (4, 6, 9):
        mass, place = rng.uniform(0.1, 1.0, count), rng.normal((0.2, -0.4, 0.1), size=(count, 3))
        com = mass @ place / mass.sum()
        apart = place - com
        inertia = np.einsum("n,nij->ij", mass, np.sum(apart**2, axis=1)[:, None, None] * np.eye(3)) - np.einsum(
            "n,ni,nj->ij", mass, apart, apart
        )
        found.append([mass.sum(), *com, *inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]])
    return np.array(found)


def test_moments_and_back(numbers):
    np.testing.assert_allclose(numbers_of(moments(numbers)), numbers, rtol=1e-12, atol=1e-12)


def test_moments_are_sums_over_masses():
    place, mass = np.array([[0.3, -0.2, 0.5], [-0.1, 0.4, 0.2]]), np.array([0.7, 0.4])
    com = mass @ place / mass.sum()
    apart = place - com
    inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(mass, apart, strict=True))
    body = np.array([[mass.sum(), *com, *inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]]])
    second = np.einsum("n,ni,nj->ij", mass, place, place)
    expected = [mass.sum(), *(mass @ place), *second[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]]
    np.testing.assert_allclose(moments(body)[0], expected, rtol=1e-12)


def test_slopes_are_finite_differences(numbers):
    step = 1e-6
    for place in range(10):
        moved = step * np.eye(10)[place]
        difference = (moments(numbers + moved) - moments(numbers - moved)) / (2.0 * step)
        np.testing.assert_allclose(slopes(numbers)[:, :, place], difference, rtol=1e-7, atol=1e-8)


def test_steps_are_straight_in_moments(numbers):
    bodies = WholeBodies(np.arange(30).reshape(3, 10))
    rng, flat = np.random.default_rng(5), np.append(numbers.ravel(), 2.0)
    step = 0.02 * rng.normal(size=31)
    moved = bodies.moved(flat, step)
    assert moved[30] == 2.0 + step[30]
    expected = moments(numbers) + np.einsum("bij,bj->bi", slopes(numbers), step[:30].reshape(3, 10))
    np.testing.assert_allclose(moments(moved[:30].reshape(3, 10)), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(bodies.between(moved, flat), step, rtol=1e-9, atol=1e-12)
    tangent = bodies.tangent(flat)
    np.testing.assert_allclose(tangent[:30, :30] @ _blocks(slopes(numbers)), np.eye(30), atol=1e-10)


def _blocks(each):
    whole = np.zeros((30, 30))
    for i, one in enumerate(each):
        whole[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = one
    return whole


def test_edge_of_the_cone_is_that_of_possible_bodies(numbers):
    bodies = WholeBodies(np.arange(10).reshape(1, 10))
    flat = numbers[0]
    cones = bodies.cones(flat)
    inertia = np.array([[flat[4], flat[7], flat[8]], [flat[7], flat[5], flat[9]], [flat[8], flat[9], flat[6]]])
    thickest, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    for spare, inside in ((1e-3, True), (-1e-3, False)):
        # The second moments lose nearly all, or a little more than all, of their smallest principal one.
        taken = thickest[0] * (1.0 - spare) * np.outer(axes[:, 0], axes[:, 0])
        step = np.zeros(10)
        step[4:] = -taken[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        assert bool(np.all(np.linalg.eigvalsh(cones.at(step)) > 0.0)) is inside
    assert MARGIN < 1e-6


def test_cones_of_two_sizes_are_one_list():
    small = Cones(2.0 * np.eye(3)[None], np.array([[0]]), -np.eye(3)[None, None])
    large = Cones(np.eye(4)[None], np.array([[1, 2]]), np.stack([np.eye(4), -np.eye(4)])[None])
    both = joined(small, large)
    for step in np.array([[0.5, 0.1, 0.2], [1.9, 0.0, 0.5], [2.5, 0.0, 0.0], [0.0, 0.0, 1.5]]):
        assert both.contain(step) == (small.contain(step) and large.contain(step))
    np.testing.assert_allclose(both.barrier(np.array([0.5, 0.1, 0.2]))[0], [2.0, -4.0 / 0.9, 4.0 / 0.9])


def test_bodies_are_whole_where_all_is_free_and_nothing_bounded():
    mechanism = load_model("furuta").mechanism
    body = next(iter(mechanism.bodies))
    assert len(parameter_set(mechanism, [f"{body}.inertial"]).whole) == 1
    assert len(parameter_set(mechanism, [f"{body}.mass", f"{body}.inertia.*"]).whole) == 0
    bounded = {f"{body}.inertial": None, f"{body}.com.x": Free(lower=-1.0, upper=1.0)}
    assert len(parameter_set(mechanism, bounded).whole) == 0
    each = {f"{body}.inertial": None, f"{body}.mass": Free(per_recording=True)}
    assert len(parameter_set(mechanism, each, recordings=2).whole) == 0
    apart = {f"{body}.inertial": Free(per_recording=True)}
    assert len(parameter_set(mechanism, apart, recordings=2).whole) == 2
