"""Priors: the same for a body however it is written down, what they mean, and their derivatives."""

import types

import numpy as np
import pytest

from shadowfit.estimation import Free
from shadowfit.estimation.problem.parameter import ParameterError
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.priors import entropic_information
from shadowfit.estimation.problem.whole_bodies import WholeBodies, moments, pseudo_inertia, slopes
from shadowfit.estimation.solve import objective
from shadowfit.geometry.rotations import to_matrix
from shadowfit.mechanism import Body, Mechanism, hinge
from shadowfit.mechanism.second_moments import inertia_matrix
from shadowfit.models.robots.inertia import MassProperties

TEN = WholeBodies(np.arange(10)[None])


def cloud(rng):
    """Mass properties of a cloud of points."""
    points, mass = rng.normal(size=(20, 3)) * [0.3, 0.2, 0.1], rng.uniform(1.0, 3.0)
    com = points.mean(axis=0)
    apart = points - com
    inertia = mass * np.mean([p @ p * np.eye(3) - np.outer(p, p) for p in apart], axis=0)
    return MassProperties(mass, com, inertia)


def numbers(body):
    entries = body.inertia[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
    return np.array([body.mass, *body.com, *entries])


def distance(body, start):
    step = TEN.between(numbers(body), numbers(start))
    return step @ entropic_information(numbers(start)[None])[0] @ step


def test_the_distance_of_two_bodies_is_the_same_in_every_frame_and_unit():
    rng = np.random.default_rng(0)
    one, other, turn = cloud(rng), cloud(rng), rng.normal(size=4)
    rotation, shift = to_matrix(turn / np.linalg.norm(turn)), rng.normal(size=3)
    moved = [body.moved(rotation, shift) for body in (one, other)]
    assert distance(*moved) == pytest.approx(distance(one, other), rel=1e-6)
    small = [MassProperties(1e3 * b.mass, 1e2 * b.com, 1e7 * b.inertia) for b in (one, other)]  # g and cm
    assert distance(*small) == pytest.approx(distance(one, other), rel=1e-6)


def test_it_is_twice_the_relative_entropy_of_bodies_that_differ_little():
    rng = np.random.default_rng(1)
    start = cloud(rng)
    phi = moments(numbers(start)[None])
    step = 1e-3 * rng.normal(size=10) * np.abs(phi[0])
    forms = [pseudo_inertia(own, np.ones(1))[0] for own in (phi, phi + step)]
    ratio = np.linalg.solve(forms[0], forms[1])
    entropy = np.trace(ratio) - np.log(np.linalg.det(ratio)) - 4.0
    body = TEN.moved(numbers(start), np.linalg.solve(slopes(numbers(start)[None])[0], step))
    near = MassProperties(body[0], body[1:4], inertia_matrix(body[4:]))
    assert distance(near, start) == pytest.approx(2.0 * entropy, rel=0.02)


def test_what_it_says_of_mass_and_centre():
    second = np.array([0.04, 0.01, 0.0025])
    body = MassProperties(2.0, np.zeros(3), np.diag(second.sum() - second))
    spread = np.sqrt(np.diagonal(np.linalg.inv(entropic_information(numbers(body)[None])[0])))
    np.testing.assert_allclose(spread[0], 2.0, rtol=1e-6)
    np.testing.assert_allclose(spread[1:4], np.sqrt(second / 2.0 / 2.0), rtol=1e-6)


def link():
    rng = np.random.default_rng(2)
    body = cloud(rng)
    entries = numbers(body)[4:]
    return Mechanism({"link": Body(body.mass, tuple(entries), tuple(body.com))}, {"joint": hinge("world", "link")})


@pytest.mark.parametrize("known", [Free(entropic=0.3), Free(prior=0.2)])
def test_the_gradient_of_a_prior_is_that_of_its_cost(known):
    """Also away from the start, where a step of a whole body means another change of its ten numbers."""
    parameters = parameter_set(link(), {"link.inertial": known})
    weights = types.SimpleNamespace(reference=0.7, pull=None, file_spread=np.inf)
    values = parameters.plus(parameters.start(), 0.05 * np.abs(parameters.flat(parameters.start())))
    matrix, gradient, _ = objective.prior(parameters, values, weights)

    def cost(step):
        return objective.prior(parameters, parameters.plus(values, step), weights)[2]

    for place, size in enumerate(np.abs(parameters.flat(values))):
        step = 1e-4 * size * np.eye(10)[place]
        assert (cost(step) - cost(-step)) / 2e-4 / size == pytest.approx(2.0 * gradient[place], rel=1e-5)
        bend = (cost(step) + cost(-step) - 2.0 * cost(0.0 * step)) / (1e-4 * size) ** 2
        assert bend == pytest.approx(2.0 * matrix[place, place], rel=1e-3)


@pytest.mark.parametrize(
    ("free", "message"),
    [
        ({"link.mass": Free(entropic=0.3)}, "needs a body all of whose inertial numbers are free"),
        ({"link.inertial": Free(entropic=0.3), "link.mass": Free(prior=0.1)}, "must be the same for all"),
        ({"link.inertial": Free(entropic=-1.0)}, "must be positive"),
    ],
)
def test_impossible_entropic_priors_are_refused(free, message):
    with pytest.raises(ParameterError, match=message):
        parameter_set(link(), free)
