"""A servo's torque in closed form: what its controller, its supply and its winding make of a target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.mechanism import Servo

K, R, U = 0.4, 4.0, 8.0
SERVO = Servo(kp=2.0, torque_constant=K, resistance=R, supply=U, kd=0.1)


def torque(servo: Servo, position: float, speed: float, **channels: float) -> float:
    names = {"target": "input", "supply": "supply_input", "kp": "kp_input", "kd": "kd_input"}
    names |= {"enabled": "enabled_input", "temperature": "temperature_input"}
    values = {names[key]: value for key, value in channels.items()}
    return float(servo.torque(position, speed, jnp.array([values.get(channel, 0.0) for channel in servo.channels])))


def test_between_its_limits_it_is_a_spring_and_a_damper() -> None:
    duty = 2.0 * (0.3 - 0.1) - 0.1 * 0.5
    assert torque(SERVO, 0.1, 0.5, target=0.3) == pytest.approx(K * (duty * U - K * 0.5) / R)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_full_voltage_and_back_emf_are_all_that_a_far_target_gets(side: float) -> None:
    assert torque(SERVO, 0.0, 3.0, target=side * 1.5) == pytest.approx(K * (side * U - K * 3.0) / R)


def test_a_hinge_goes_the_shorter_way() -> None:
    assert torque(SERVO, 3.0, 0.0, target=-3.0) > 0.0
    assert torque(Servo(2.0, K, R, supply=U, rotary=False), 3.0, 0.0, target=-3.0) < 0.0


def test_the_current_is_limited() -> None:
    assert torque(Servo(2.0, K, R, supply=U, current_limit=0.5), 0.0, 0.0, target=1.5) == pytest.approx(0.5 * K)


def test_supply_gains_and_torque_may_be_channels() -> None:
    servo = Servo(0.01, K, R, kd=1e-3, supply_input="v", kp_input="p", kd_input="d", enabled_input="on", supply=99.0)
    told = {"target": 0.2, "supply": 7.0, "kp": 100.0, "kd": 20.0, "enabled": 1.0}
    assert torque(servo, 0.0, 0.5, **told) == pytest.approx(K * ((0.2 - 0.01) * 7.0 - K * 0.5) / R)
    assert torque(servo, 0.0, 0.5, **(told | {"enabled": 0.0})) == 0.0


def test_a_warm_winding_gives_less_torque() -> None:
    servo = Servo(2.0, K, R, supply=U, heating=0.02, temperature_input="t")
    assert torque(servo, 0.0, 0.0, target=1.5, temperature=25.0) == pytest.approx(K * U / R)
    assert torque(servo, 0.0, 0.0, target=1.5, temperature=50.0) == pytest.approx(K * U / R / 1.5)


def test_derivatives_are_those_of_differences() -> None:
    told = jnp.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.0])

    def moved(x: jnp.ndarray) -> jnp.ndarray:
        return SERVO.torque(x[0], x[1], told)

    point, step = np.array([0.1, -0.4]), 1e-6
    differences = [(moved(point + d) - moved(point - d)) / (2 * step) for d in step * np.eye(2)]
    np.testing.assert_allclose(jax.grad(moved)(jnp.asarray(point)), differences, rtol=1e-7)
