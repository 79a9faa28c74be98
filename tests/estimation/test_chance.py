"""Gains that white noise makes believe: draws scatter as error bars say, and nothing is gained from nothing."""

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Options, fit
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
    off = chance._estimates(problem, evidence, weights, chance._draws(problem, weights))
    stated = np.sqrt(evidence.covariance("gauss-newton")[0][0, 0])
    assert np.std(off[0]) == pytest.approx(stated, rel=0.15)


def test_the_same_fit_gains_nothing(estimate):
    fitted, along = (estimate.weights, estimate.evidence), estimate.outcome.linearisation.point
    assert np.all(chance.gains_by_chance(estimate.problem, along, fitted, fitted) == 0.0)
