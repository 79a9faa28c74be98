"""Numbers too large or too small to be squared are refused with a sentence; the smallest recordings are fitted."""

import numpy as np
import pytest

from shadowfit.errors import MechanismError, ShadowfitError
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.evaluation.precheck import check
from shadowfit.models import load_model
from shadowfit.recordings import Recording

MECHANISM = load_model("pendulum").mechanism
NAME = "hinge.viscous"
EXTREMES = (1e-300, 1e-160, 1e160, 1e300)


def recorded(samples):
    time = 0.01 * np.arange(samples)
    return Recording(time, {"theta": 0.5 * np.cos(5.0 * time)})


def fitted(free, options=None, mechanism=MECHANISM):
    return fit(mechanism, [recorded(40)], {NAME: free}, options=options, optimiser=LevenbergMarquardt(max_iterations=2))


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("field", ["prior", "entropic"])
def test_spreads_of_priors(field, value):
    with pytest.raises(ShadowfitError, match=r"must be positive, between 1e-50 and 1e\+50"):
        fitted(Free(**{field: value}))


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("option", ["timestep", "state_weight", "huber", "cutoff"])
def test_options(option, value):
    with pytest.raises(ShadowfitError, match=rf"option {option} is .* must be a positive number"):
        fitted(Free(), Options(**{option: value}))


@pytest.mark.parametrize("value", [1e160, -1e300, np.nan, np.inf])
@pytest.mark.parametrize("name", ["pendulum.mass", "pendulum.com.x", "theta.std", NAME])
def test_numbers_of_machines(name, value):
    with pytest.raises(MechanismError, match=rf"{name} is "):
        MECHANISM.set({name: value})


@pytest.mark.parametrize("samples", range(3, 9))
def test_the_smallest_recordings_are_looked_at_and_fitted(samples):
    look = check(MECHANISM, [recorded(samples)], {NAME: Free()})
    assert not any(notice.severity == "red" for notice in look.notices)
    estimate = fit(MECHANISM, [recorded(samples)], {NAME: Free()})
    assert np.isfinite(estimate.cost)
