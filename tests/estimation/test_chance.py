"""Gains that white noise makes believe: draws scatter as error bars say, and nothing is gained from nothing."""

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Options, fit
from shadowfit.estimation.solve import objective
from shadowfit.estimation.uncertainty import chance
from shadowfit.estimation.uncertainty.evidence import gather


@pytest.fixture(scope="module")
def estimate():
    options = Options(timestep=0.02, unknowns="joint", correction="none", state_weight=1e2)
    recording = twin(spring_slider(), {"rail": 0.3}, 120, timestep=0.02, noise=1e-3)
    return fit(spring_slider(), recording, {"rail.spring.stiffness": 8.0}, options=options)


def test_estimates_of_draws_scatter_as_the_error_bars_say(estimate, monkeypatch):
    monkeypatch.setattr(chance, "DRAWS", 400)
    problem, here, weights = estimate.problem, estimate.outcome.linearisation, estimate.weights
    evidence = gather(problem, here, weights)
    draws = chance._draws(problem, here.point, weights)
    off = chance._estimates(problem, here.point, evidence, weights, draws)
    stated = np.sqrt(evidence.covariance("gauss-newton")[0][0, 0])
    assert np.std(off[0]) == pytest.approx(stated, rel=0.15)


def test_the_same_fit_gains_nothing(estimate):
    weights, evidence, along = estimate.weights, estimate.evidence, estimate.outcome.linearisation.point
    draws = chance.drawn(estimate.problem, along, weights, evidence)
    assert np.all(draws.gains(weights, evidence) == 0.0)
    assert draws.tried(weights, evidence).gain == 0.0


def test_what_chance_may_gain_grows_with_every_weight_that_is_tried(estimate):
    """A weight at which draws predict badly (here: far too small a one) takes nothing from what others gained."""
    problem, along = estimate.problem, estimate.outcome.linearisation.point
    draws = chance.drawn(problem, along, estimate.weights, estimate.evidence)
    gains = []
    for factor in (1e4, 1e-8):
        weights = estimate.weights.scaled(factor)
        evidence = gather(problem, objective.linearise(problem, along, weights), weights)
        draws = draws.tried(weights, evidence)
        gains.append(draws.best)
    assert np.any(gains[0] > 0.0)
    assert np.all(gains[1] >= gains[0])
    assert draws.gain >= np.mean(gains[0])
