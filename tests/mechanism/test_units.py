"""Units of numbers that refer to an input: in the input's own unit, and of the size that this unit means."""

import pytest

from shadowfit.mechanism import Input
from shadowfit.mechanism.leaves import Parts
from shadowfit.mechanism.units import in_own_unit, quotient
from shadowfit.models import read_model


@pytest.mark.parametrize(
    ("unit", "own", "expected"),
    [
        ("N m/unit", "A", "N m/A"),
        ("N m/unit", "N m", "1"),
        ("N m/unit", "rad/s", "N m s/rad"),
        ("N m/unit", "1", "N m/unit"),
        ("N/unit", "m/s²", "N s²/m"),
        ("N m/unit", "N s", "N m/(N s)"),
        ("unit", "V", "V"),
        ("unit", "1", "unit"),
        ("kg m²", "V", "kg m²"),
    ],
)
def test_the_open_part_is_replaced(unit, own, expected):
    assert in_own_unit(unit, own) == expected


def test_a_quotient_of_quotients():
    assert quotient("rad/(N m)", "V") == "rad/(N m V)"


def test_of_a_mechanism():
    furuta = read_model("furuta")
    assert (furuta.unit("hinge1.motor.gain"), furuta.unit("u.offset")) == ("N m/V", "V")
    current = furuta.having(inputs=Parts({"u": Input(unit="A")}))
    assert (current.unit("hinge1.motor.gain"), current.unit("u.offset")) == ("N m/A", "A")
    cart = read_model("cartpole")
    assert cart.unit("rail.motor.gain") == "1"
    assert cart.unit("rail.viscous") == "N s/m"
