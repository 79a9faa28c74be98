"""Typical sizes follow the machine: in other units they are multiplied by what their own unit says."""

import pytest

from estimation.units import factor, in_other_units
from shadowfit.mechanism.scales import scales_of
from shadowfit.models import load_model

UNITS = ("kg", "m", "kg m²", "N m", "N m s/rad", "rad/(N m)", "m/N", "N m/A", "Ohm", "m/s²", "N m s²/rad²", "1", "s")


@pytest.mark.parametrize("model", ["pendulum", "furuta", "cartpole", "fourbar"])
@pytest.mark.parametrize(("mass", "length"), [(1e3, 1e3), (1e-9, 1.0), (1.0, 1e-4), (1e9, 1e3)])
def test_sizes_are_those_of_the_machine(model, mass, length):
    mechanism = load_model(model).mechanism
    here, there = scales_of(mechanism), scales_of(in_other_units(mechanism, mass, length))
    for unit in UNITS:
        assert there.of(unit) == pytest.approx(here.of(unit) * factor(unit, mass, length), rel=1e-9), unit


def test_sizes_of_a_rod():
    """A torque is compared with weight times length, a friction coefficient with that times the time of a swing."""
    scales = scales_of(load_model("pendulum").mechanism)
    weight = scales.mass * 9.82 * scales.length
    assert scales.of("N m") == pytest.approx(weight, rel=1e-6)
    assert scales.of("N m s/rad") == pytest.approx(weight * scales.time, rel=1e-6)
    assert scales.of("unit") == 1.0
