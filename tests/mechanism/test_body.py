"""Bodies: forms of inertia, and what no mass distribution can have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from shadowfit.errors import MechanismError
from shadowfit.mechanism import Body, Inertia, Mechanism
from shadowfit.mechanism.body import check_inertia


def test_inertia_is_given_in_three_ways() -> None:
    matrix = np.array([[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]])
    for form in (matrix, (2.0, 3.0, 4.0, 0.1, 0.2, 0.3), Inertia(2.0, 3.0, 4.0, 0.1, 0.2, 0.3)):
        np.testing.assert_array_equal(Body(1.0, form).inertia.matrix(), matrix)
    np.testing.assert_array_equal(Body(1.0, (2.0, 3.0, 4.0)).inertia.matrix(), np.diag([2.0, 3.0, 4.0]))


@pytest.mark.parametrize("form", [1.0, (1.0, 2.0), np.eye(2), np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]])])
def test_other_forms_are_refused(form: object) -> None:
    with pytest.raises(MechanismError, match="3 principal moments, 6 numbers"):
        Body(1.0, form)


@given(st.integers(0, 2**32 - 1))
def test_every_cloud_of_points_has_a_valid_inertia(seed: int) -> None:
    """J = Σ m (|r|² 1 − r rᵀ) satisfies the triangle inequality for any masses and places."""
    rng = np.random.default_rng(seed)
    points, masses = rng.normal(size=(4, 3)), rng.uniform(0.01, 2.0, size=4)
    squared = np.sum(points**2, axis=1)
    matrix = np.einsum(
        "p,pij->ij", masses, squared[:, None, None] * np.eye(3) - points[:, :, None] * points[:, None, :]
    )
    check_inertia(matrix, "cloud")


@given(st.integers(0, 2**32 - 1), st.floats(1.001, 10.0))
def test_a_moment_larger_than_the_two_others_is_refused(seed: int, excess: float) -> None:
    """In any axes, not only in principal ones."""
    rng = np.random.default_rng(seed)
    small = rng.uniform(0.1, 1.0, size=2)
    turn = Rotation.random(random_state=seed).as_matrix()
    matrix = turn @ np.diag([*small, excess * small.sum()]) @ turn.T
    with pytest.raises(MechanismError, match="triangle inequality"):
        check_inertia(matrix, "body")


def test_a_thin_rod_is_on_the_edge_and_allowed() -> None:
    Mechanism({"rod": Body(1.0, (1e-9, 1.0, 1.0 + 1e-9))})


@pytest.mark.parametrize(
    ("mass", "inertia", "message"),
    [
        (0.0, (1, 1, 1), r"rod\.mass is 0 kg; a mass must be positive"),
        (-1.0, (1, 1, 1), r"rod\.mass is -1; it must be at least 0 \[kg\]"),
        (np.nan, (1, 1, 1), r"rod\.mass is nan; it must be a finite number \[kg\]"),
        (np.inf, (1, 1, 1), r"rod\.mass is inf; it must be a finite number"),
        (1.0, (0, 1, 1), r"rod\.inertia has principal moments 0, 1, 1 kg m²; all must be positive"),
        (1.0, (-1, 1, 1), r"rod\.inertia\.xx is -1; it must be at least 0 \[kg m²\]"),
        (1.0, (1, 1, 3), r"rod\.inertia has principal moments 1, 1, 3 kg m².*triangle inequality"),
        (1.0, (1, 1, 1, 2, 0, 0), r"rod\.inertia has principal moments -1, 1, 3 kg m²; all must be positive"),
        (1.0, (1, np.nan, 1), r"rod\.inertia\.yy is nan"),
    ],
)
def test_impossible_bodies_are_refused_by_name(mass: float, inertia: tuple, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        Mechanism({"rod": Body(mass, inertia)})
