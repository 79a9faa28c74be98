"""Errors as a value: what came out of a fit is printed, changed and given to another one."""

import dataclasses
import functools

import numpy as np
import pytest

from estimation.test_determinant import DAMPING, MASS, STEP, cart, recording
from shadowfit.errors import ShadowfitError, UnknownNameError
from shadowfit.estimation import ErrorModel, Options, fit

FREE = ["cart.mass"]


@functools.cache
def data():
    return recording(acting=3.0, read=0.0, loop=False)


def fitted(errors):
    return fit(cart(MASS, DAMPING), data(), FREE, options=Options(timestep=STEP, unknowns="joint", errors=errors))


@functools.cache
def estimated():
    return fitted(ErrorModel())


def test_what_was_estimated_is_believed_when_it_is_given():
    """The same answer with the same bars, to what the estimation of levels leaves."""
    found = estimated().errors
    again = fitted(found)
    assert again.errors.forces == pytest.approx(found.forces)
    assert again.errors.sensors == pytest.approx(found.sensors)
    [own], [other] = estimated().parameters, again.parameters
    assert abs(own.value - other.value) < 0.3 * own.std
    assert again.iterations <= estimated().iterations


def test_given_levels_are_kept_and_others_are_estimated():
    found = estimated().errors
    [sensor] = found.sensors
    known = fitted(ErrorModel(sensors={sensor: 3.0 * found.sensors[sensor]}))
    assert known.noise[sensor] == pytest.approx(3.0 * found.sensors[sensor])
    [joint] = found.forces
    pushed = fitted(ErrorModel(forces={joint: 3.0 * found.forces[joint]}))
    assert pushed.errors.forces[joint] == pytest.approx(3.0 * found.forces[joint])
    assert pushed.parameters[0].std > 1.5 * estimated().parameters[0].std


def test_a_criterion_counts_beside_given_forces():
    errors = dataclasses.replace(estimated().errors, criterion="simulate")
    exact = fitted(errors)
    assert exact.noise_choice.added_weight > 1.0
    assert exact.converged


def test_it_prints_what_it_holds():
    text = str(ErrorModel({"rail": 0.25}, {"x": 1e-3}, "parameters"))
    assert text.splitlines() == ["criterion: parameters", "force rail: 0.25", "reading x: 0.001"]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"forces": {"rails": 1.0}}, UnknownNameError, "no joint 'rails'"),
        ({"sensors": {"y": 1.0}}, UnknownNameError, "no sensor 'y'"),
        ({"forces": {"rail": np.nan}}, ShadowfitError, "must be a positive number"),
        ({"sensors": {"x": "much"}}, ShadowfitError, "must be a positive number"),
        ({"criterion": "simulated"}, UnknownNameError, "did you mean 'simulate'"),
    ],
)
def test_errors_of_what_there_is_not_are_named(fields, error, words):
    with pytest.raises(error, match=words):
        fitted(ErrorModel(**fields))


def test_a_field_that_there_is_not_is_named():
    with pytest.raises(UnknownNameError, match="force"):
        ErrorModel.of({"force": {}})
