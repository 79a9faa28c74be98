"""The same machine in other units, a thousand million times as heavy, in tenths of millimetres, or ten thousand times
as fast: the same answer."""

import numpy as np
import pytest

from estimation.units import factor, in_other_units
from shadowfit.dynamics import simulate
from shadowfit.estimation import Free, fit
from shadowfit.models import load_model
from shadowfit.recordings import Recording

START = {"pendulum.inertia.yy": 0.004, "hinge.viscous": 1e-4, "hinge.coulomb": 0.0}


@pytest.fixture(scope="module")
def swing():
    model = load_model("pendulum")
    truth = model.mechanism.set({"pendulum.inertia.xx": 5e-4, "pendulum.inertia.yy": 0.0035, "hinge.viscous": 4e-4})
    run = simulate(
        truth,
        model.start.with_joints({"hinge": 2.0}, {}).state(truth),
        timestep=0.002,
        steps=1000,
        joints="compliant",
        substeps=1,
    )
    noisy = np.asarray(run.readings["theta"])[::5] + np.random.default_rng(0).normal(0.0, 1e-3, 201)
    return truth, Recording(0.01 * np.arange(201), {"theta": noisy})


def relative(swing, *units):
    """Estimates, standard deviations and marks, brought back to kilogrammes, metres and seconds."""
    mechanism, recording = swing
    free = {name: Free(start=value * factor(mechanism.unit(name), *units)) for name, value in START.items()}
    slower = Recording(factor("s", *units) * recording.time, recording.channels)
    estimate = fit(in_other_units(mechanism, *units), slower, free)
    rows = estimate.parameters
    sizes = np.array([factor(row.unit, *units) for row in rows])
    marks = [(row.identifiable, row.at_bound) for row in rows]
    values, spread = ([getattr(row, key) for row in rows] / sizes for key in ("value", "std"))
    return estimate.status, marks, values, spread


@pytest.fixture(scope="module")
def here(swing):
    return relative(swing, 1.0, 1.0)


@pytest.mark.parametrize(("mass", "length"), [(1e3, 1e3), (1e-9, 1e-4), (1e9, 1e3), (1e-9, 1e3)])
def test_a_fit_in_other_units(swing, here, mass, length):
    """With plain defaults: levels of the noise, priors and tolerances are none of any unit."""
    status, marks, values, spread = here
    other_status, other_marks, other_values, other_spread = relative(swing, mass, length)
    assert status.converged
    assert other_status.converged
    assert other_marks == marks
    np.testing.assert_allclose(other_values, values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other_spread, spread, rtol=1e-4)


@pytest.mark.parametrize(("mass", "length", "time"), [(1.0, 1.0, 1e-4), (1e-9, 1e-4, 1e-2), (1.0, 3e-2, 0.1)])
def test_a_fit_of_a_faster_machine(swing, here, mass, length, time):
    """Steps and filters are as fine as the motion asks for: to all digits that other filters behind the start leave."""
    status, marks, values, spread = here
    other_status, other_marks, other_values, other_spread = relative(swing, mass, length, time)
    assert status.converged
    assert other_status.converged
    assert other_marks == marks
    np.testing.assert_allclose(other_values, values, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(other_spread, spread, rtol=1e-3)
