"""Draws of possible machines: regions that hold what they say, bounds, bodies, priors, and mechanisms to simulate."""

import itertools

import numpy as np
import pytest

from estimation.scenes import twin
from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.posterior import DrawError, Posterior, last_prior, with_prior
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.mechanism.second_moments import ENTRIES, inertia_matrix, thickness
from shadowfit.models import builtin

FURUTA = builtin.furuta()
NAMES = ("hinge1.viscous", "hinge2.viscous", "arm.inertia.zz", "pendulum.com.x")
LEVEL = 0.95


def posterior(names, covariance, values=None, degrees=np.inf):
    """A normal posterior of some numbers of the Furuta pendulum about given values."""
    parameters = parameter_set(FURUTA, names)
    about = parameters.start() if values is None else parameters.of_vector(np.asarray(values, float))
    return Posterior(FURUTA, parameters, about, np.asarray(covariance, float), np.full(parameters.size, degrees))


def inside(table, truth, pair):
    """Whether the region that holds 95 % of the draws of a pair, an ellipse about their mean, holds the truth."""
    chosen = table[:, pair]
    centre, inverse = chosen.mean(axis=0), np.linalg.inv(np.cov(chosen.T))
    distance = np.einsum("ni,ij,nj->n", chosen - centre, inverse, chosen - centre)
    return (truth[list(pair)] - centre) @ inverse @ (truth[list(pair)] - centre) <= np.quantile(distance, LEVEL)


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
def test_regions_of_pairs_hold_the_truth_as_often_as_they_say(degrees):
    """A linear machine: estimates are the truth and an error of the covariance that they state."""
    rng = np.random.default_rng(0)
    truth = np.array([1e-3, 2e-4, 0.01, 0.1])
    mixed = rng.normal(size=(4, 4)) * 0.02 * np.abs(truth)[:, None]
    covariance = mixed @ mixed.T
    held = []
    for seed in range(600):
        error = mixed @ rng.standard_normal(4)
        if np.isfinite(degrees):
            error *= np.sqrt(degrees / rng.chisquare(degrees))
        table = posterior(NAMES, covariance, truth + error, degrees).draw(300, seed).table
        held += [inside(table, truth, pair) for pair in itertools.combinations(range(4), 2)]
    assert 0.93 <= np.mean(held) <= 0.97


def test_a_parameter_on_its_bound_is_drawn_beyond_it_and_others_follow():
    """Half a normal distribution with the mean square that it is given; never on the bound itself."""
    std, slope = 1e-4, -2.0
    joint = std**2 * np.array([[1.0, slope], [slope, slope**2 + 0.01]])
    made = posterior(("hinge2.viscous", "pendulum.com.x"), joint, [0.0, 0.1]).draw(4000, 0)
    bound, follower = made.table.T
    assert bound.min() > 0.0
    assert np.mean(bound**2) == pytest.approx(std**2, rel=0.08)
    np.testing.assert_allclose(np.polyfit(bound, follower, 1), [slope, 0.1], rtol=0.02)


def test_all_bodies_are_possible_and_their_moments_are_as_told():
    """Of a body with a mass as unknown as itself, but a known m c, every draw has that m c."""
    names = parameter_set(FURUTA, "pendulum.inertial").names
    start = np.array([FURUTA.get(name) for name in names])
    mass, centre = start[0], start[1:4]
    covariance = np.diag(np.concatenate([[0.0], np.full(3, 1e-12), (0.5 * np.abs(start[4:]).max() * np.ones(6)) ** 2]))
    direction = np.concatenate([[mass], -centre, np.zeros(6)])
    made = posterior("pendulum.inertial", covariance + np.outer(direction, direction)).draw(500, 3)
    by_name = made.to_dict()
    table = np.array([by_name[f"pendulum.inertia.{entry}"] for entry in ENTRIES]).T
    assert np.all(thickness(inertia_matrix(table)) >= 0.0)
    assert by_name["pendulum.mass"].min() > 0.0
    assert np.ptp(by_name["pendulum.mass"]) > mass
    first = by_name["pendulum.mass"] * by_name["pendulum.com.x"]
    assert np.std(first) < 0.02 * np.abs(mass * centre[0])
    made.mechanism(0).check()


