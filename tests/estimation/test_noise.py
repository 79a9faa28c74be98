"""Noise levels from the data: degrees of freedom against derivatives of the determinant, the plateau and peak of κ."""

import dataclasses

import numpy as np
import pytest

from benchmarks.rigs import coverage
from estimation.scenes import POSES, spring_slider, twin
from shadowfit.estimation import LevenbergMarquardt, Options, fit
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import Status, minimise
from shadowfit.estimation.uncertainty.evidence import gather
from shadowfit.estimation.uncertainty.levels import level_step
from shadowfit.estimation.uncertainty.likelihood import deviance, log_determinant

pytestmark = pytest.mark.slow

FREE = {"rail.spring.stiffness": 8.0, "rail.spring.damping": 0.5}


@pytest.fixture(scope="module")
def recording():
    return twin(spring_slider(), {"rail": 0.3}, 200, timestep=0.02, noise=1e-2)


def test_level_counts_the_unknowns_that_a_sensor_determines(recording):
    """γ = ∂ log det H/∂ log(1/σ²), here by differences."""
    estimate = fit(spring_slider(), recording, FREE, options=Options(**POSES, timestep=0.02, state_weight=10.0))
    here, weights = estimate.outcome.linearisation, estimate.weights
    values = []
    for factor in (np.exp(-5e-4), np.exp(5e-4)):
        changed = dataclasses.replace(weights, std=tuple(np.array(weights.std) / factor))
        values.append(log_determinant(estimate.problem, objective.linearise(estimate.problem, here.point, changed)))
    determined = (values[1] - values[0]) / 2e-3
    expected = np.sqrt(here.cost.observation / weights.reference**2 / (estimate.problem.sample_count() - determined))
    step = level_step(estimate.problem, weights, gather(estimate.problem, here, weights))
    assert step.ratios[-1] == pytest.approx(expected, rel=1e-5)


def test_estimated_weight_lies_on_the_plateau_of_the_sweep(recording):
    """No impulse errors: from some κ on the estimates stay, and the estimated κ lies there."""
    found = {}
    for state_weight in (1.0, 1e2, 1e4, 1e6):
        estimate = fit(
            spring_slider(), recording, FREE, options=Options(**POSES, timestep=0.02, state_weight=state_weight)
        )
        found[state_weight] = np.array([row.value for row in estimate.parameters])
    auto = fit(spring_slider(), recording, FREE, options=Options(**POSES, timestep=0.02, state_weight="auto"))
    values = np.array([row.value for row in auto.parameters])
    std = np.array([row.std for row in auto.parameters])
    assert auto.state_weight >= 1e2
    assert np.all(np.abs(values - found[1e6]) < std)
    assert np.all(np.abs(found[1.0] - found[1e6]) > std)  # below the plateau
    assert auto.noise["x"] == pytest.approx(1e-2, rel=0.15)


def test_slope_and_scale_belong_to_the_likelihood(recording):
    """``∂(−2 log L)/∂ log κ`` by differences, at the most likely common scale."""
    estimate = fit(spring_slider(), recording, FREE, options=Options(**POSES, timestep=0.02, state_weight=100.0))
    tight = LevenbergMarquardt(start_damping=1e-12, decrease_tolerance=1e-12)

    def at(state_weight):
        weights = default_weights(estimate.problem, state_weight)
        outcome = minimise(estimate.problem, estimate.outcome.linearisation.point, weights, tight)
        value, scale = deviance(estimate.problem, outcome.linearisation, weights)
        scaled = dataclasses.replace(weights, reference=scale * weights.reference)
        evidence = gather(estimate.problem, outcome.linearisation, scaled)
        dynamics = evidence.noise[0]
        return value, np.trace(dynamics.squares) / scaled.reference**2 - dynamics.degrees

    step = 0.02
    values = [at(100.0 * np.exp(shift)) for shift in (-step, 0.0, step)]
    assert values[1][1] == pytest.approx((values[2][0] - values[0][0]) / (2.0 * step), rel=0.02, abs=0.05)


def test_wrong_stated_noise_and_peak_of_the_likelihood():
    """Furuta with impulse noise: few iterations, the most likely κ near its own, whatever deviations sensors state."""
    study = coverage.studies()["furuta_driven"]
    condition = next(one for one in coverage.CONDITIONS if one.name == "process_auto")
    recording = coverage.record(study, condition, 0)
    found = []
    for stated in (1e-3, 5e-3):
        model = study.mechanism.set({"theta1.std": stated})
        starts = {name: study.mechanism.get(name) for name in study.free}
        found.append(fit(model, recording, starts, options=Options(**POSES, stick_time=None)))
    for estimate in found:
        assert estimate.converged
        assert estimate.iterations <= 60
        sigma = np.sqrt(np.prod(list(estimate.noise.values())))
        likely = estimate.state_weight / estimate.noise_choice.added_weight
        # Over seeds its logarithm scatters by 0.4 about that of 1e4, which belongs to the noise.
        assert 1e4 / 3.0 < likely * (1e-3 / sigma) ** 2 < 3e4
        assert estimate.noise["theta1"] == pytest.approx(1e-3, rel=0.15)
    difference = [abs(a.value - b.value) / a.std for a, b in zip(*(e.parameters for e in found), strict=True)]
    assert max(difference) < 0.2


def test_interruption_ends_the_scan(recording):
    """Ctrl-C in the middle of the scan: the best fit so far, with all iterations in the log."""
    seen = []

    def stop(iteration):
        seen.append(iteration)
        if len(seen) == 9:
            raise KeyboardInterrupt

    estimate = fit(
        spring_slider(), recording, FREE, options=Options(**POSES, timestep=0.02, state_weight="auto"), progress=stop
    )
    assert estimate.status is Status.INTERRUPTED
    assert len(seen) <= 10
    assert all(np.isfinite(row.value) for row in estimate.parameters)
