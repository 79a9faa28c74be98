"""Dry friction laws: Coulomb's limit does not depend on speed, Stribeck's decays from the static to the kinetic one."""

import jax
import numpy as np
import pytest

from shadowfit.mechanism import Coulomb, Stribeck


def test_coulomb_is_constant() -> None:
    law = Coulomb(dry=0.2, coulomb=0.03)
    for speed in (0.0, 1.0, -5.0):
        assert tuple(map(float, law.limit(speed))) == (0.2, 0.03)


def test_stribeck_formula() -> None:
    """μ = μ_k + (μ_s − μ_k) exp(−ζ ω²), for the coefficient and for the constant level alike."""
    law = Stribeck(dry=0.1, stribeck=0.3, coulomb=0.02, stribeck_coulomb=0.01, stribeck_rate=2.0)
    for speed in (0.0, 0.3, -0.3, 1.0, 10.0):
        near_rest = np.exp(-2.0 * speed**2)
        coefficient, level = law.limit(speed)
        assert float(coefficient) == pytest.approx(0.1 + 0.3 * near_rest, rel=1e-14)
        assert float(level) == pytest.approx(0.02 + 0.01 * near_rest, rel=1e-14)


def test_stribeck_has_zero_slope_at_rest() -> None:
    law = Stribeck(stribeck=0.3, stribeck_rate=2.0)
    assert float(jax.grad(lambda s: law.limit(s)[0])(0.0)) == 0.0
    assert float(jax.grad(lambda s: law.limit(s)[0])(0.5)) < 0.0
