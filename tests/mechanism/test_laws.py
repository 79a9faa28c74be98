"""Laws on a joint's axis: torques in closed form, inertia, stored energy, and derivatives at rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.mechanism import AxisLaw, ConstantForce, DcMotor, Drag, PositionMotor, Spring, TorqueMotor, VelocityMotor

LAWS = {
    "torque motor": (TorqueMotor(gain=0.3), lambda x, s, u: 0.3 * u),
    "dc motor": (
        DcMotor(resistance=2.0, torque_constant=0.1, back_emf=0.05, ratio=7.0),
        lambda x, s, u: 7.0 * 0.1 * (u - 0.05 * 7.0 * s) / 2.0,
    ),
    "velocity motor": (VelocityMotor(gain=0.4, target=3.0), lambda x, s, u: 0.4 * (3.0 + u - s)),
    "position motor": (PositionMotor(kp=3.0, kd=0.2), lambda x, s, u: 3.0 * (u - x) - 0.2 * s),
    "clipped position motor": (
        PositionMotor(kp=3.0, kd=0.2, limit=1.1),
        lambda x, s, u: min(max(3.0 * (u - x) - 0.2 * s, -1.1), 1.1),
    ),
    "spring": (Spring(stiffness=5.0, damping=0.2, rest=0.7), lambda x, s, u: -5.0 * (x - 0.7) - 0.2 * s),
    "bent spring": (
        Spring(stiffness=5.0, rest=0.7, quadratic=-0.3, cubic=0.4),
        lambda x, s, u: -5.0 * (x - 0.7) + 0.3 * (x - 0.7) ** 2 - 0.4 * (x - 0.7) ** 3,
    ),
    "drag": (Drag(coefficient=0.6), lambda x, s, u: -0.6 * s * abs(s)),
    "constant force": (ConstantForce(force=-0.8), lambda x, s, u: -0.8),
}
laws = pytest.mark.parametrize(("law", "torque"), LAWS.values(), ids=LAWS)


@laws
def test_torque(law: AxisLaw, torque) -> None:
    for x, s, u in [(0.0, 0.0, 0.0), (0.3, -2.0, 1.5), (-1.0, 4.0, -0.5)]:
        assert float(law.torque(x, s, u)) == pytest.approx(torque(x, s, u), rel=1e-14, abs=1e-15)


@laws
def test_derivatives_are_finite_at_rest_and_right_elsewhere(law: AxisLaw, torque) -> None:
    slopes = jax.jit(jax.grad(lambda x, s, u: law.torque(x, s, u) + 0.0 * (x + s + u), argnums=(0, 1, 2)))
    assert np.all(np.isfinite(slopes(0.0, 0.0, 0.0)))
    point = np.array([0.4, -1.3, 0.8])
    differences = [(torque(*(point + d)) - torque(*(point - d))) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slopes(*point), differences, rtol=1e-7, atol=1e-9)


def test_the_gear_multiplies_the_rotors_inertia_by_its_square() -> None:
    assert float(DcMotor(1.0, 1.0, 1.0, ratio=5.0, shaft_inertia=2e-6).inertia()) == pytest.approx(25 * 2e-6)
    assert float(TorqueMotor(shaft_inertia=3e-5).inertia()) == 3e-5
    assert float(Spring(stiffness=1.0).inertia()) == 0.0


def test_a_springs_torque_is_minus_the_slope_of_its_energy() -> None:
    spring = Spring(stiffness=3.0, rest=0.4)
    for x in (-1.0, 0.4, 2.0):
        assert float(jax.grad(spring.energy)(x)) == pytest.approx(-float(spring.torque(x, 0.0, 0.0)), abs=1e-15)
    assert float(jax.grad(ConstantForce(0.3).energy)(1.2)) == -0.3
    assert float(jnp.asarray(Drag(0.1).energy(1.0))) == 0.0


def test_a_position_motor_takes_the_shorter_way_round() -> None:
    around = 2.0 * np.pi
    motor = PositionMotor(kp=2.0)
    for turns in (-2, 0, 1):
        assert float(motor.torque(3.0, 0.0, -3.0 + turns * around)) == pytest.approx(2.0 * (around - 6.0))
    straight = PositionMotor(kp=2.0, rotary=False)
    assert float(straight.torque(3.0, 0.0, -3.0)) == pytest.approx(-12.0)
