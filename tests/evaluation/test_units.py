"""The same machine in other units: check, verdict and advice say the same, number for number without units."""

import dataclasses

import numpy as np
import pytest

from estimation.units import factor, in_other_units
from shadowfit.estimation import Free, fit
from shadowfit.evaluation.advise import advise
from shadowfit.evaluation.precheck import check
from shadowfit.evaluation.rules import judge
from shadowfit.models import load_model

FREE = {"pendulum.inertia.yy": 0.004, "hinge.viscous": 1e-4}


def said(swing, *units):
    """What is said of a machine whose masses and lengths are in units smaller by two factors."""
    # A compliance that is stated: the default one of model files says nothing.
    stated = {"pendulum.inertia.xx": 5e-4, "hinge.compliance.linear": 2e-5, "hinge.compliance.rotational": 2e-5}
    rod = load_model("pendulum").mechanism.set(stated)
    free = {name: Free(start=value * factor(rod.unit(name), *units)) for name, value in FREE.items()}
    machine = in_other_units(rod, *units)
    checked, estimate = check(machine, [swing], free), fit(machine, swing, free)
    notices = [(one.severity, [word for word in one.text.split() if word.isalpha()]) for one in judge(estimate)]
    advice = advise(estimate, refits=0)
    order = [(own.labels, own.significant) for own in advice.suggestions[:3]]
    ((balance,),) = checked.balances
    numbers = [
        *checked.relative_std.values(),
        balance.explained,
        balance.coefficients["gravity"],
        *(own.gain for own in advice.suggestions[:3]),
    ]
    return [one.severity for one in checked.notices], notices, order, np.array(numbers)


@pytest.fixture(scope="module")
def swing(make_swing):
    return dataclasses.replace(make_swing(4, 2.0), name="swing")


@pytest.mark.parametrize(("mass", "length"), [(1e-9, 1e-4), (1e9, 1e3)])
def test_what_is_said_in_other_units(swing, mass, length):
    *words, numbers = said(swing, 1.0, 1.0)
    *others, scaled = said(swing, mass, length)
    assert others == words
    np.testing.assert_allclose(scaled, numbers, rtol=1e-3)
