"""Gravity turns with the stand."""

import numpy as np
from scipy.spatial.transform import Rotation

from shadowfit.mechanism import Gravity


def test_gravity_points_down_unless_tilted() -> None:
    np.testing.assert_array_equal(Gravity().vector(), [0.0, 0.0, -9.82])


def test_tilt_turns_the_vector_and_keeps_its_length() -> None:
    turn = Rotation.from_rotvec([0.3, -0.2, 0.5])
    gravity = Gravity(9.81, tilt=np.roll(turn.as_quat(), 1))
    np.testing.assert_allclose(gravity.vector(), turn.apply([0.0, 0.0, -9.81]), rtol=0, atol=1e-14)


def test_no_gravity_is_ordinary() -> None:
    np.testing.assert_array_equal(Gravity(0.0, tilt=(0.6, 0.8, 0.0, 0.0)).vector(), np.zeros(3))
