"""Units: spellings and factors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.recordings import parse_unit
from shadowfit.recordings.units import _UNITS

DEGREE = math.pi / 180


@pytest.mark.parametrize(
    ("text", "symbol", "factor"),
    [
        ("deg", "rad", DEGREE),
        ("Deg", "rad", DEGREE),
        ("°", "rad", DEGREE),
        ("degrees", "rad", DEGREE),
        ("mrad", "rad", 1e-3),
        ("rev", "rad", 2 * math.pi),
        ("rpm", "rad/s", math.pi / 30),
        ("RPM", "rad/s", math.pi / 30),
        ("1/min", "rad/s", math.pi / 30),
        ("rad/s", "rad/s", 1.0),
        ("rad / s", "rad/s", 1.0),
        ("rad s^-1", "rad/s", 1.0),
        ("rad s⁻¹", "rad/s", 1.0),
        ("deg/sec", "rad/s", DEGREE),
        ("°/s", "rad/s", DEGREE),
        ("deg/s^2", "rad/s^2", DEGREE),
        ("m/s²", "m/s^2", 1.0),
        ("m s^-2", "m/s^2", 1.0),
        ("mm", "m", 1e-3),
        ("cm/s", "m/s", 1e-2),
        ("µm", "m", 1e-6),
        ("ms", "s", 1e-3),
        ("microseconds", "s", 1e-6),
        ("S", "s", 1.0),
        ("N·m", "N m", 1.0),
        ("N m", "N m", 1.0),
        ("N-m", "N m", 1.0),
        ("mNm", "N m", 1e-3),
        ("mN", "N", 1e-3),
        ("mV", "V", 1e-3),
        ("v", "V", 1.0),
        ("mA", "A", 1e-3),
    ],
)
def test_spellings(text, symbol, factor):
    unit = parse_unit(text)
    assert unit is not None
    assert unit.symbol == symbol
    assert unit.factor == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize("text", ["MN", "MV", "nm", "g", "furlong", "", "%", "filtered", "m/kg"])
def test_what_is_ambiguous_or_unknown_is_no_unit(text):
    assert parse_unit(text) is None


def test_every_si_unit_reads_as_itself():
    for unit in set(_UNITS.values()):
        si = parse_unit(unit.symbol)
        assert si is not None
        assert (si.symbol, si.factor) == (unit.symbol, 1.0)


@given(st.sampled_from(sorted(_UNITS)), st.sampled_from(["", " ", "  "]))
def test_blanks_around_a_unit_do_not_matter(text, blank):
    assert parse_unit(blank + text + blank) == _UNITS[text]


@given(st.text(max_size=12))
def test_any_text_is_a_unit_or_none(text):
    unit = parse_unit(text)
    assert unit is None or unit in _UNITS.values()
