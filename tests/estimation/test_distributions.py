"""Quantiles and tails are those of an independent library."""

import numpy as np
import pytest
from scipy import integrate, special

from shadowfit.estimation.uncertainty.distributions import (
    chi_square_tail,
    normal_quantile,
    square_beyond,
    student_quantile,
)

LEVELS = [0.001, 0.025, 0.4, 0.5, 0.6, 0.9, 0.975, 0.9995]


def test_normal():
    np.testing.assert_allclose(normal_quantile(LEVELS), special.ndtri(LEVELS), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("distance", [0.0, 0.3, 2.0, 6.0, 19.9, 20.1, 1e6])
def test_square_of_what_a_normal_variable_exceeds_a_value_by(distance):
    """``∫ x² e^{−ax − x²/2} dx / ∫ e^{−ax − x²/2} dx``, in units of the tail's own length."""
    length = 1.0 / max(distance, 1.0)

    def moment(power):
        def slope(x):
            return x**power * np.exp(-distance * length * x - 0.5 * (length * x) ** 2)

        return integrate.quad(slope, 0.0, 40.0)[0]

    expected = length**2 * moment(2) / moment(0)
    assert square_beyond(distance) == pytest.approx(expected, rel=0.02 if distance > 20.0 else 1e-6)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 20, 101, 3000])
def test_chi_square(degrees):
    values = [0.0, 1e-8, 0.1, 1.0, degrees / 2, degrees, 2.0 * degrees, 10.0 * degrees, 1e9, np.inf]
    expected = [special.chdtrc(degrees, value) for value in values]
    np.testing.assert_allclose([chi_square_tail(degrees, v) for v in values], expected, rtol=1e-10, atol=1e-300)


def test_a_tail_of_what_is_not_a_number_is_none():
    assert np.isnan(chi_square_tail(3, np.nan))


@pytest.mark.parametrize("level", LEVELS)
def test_student(level):
    degrees = np.array([0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 7.0, 30.0, 400.0, 999.0, 1000.0, 1e5, np.inf])
    found = student_quantile(degrees, level)
    np.testing.assert_allclose(found, special.stdtrit(degrees, level), rtol=3e-11, atol=1e-14)
    assert student_quantile(4.0, level).shape == ()
