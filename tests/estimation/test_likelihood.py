"""Likelihood of levels: random forces are white, what a model lacks is not; units of force do not matter."""

import numpy as np
import pytest

from estimation.test_determinant import DAMPING, MASS, STEP, cart, recording
from shadowfit.estimation import ErrorModel, Options, fit
from shadowfit.estimation.uncertainty.determinant import log_volume
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.recordings import Recording

OPTIONS = Options(timestep=STEP, unknowns="joint")


def test_random_forces_are_white():
    estimate = fit(cart(MASS, DAMPING), recording(acting=3.0, read=0.0, loop=False), ["cart.mass"], options=OPTIONS)
    assert not estimate.noise_choice.explanation.smooth
    assert estimate.noise_choice.added_weight == 1.0


def test_what_a_model_lacks_is_not():
    """Friction that a model does not have is a function of the motion."""
    given = Options(timestep=STEP, unknowns="joint", errors=ErrorModel({"rail": 0.3}))
    estimate = fit(cart(MASS, 0.0), recording(acting=0.1, read=0.0, loop=False), ["cart.mass"], options=given)
    assert estimate.noise_choice.explanation.smooth


def test_volume_is_that_of_the_inertia():
    """One body without friction: ``Σ log|det A|`` grows by ``log m`` a step."""
    data = recording(acting=1.0, read=0.0, loop=False, count=500)
    fixed = Options(timestep=STEP, unknowns="joint", state_weight=1e2)
    light, heavy = (fit(cart(mass, 0.0), data, [], options=fixed) for mass in (MASS, 3.0 * MASS))
    steps = light.problem.tracks[0].steps
    grown = [log_volume(one.problem, one.outcome.linearisation.point) for one in (heavy, light)]
    assert grown[0] - grown[1] == pytest.approx(steps * np.log(3.0), rel=1e-9)


def test_likelihood_of_levels_does_not_depend_on_the_unit_of_force():
    """The same motion of a machine a hundred times as heavy, under forces and errors a hundred times as large."""
    data = recording(acting=1.0, read=0.0, loop=False, count=500)
    found = []
    for factor in (1.0, 100.0):
        own = Recording(data.time, {"x": data.channels["x"], "F": factor * data.channels["F"]}, units=data.units)
        options = Options(timestep=STEP, unknowns="joint", state_weight=1e2 / factor**2)
        estimate = fit(cart(factor * MASS, factor * DAMPING), own, [], options=options)
        found.append(deviance(estimate.problem, estimate.outcome.linearisation, estimate.weights, adapt=False)[0])
    assert found[0] == pytest.approx(found[1], abs=1e-3)
