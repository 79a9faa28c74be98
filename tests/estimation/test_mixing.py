"""Mixing of rounds: a linear map of one factor has its fixed point after two of them, whatever overshoots."""

from __future__ import annotations

import numpy as np
import pytest

from shadowfit.estimation.problem.point import Point, Truncation
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.stopping import Stopping
from shadowfit.estimation.solve.mixing import LARGEST, mixed, share_of_before

NOTHING = Values(np.zeros(0), np.zeros((0, 4)))


def _point(errors: np.ndarray, speeds: np.ndarray) -> Point:
    return Point(NOTHING, (), (Truncation(errors, (2.0 * errors,)),), (Stopping(speeds, np.ones((2, 2))),))


@pytest.mark.parametrize("factor", [-0.9, -0.5, 0.1, 0.6])
def test_two_rounds_tell_where_a_map_of_one_factor_ends(factor: float) -> None:
    """Errors ``E* + c^k d`` and speeds ``m* exp(c^k d)``: the mixture of two rounds is the fixed point."""
    rng = np.random.default_rng(0)
    end, away = rng.standard_normal((2, 5, 2))
    last = np.exp(rng.standard_normal((5, 2)))
    found = [end + factor**k * away for k in range(3)]
    changes = [(found[k + 1] - found[k]).ravel() for k in range(2)]
    points = [_point(found[k + 1], last * np.exp(factor ** (k + 1) * away)) for k in range(2)]
    there = mixed(points[1], points[0], share_of_before(changes[1], changes[0]))
    assert there.truncation is not None
    assert there.stopping is not None
    np.testing.assert_allclose(there.truncation[0].dynamics, end, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there.truncation[0].readings[0], 2.0 * end, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there.stopping[0].speeds, last, rtol=1e-12)


def test_changes_that_are_alike_lead_no_further_than_a_limit() -> None:
    """Nothing follows about where they end."""
    change = np.array([1.0, -2.0])
    assert share_of_before(change, change) == 0.0
    assert share_of_before(0.999 * change, change) == -LARGEST


def test_axes_that_friction_does_not_stop_stay_so() -> None:
    """Joints without dry friction have none."""
    none = np.zeros((3, 2))
    there = mixed(_point(none, none), _point(none, none), 0.5)
    assert there.stopping is not None
    assert np.array_equal(np.asarray(there.stopping[0].speeds), none)
