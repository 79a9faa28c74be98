"""Conditions of drives in recordings: what is said of supplies, gains and torque that cannot be so."""

import numpy as np
import pytest

from shadowfit.models import parse_model
from shadowfit.models.matching import matched
from shadowfit.recordings import Recording

BENCH = """
[bodies.arm]
mass = 0.5
com = [0.0, 0.0, -0.1]
inertia = { xx = 1e-4, yy = 1e-4, zz = 1e-4 }
[joints.horn]
type = "hinge"
parent = "world"
child = "arm"
axis = [0.0, 1.0, 0.0]
[joints.horn.servo]
type = "servo"
kp = 0.003
kp_input = "gain"
supply_input = "volt"
enabled_input = "on"
torque_constant = 0.4
resistance = 4.0
[inputs.u]
[inputs.gain]
[inputs.volt]
[inputs.on]
[sensors.q]
type = "joint_position"
joint = "horn"
"""


def said(**channels: float) -> str:
    time = np.linspace(0.0, 1.0, 50)
    told = {"gain": 400.0, "volt": 7.4, "on": 1.0} | channels
    constant = {name: np.full(50, value) for name, value in told.items()}
    moving = {"q": np.sin(time), "u": np.cos(time)}
    return "; ".join(
        matched(parse_model(BENCH, "bench.toml").mechanism, Recording(time, {**moving, **constant})).warnings
    )


def test_conditions_may_be_the_same_all_the_time() -> None:
    assert said() == ""


@pytest.mark.parametrize(
    ("channels", "sentence"),
    [
        ({"volt": 0.0}, "the supply 'volt' is never above zero"),
        ({"on": 0.0}, "torque is off all the time"),
        ({"on": 255.0}, "1 or 0, not 255"),
        ({"gain": 1e6}, "servo's own unit"),
    ],
)
def test_each_mistake_has_a_sentence(channels: dict[str, float], sentence: str) -> None:
    assert sentence in said(**channels)
