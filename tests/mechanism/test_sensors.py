"""Sensors: what they read from a state, how they count turns, and how they differ from a measurement."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from shadowfit.dynamics import State, place
from shadowfit.dynamics.kinematics import StateView
from shadowfit.mechanism import (
    Body,
    BodyAngle,
    BodyOrientation,
    BodyRate,
    FunctionSensor,
    JointPosition,
    JointSpeed,
    Mechanism,
    PointPosition,
    hinge,
    slider,
)
from shadowfit.mechanism.sensors import View

COM = np.array([0.1, -0.3, 0.2])
LENGTH = 0.4


def cart_and_arm() -> tuple[Mechanism, State]:
    """A cart on a rail along x, and an arm that hangs from it on a hinge along y, its centre of mass off its frame."""
    mechanism = Mechanism(
        {"cart": Body(1.0, (1, 1, 1)), "arm": Body(1.0, (1, 1, 1), com=COM)},
        {
            "rail": slider("world", "cart", axis=(1, 0, 0)),
            "pin": hinge("cart", "arm", axis=(0, 1, 0), child_point=(0, 0, LENGTH)),
        },
    )
    return mechanism, place(mechanism, {"rail": 0.5, "pin": 0.3}, {"rail": -0.2, "pin": 2.0})


@pytest.fixture(scope="module")
def view() -> StateView:
    return StateView(*cart_and_arm())


TURN = Rotation.from_rotvec([0, 0.3, 0])


def test_joint_sensors_read_position_and_speed_plus_offset(view: StateView) -> None:
    assert float(JointPosition("pin", offset=0.05).read(view)[0]) == pytest.approx(0.35, rel=1e-13)
    assert float(JointPosition("rail", rotary=False).read(view)[0]) == pytest.approx(0.5, rel=1e-13)
    worn = JointPosition("pin", offset=0.05, scale=1.1, eccentric_sin=0.02, eccentric_cos=-0.01)
    expected = 1.1 * 0.3 + 0.05 + 0.02 * np.sin(0.3) - 0.01 * np.cos(0.3)
    assert float(worn.read(view)[0]) == pytest.approx(expected, rel=1e-13)
    assert float(JointSpeed("pin", offset=-1.0).read(view)[0]) == pytest.approx(1.0, rel=1e-12)
    assert float(JointSpeed("rail", rotary=False).read(view)[0]) == pytest.approx(-0.2, rel=1e-12)


def test_points_are_given_in_the_bodys_frame_not_from_its_centre_of_mass(view: StateView) -> None:
    point = np.array([0.2, 0.1, -0.5])
    expected = np.array([0.5, 0.0, 0.0]) + TURN.apply(point - [0, 0, LENGTH])
    np.testing.assert_allclose(PointPosition("arm", point).read(view), expected, rtol=0, atol=1e-14)
    shifted = PointPosition("arm", point, offset=(1.0, 2.0, 3.0)).read(view)
    np.testing.assert_allclose(shifted - expected, [1.0, 2.0, 3.0], rtol=1e-13)


def test_orientation_and_rate(view: StateView) -> None:
    np.testing.assert_allclose(BodyOrientation("arm").read(view), np.roll(TURN.as_quat(), 1), rtol=0, atol=1e-15)
    # The hinge's axis is the same in the world and in the arm, so the gyroscope sees the joint's speed.
    np.testing.assert_allclose(BodyRate("arm", offset=(0.1, 0, 0)).read(view), [0.1, 2.0, 0.0], rtol=0, atol=1e-12)


def test_the_gyroscope_turns_with_its_body() -> None:
    mechanism = Mechanism({"top": Body(1.0, (1, 1, 1))})
    turn = Rotation.from_rotvec([0.4, 0.5, -0.3])
    state = place(
        mechanism, poses={"top": ((0, 0, 0), np.roll(turn.as_quat(), 1))}, velocities={"top": (0, 0, 0, 1, 2, 3)}
    )
    rate = BodyRate("top").read(StateView(mechanism, state))
    np.testing.assert_allclose(rate, turn.inv().apply([1.0, 2.0, 3.0]), rtol=1e-13)


def test_own_functions_of_the_state(view: StateView) -> None:
    sensor = FunctionSensor(lambda view: view.joint_position("pin") ** 2, offset=0.01, label="rad²")
    assert float(sensor.read(view)[0]) == pytest.approx(0.1, rel=1e-12)
    assert sensor.unit() == "rad²"


@pytest.mark.parametrize("angle", [-3.0, -0.4, 0.0, 2.9])
def test_a_body_angle_is_the_turn_about_a_world_axis(angle: float) -> None:
    class Turned(View):
        def orientation(self, body: str):
            return jnp.asarray(np.roll(Rotation.from_rotvec([0.0, angle, 0.0]).as_quat(), 1))

    sensor = BodyAngle("link", axis=(0.0, 2.0, 0.0), offset=np.pi)
    assert float(sensor.read(Turned())[0]) == pytest.approx(angle + np.pi, abs=1e-14)
    measured = np.array([angle + np.pi + 6 * np.pi - 0.1])
    assert float(sensor.residual(sensor.read(Turned()), measured)[0]) == pytest.approx(0.1, abs=1e-13)


def test_units() -> None:
    assert [JointPosition("j").unit(), JointPosition("j", rotary=False).unit()] == ["rad", "m"]
    assert [JointSpeed("j").unit(), JointSpeed("j", rotary=False).unit()] == ["rad/s", "m/s"]
    assert [s.unit() for s in (PointPosition("b"), BodyOrientation("b"), BodyRate("b"))] == ["m", "1", "rad/s"]


def test_angles_wrap_and_lengths_do_not() -> None:
    """A recording may be off by whole turns; the difference is the short way."""
    reading, measured = np.array([0.1]), np.array([4 * np.pi + 0.3])
    assert float(JointPosition("j").residual(reading, measured)[0]) == pytest.approx(-0.2, abs=1e-13)
    slide = JointPosition("j", rotary=False).residual(reading, measured)
    assert float(slide[0]) == pytest.approx(0.1 - 4 * np.pi - 0.3)
    slope = jax.jacfwd(lambda r: JointPosition("j").residual(r, measured))(reading)
    assert float(slope[0, 0]) == 1.0


def test_encoders_count_turns() -> None:
    angle = np.linspace(0.0, 20.0, 60)
    wrapped = np.angle(np.exp(1j * angle))[:, None]
    np.testing.assert_allclose(JointPosition("j").follow(wrapped)[:, 0], angle, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(JointPosition("j", rotary=False).follow(wrapped), wrapped)


def test_orientations_differ_by_a_rotation_vector() -> None:
    vector = np.array([0.2, -0.1, 0.4])
    base = Rotation.from_rotvec([1.0, 0.3, 0.0])
    reading = np.roll((Rotation.from_rotvec(vector) * base).as_quat(), 1)
    measured = 2.5 * np.roll(base.as_quat(), 1)  # recorded quaternions need not have unit length
    residual = BodyOrientation("b").residual(reading, measured)
    np.testing.assert_allclose(residual, vector, rtol=1e-12)
    np.testing.assert_allclose(BodyOrientation("b").residual(reading, -measured), vector, rtol=1e-12)
    assert BodyOrientation("b").error_size() == 3
    assert JointPosition("j").error_size() == 1
