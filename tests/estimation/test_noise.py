"""Noise levels from the data: degrees of freedom against derivatives of the determinant, and the plateau of κ."""

import dataclasses

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Options, fit, objective
from shadowfit.estimation.noise import log_determinant, sensor_levels

pytestmark = pytest.mark.slow

FREE = {"rail.spring.stiffness": 8.0, "rail.spring.damping": 0.5}


@pytest.fixture(scope="module")
def recording():
    return twin(spring_slider(), {"rail": 0.3}, 200, timestep=0.02, noise=1e-2)


def test_level_counts_the_unknowns_that_a_sensor_determines(recording):
    """γ = ∂ log det H/∂ log(1/σ²), here by differences."""
    estimate = fit(spring_slider(), recording, FREE, options=Options(timestep=0.02, state_weight=10.0))
    here, weights = estimate.outcome.linearisation, estimate.weights
    values = []
    for factor in (np.exp(-5e-4), np.exp(5e-4)):
        changed = dataclasses.replace(weights, std=tuple(np.array(weights.std) / factor))
        values.append(log_determinant(estimate.problem, objective.linearise(estimate.problem, here.point, changed)))
    determined = (values[1] - values[0]) / 2e-3
    expected = np.sqrt(here.cost.observation / weights.reference**2 / (estimate.problem.sample_count() - determined))
    assert sensor_levels(estimate.problem, here, weights)[0] == pytest.approx(expected, rel=1e-5)


def test_estimated_weight_lies_on_the_plateau_of_the_sweep(recording):
    """No impulse errors: from some κ on the estimates stay, and the estimated κ lies there."""
    found = {}
    for state_weight in (1.0, 1e2, 1e4, 1e6):
        estimate = fit(spring_slider(), recording, FREE, options=Options(timestep=0.02, state_weight=state_weight))
        found[state_weight] = np.array([row.value for row in estimate.parameters])
    auto = fit(spring_slider(), recording, FREE, options=Options(timestep=0.02, state_weight="auto"))
    values = np.array([row.value for row in auto.parameters])
    std = np.array([row.std for row in auto.parameters])
    assert auto.state_weight >= 1e2
    assert np.all(np.abs(values - found[1e6]) < std)
    assert np.all(np.abs(found[1.0] - found[1e6]) > std)  # below the plateau
    assert auto.noise["x"] == pytest.approx(1e-2, rel=0.15)
