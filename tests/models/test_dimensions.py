"""Units of expressions: those of physics, and none where a number may stand for anything."""

import pytest

from shadowfit.models.dimensions import powers_of, text_of, unit_of
from shadowfit.models.expressions import parse_expression

UNITS = {
    "arm.mass": "kg",
    "arm.length": "m",
    "arm.inertia": "kg m²",
    "hinge.viscous": "N m s/rad",
    "motor.gain": "N m/A",
    "motor.ohm": "Ohm",
    "motor.emf": "V s/rad",
    "gravity.acceleration": "m/s²",
    "u.gain": "unit",
}


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("arm.mass * gravity.acceleration * arm.length / arm.inertia", "1/s²"),
        ("sqrt(arm.mass * gravity.acceleration * arm.length / arm.inertia) / (2 * pi)", "1/s"),
        ("arm.inertia / hinge.viscous", "s"),
        ("arm.inertia + arm.mass * arm.length**2", "kg m²"),
        ("-arm.mass * gravity.acceleration", "N"),
        ("arm.mass * gravity.acceleration * arm.length", "N m"),
        ("hinge.viscous + motor.gain**2 / motor.ohm * motor.emf / motor.emf", "N m s"),
        ("motor.gain / motor.emf", "1"),
        ("(arm.inertia / arm.mass) ** (1 / 2)", "m"),
        ("(arm.inertia / arm.mass) ** -0.5", "1/m"),
        ("arm.mass ** 0.5", "kg^(1/2)"),
        ("sin(arm.length / arm.length)", "1"),
        ("12", "1"),
        # Not known: a number of any unit, unlike terms, functions of what is no number, an open unit.
        ("arm.mass * 9.81", None),
        ("arm.mass + arm.length", None),
        ("arm.mass + 1", None),
        ("exp(arm.mass)", None),
        ("arm.mass ** arm.length", None),
        ("u.gain * 2", None),
    ],
)
def test_units_of_expressions(text, unit):
    assert unit_of(parse_expression(text), UNITS.__getitem__) == unit


@pytest.mark.parametrize(
    "unit", ["1", "kg", "N m", "N m s", "kg m²", "1/s²", "kg/(m s)", "V", "A", "Ohm", "N m/A", "m³"]
)
def test_a_unit_is_read_as_it_is_written(unit):
    assert text_of(powers_of(unit)) == unit
