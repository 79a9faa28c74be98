"""Levels of the noise of joints and sensors: the planted ones are found, and slopes are those of the likelihood."""

import dataclasses

import numpy as np
import pytest

from estimation.scenes import spring_slider
from shadowfit.estimation import ErrorModel, LevenbergMarquardt, Options, fit
from shadowfit.estimation.solve.levenberg_marquardt import minimise
from shadowfit.estimation.uncertainty.evidence import gather
from shadowfit.estimation.uncertainty.levels import LevelStep, level_step
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.recordings import Recording

FREE = {"rail.spring.stiffness": 8.0, "rail.spring.damping": 0.5}
TIMESTEP = 0.02


@pytest.fixture(scope="module")
def recording():
    """A slider whose spring is pushed by a white force of 0.5 N, read with 1 mm."""
    rng, machine = np.random.default_rng(3), spring_slider()
    mass = float(machine.bodies.values[0].mass)
    stiffness, damping = (float(machine.get(f"rail.spring.{key}")) for key in ("stiffness", "damping"))
    fine, x, v, read = 20, 0.3, 0.0, []
    for _ in range(600):
        read.append(x)
        force = 0.5 * rng.normal()
        for _ in range(fine):
            v += TIMESTEP / fine * (force - stiffness * x - damping * v) / mass
            x += TIMESTEP / fine * v
    return Recording(TIMESTEP * np.arange(600), {"x": np.array(read) + 1e-3 * rng.normal(size=600)})


def test_planted_levels_are_found(recording):
    machine = spring_slider(std=4e-3)
    options = Options(timestep=TIMESTEP, unknowns="joint", correction="deferred", state_weight="auto")
    estimate = fit(machine, recording, FREE, options=options)
    assert estimate.converged
    assert estimate.noise["x"] == pytest.approx(1e-3, rel=0.3)
    assert estimate.unexplained["rail"] == pytest.approx(0.5, rel=0.3)
    for row in estimate.parameters:
        assert abs(row.value - float(machine.get(row.name))) < 3.5 * row.std


def test_given_force_noise_counts(recording):
    options = Options(timestep=TIMESTEP, unknowns="joint", correction="deferred", state_weight="auto")
    given = dataclasses.replace(options, errors=ErrorModel({"rail": 2.0}))
    estimate = fit(spring_slider(std=1e-3), recording, FREE, options=given)
    assert estimate.unexplained["rail"] == pytest.approx(2.0, rel=0.05)


def test_slopes_are_those_of_the_likelihood(recording):
    """``D − S`` against differences of −2 log L, for the joint and for the sensor."""
    options = Options(timestep=TIMESTEP, unknowns="joint", correction="none", state_weight=30.0)
    estimate = fit(spring_slider(std=1e-3), recording, FREE, options=options)
    tight = LevenbergMarquardt(start_damping=1e-12, decrease_tolerance=1e-12)
    problem, shift = estimate.problem, 0.02

    def at(impulses, sensors):
        weights = estimate.weights.with_levels(np.array([np.exp(impulses)]), np.array([np.exp(sensors)]))
        outcome = minimise(problem, estimate.outcome.linearisation.point, weights, tight)
        return outcome, weights, deviance(problem, outcome.linearisation, weights, adapt=False)[0]

    outcome, weights, _ = at(0.0, 0.0)
    evidence = gather(problem, outcome.linearisation, weights)
    step = level_step(problem, weights, evidence)
    degrees = np.array([evidence.noise[0].degrees, evidence.noise[1].degrees])
    slopes = 2.0 * degrees * (1.0 - step.ratios**2)
    for i, direction in enumerate(np.eye(2)):
        up, down = (at(*(sign * shift * direction))[2] for sign in (1.0, -1.0))
        assert slopes[i] == pytest.approx((up - down) / (2.0 * shift), rel=0.02, abs=1.0)


def test_parts_of_a_step_make_up_the_whole():
    """In the logarithms of the levels: a quarter of it and three quarters lead where it leads."""
    step = LevelStep(np.array([0.5, 4.0]), np.array([9.0]), np.ones(3), 8.0)
    quarter, rest = step.shortened(0.25), step.shortened(0.75)
    np.testing.assert_allclose(quarter.impulses * rest.impulses, step.impulses)
    np.testing.assert_allclose(quarter.sensors * rest.sensors, step.sensors)
    assert step.largest == pytest.approx(9.0)
    assert quarter.largest == pytest.approx(9.0**0.25)
    # A parabola that falls by 8 at its end has fallen by less than half of that after a quarter, by most after three.
    assert 0.0 < quarter.gain < 0.5 * step.gain < rest.gain < step.gain
