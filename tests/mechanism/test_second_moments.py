"""Second moments of mass: what clouds of points have, and which inertias are nobody's."""

import numpy as np
import pytest

from shadowfit.errors import MechanismError
from shadowfit.mechanism.body import check_inertia
from shadowfit.mechanism.second_moments import ENTRIES, inertia_matrix, second_moments, thickness


def entries_of(matrix):
    return np.array([matrix["xyz".index(name[0]), "xyz".index(name[1])] for name in ENTRIES])


def test_of_a_cloud_of_points():
    points = np.random.default_rng(0).standard_normal((20, 3))
    points -= points.mean(axis=0)
    inertia = sum(r @ r * np.eye(3) - np.outer(r, r) for r in points)
    np.testing.assert_allclose(inertia_matrix(entries_of(inertia)), inertia)
    np.testing.assert_allclose(second_moments(inertia), points.T @ points)
    assert thickness(inertia) == pytest.approx(np.linalg.eigvalsh(points.T @ points)[0] / np.trace(inertia))


def test_positive_exactly_where_a_body_is_possible():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(200):
        inertia = inertia_matrix(np.array([*rng.uniform(0.2, 1.0, 3), *rng.uniform(-0.2, 0.2, 3)]))
        try:
            check_inertia(inertia, "cloud")
            possible = True
        except MechanismError:
            possible = False
        assert possible == (thickness(inertia) > 0.0)
        seen.add(possible)
    assert seen == {True, False}