def test_the_same_seed_gives_the_same_machines():
    covariance = np.diag([1e-10, 1e-10])
    one, same, other = (posterior(NAMES[:2], covariance).draw(5, seed).table for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.all(one != other)


def test_what_nobody_has_told_is_known_to_its_own_size_and_combinations_stay():
    """Of a + b alone the data know something; a has no prior."""
    difference = 100.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    known = last_prior(np.array([True, True]), np.array([0.3, 0.4]))
    found = with_prior(difference + 1e-6 * np.eye(2), known)
    assert np.sum(found) == pytest.approx(2e-6, rel=0.01)
    assert found[0, 0] == pytest.approx(1.0 / (1.0 / 0.09 + 1.0 / 0.16), rel=0.01)


@pytest.fixture(scope="module")
def estimate():
    recording = twin(builtin.pendulum(), {"hinge": 2.5}, 100, noise=1e-3)
    return fit(builtin.pendulum(), recording, {"hinge.viscous": Free(upper=1.0), "pendulum.inertia.yy": None})


def test_an_estimate_draws_what_its_table_says(estimate):
    made = estimate.draw(4000, red=True)
    np.testing.assert_allclose(made.table.mean(axis=0), [row.value for row in estimate.parameters], rtol=1e-2)
    # Student's distribution is wider than its scale.
    degrees = estimate.uncertainty().degrees
    std = [row.std for row in estimate.parameters] * np.sqrt(degrees / (degrees - 2.0))
    np.testing.assert_allclose(made.table.std(axis=0), std, rtol=0.05)
    assert made.to_polars().columns == list(made.to_pandas().columns) == [row.name for row in estimate.parameters]
    for name in made.labels:
        assert made.mechanism(7).get(name) == pytest.approx(made.to_dict()[name][7], rel=1e-12)


@pytest.mark.parametrize(("count", "message"), [(0, "at least 1"), (-3, "at least 1"), (2.5, "whole number")])
def test_an_impossible_number_of_draws_is_refused(estimate, count, message):
    with pytest.raises(DrawError, match=message):
        estimate.draw(count, red=True)


def test_a_fit_without_free_parameters_has_nothing_to_draw(estimate):
    recording = estimate.problem.tracks[0].recording
    with pytest.raises(DrawError, match="no free parameters"):
        fit(builtin.pendulum(), recording, (), options=Options(state_weight=100.0)).draw(3, red=True)


def test_a_red_result_is_drawn_from_on_demand_alone(estimate):
    recording = estimate.problem.tracks[0].recording
    wrong = fit(builtin.pendulum().set({"pendulum.mass": 5.0}), recording, "hinge.viscous")
    assert wrong.verdict == "red"
    with pytest.raises(DrawError, match="red=True"):
        wrong.draw(3)
    assert len(wrong.draw(3, red=True)) == 3


def test_priors_are_added_as_information():
    """As with inverses, where there are any; of a parameter that is held nothing comes back."""
    rng = np.random.default_rng(2)
    mixed, other = rng.normal(size=(2, 4, 4))
    covariance, information = mixed @ mixed.T, other[:, :2] @ other[:, :2].T
    expected = np.linalg.inv(np.linalg.inv(covariance) + information)
    np.testing.assert_allclose(with_prior(covariance, information), expected, rtol=1e-9)
    covariance[2], covariance[:, 2] = 0.0, 0.0
    assert not with_prior(covariance, information)[2].any()
    assert np.isnan(with_prior(np.full((4, 4), np.nan), information)).all()


def test_a_sum_that_the_data_tell_stays_known_in_every_draw():
    """Of an arm and of the rotor that turns with it only the sum of their inertias."""
    truth = {"hinge1.motor.shaft_inertia": 1e-3, "hinge1.viscous": 2e-3, "hinge2.viscous": 2e-4}
    machine = FURUTA.set(truth)
    torque = 0.2 * np.sin(0.15 * np.arange(200)) + 0.1 * np.sin(0.4 * np.arange(200))
    recording = twin(machine, {"hinge2": 0.5}, 200, noise=1e-3, inputs={"u": torque})
    names = ("arm.inertia.zz", "hinge1.motor.shaft_inertia", "hinge2.viscous")
    estimate = fit(machine, recording, names)
    told = next(one for one in estimate.base_parameters.combinations if names[0] in one.coefficients)
    drawn = estimate.draw(500, red=True).to_dict()
    total = sum(factor * drawn[name] for name, factor in told.coefficients.items())
    assert np.mean(total) == pytest.approx(told.value, abs=0.3 * told.std)
    assert np.std(total) == pytest.approx(told.std, rel=0.3)
    assert np.std(drawn[names[0]]) > 5.0 * told.std
