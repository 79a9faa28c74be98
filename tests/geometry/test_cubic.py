"""The spline is SciPy's, which stands for itself; a cubic is its own spline."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from shadowfit.geometry.cubic import cubic


@pytest.mark.parametrize("shape", [(2,), (3, 1), (4,), (5, 2), (60, 3)])
def test_equals_another_spline(shape):
    rng = np.random.default_rng(1)
    values, at = rng.standard_normal(shape), rng.uniform(-0.5, shape[0] - 0.5, 40)
    np.testing.assert_allclose(cubic(values, at), CubicSpline(np.arange(shape[0]), values)(at), rtol=0, atol=1e-11)


def test_a_cubic_is_reproduced():
    def polynomial(x):
        return 1.0 + 2.0 * x - 0.3 * x**2 + 0.05 * x**3

    at = np.linspace(-1.0, 10.0, 50)
    np.testing.assert_allclose(cubic(polynomial(np.arange(10.0)), at), polynomial(at), rtol=1e-11)
