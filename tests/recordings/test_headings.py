"""Headings of columns: names and units taken apart."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.recordings.headings import parse_heading, parse_headings

DEGREE = math.pi / 180


@pytest.mark.parametrize(
    ("text", "name", "symbol", "factor"),
    [
        ("theta [deg]", "theta", "rad", DEGREE),
        ("theta(deg)", "theta", "rad", DEGREE),
        ("theta_deg", "theta", "rad", DEGREE),
        ("theta_DEG", "theta", "rad", DEGREE),
        ("theta1_rad", "theta1", "rad", 1.0),
        ("x_m", "x", "m", 1.0),
        ("x_mm", "x", "m", 1e-3),
        ("u_V", "u", "V", 1.0),
        ("tau_cmd1_Nm", "tau_cmd1", "N m", 1.0),
        ("tau_N_m", "tau", "N m", 1.0),
        ("w_rad_s", "w", "rad/s", 1.0),
        ("x_dot_m_s", "x_dot", "m/s", 1.0),
        ("a_m_s2", "a", "m/s^2", 1.0),
        ("w_deg_s", "w", "rad/s", DEGREE),
        ("w_rpm", "w", "rad/s", math.pi / 30),
        ("rpm", "rpm", "rad/s", math.pi / 30),
        ("Time (ms)", "Time", "s", 1e-3),
        ("time [s]", "time", "s", 1.0),
        ("t_s", "t", "s", 1.0),
        ("time_ms", "time", "s", 1e-3),
        ("timestamp_us", "timestamp", "s", 1e-6),
    ],
)
def test_units_are_taken_off_the_name(text, name, symbol, factor):
    heading = parse_heading(text)
    assert (heading.text, heading.name, heading.note) == (text, name, "")
    assert heading.unit is not None
    assert heading.unit.symbol == symbol
    assert heading.unit.factor == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize("text", ["theta", "u_in", "theta_min", "v_ms", "theta_s", "x_a", "_m", "m", "q[0]", "V"])
def test_words_and_indices_are_no_units(text):
    heading = parse_heading(text)
    assert (heading.name, heading.unit, heading.note) == (text, None, "")


@pytest.mark.parametrize("text", ["theta []", "theta [-]", "theta (?)"])
def test_empty_brackets_state_no_unit(text):
    heading = parse_heading(text)
    assert (heading.name, heading.unit, heading.note) == ("theta", None, "")


def test_an_unknown_unit_stays_in_the_name_with_a_note():
    heading = parse_heading("theta [gon]")
    assert (heading.name, heading.unit) == ("theta [gon]", None)
    assert "'gon' is not a known unit" in heading.note


def test_a_letter_that_tells_columns_apart_is_no_unit():
    assert [h.name for h in parse_headings(["t_s", "x_A", "x_B", "i_A"])] == ["t", "x_A", "x_B", "i"]


@given(st.text(max_size=20))
def test_every_heading_has_a_name(text):
    heading = parse_heading(text)
    assert heading.text == text.strip()
    assert heading.name or not heading.text
