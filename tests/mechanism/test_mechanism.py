"""What a mechanism refuses when it is built: each message says what, where, and what is allowed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shadowfit.errors import MechanismError, ShadowfitError, UnknownNameError
from shadowfit.mechanism import (
    AxisLaw,
    Body,
    BodyRate,
    Box,
    Coulomb,
    DcMotor,
    FunctionSensor,
    Gravity,
    Input,
    JointLimit,
    JointPosition,
    JointSpeed,
    Mechanism,
    PointPosition,
    Sphere,
    Spring,
    Stribeck,
    TorqueMotor,
    Wrench,
    ball,
    distance,
    hinge,
    lock,
    slider,
    touch,
)
from shadowfit.mechanism.leaves import number
from shadowfit.models import builtin
from shadowfit.pytrees import field

ROD = Body(1.0, (1.0, 1.0, 1.0))


def build(
    bodies: dict[str, Any] | None = None, joints: dict[str, Any] | None = None, **parts: dict[str, Any]
) -> Mechanism:
    return Mechanism({"rod": ROD} if bodies is None else bodies, joints, **parts)


def pin(**options: Any) -> dict[str, Any]:
    return {"pin": hinge("world", "rod", **options)}


UNKNOWN_NAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "child": (
        lambda: build(joints={"j": hinge("world", "rid")}),
        "the child of joint 'j' is 'rid'.*did you mean 'rod'",
    ),
    "parent": (lambda: build(joints={"j": hinge("wrld", "rod")}), "parent of joint 'j' is 'wrld'.*mean 'world'"),
    "law input": (
        lambda: build(joints=pin(laws={"motor": TorqueMotor(input="v")}), inputs={"u": Input()}),
        r"input of pin\.motor is 'v', which does not exist; there are: u",
    ),
    "no inputs": (
        lambda: build(joints=pin(laws={"motor": TorqueMotor(input="u")})),
        r"input of pin\.motor is 'u', which does not exist; there are none",
    ),
    "limit": (lambda: build(joints=pin(), contacts={"l": JointLimit("pim")}), "joint of contact 'l' is 'pim'.*'pin'"),
    "contact body": (lambda: build(contacts={"c": touch(Sphere(0.1), "rot")}), "body of contact 'c' is 'rot'"),
    "contact plane": (
        lambda: build(contacts={"c": touch(Sphere(0.1), "rod", plane="floor")}),
        "plane of contact 'c' is 'floor'",
    ),
    "force body": (lambda: build(forces={"f": Wrench("rode")}), "body of force 'f' is 'rode'"),
    "force input": (lambda: build(forces={"f": Wrench("rod", input="w")}), "input of force 'f' is 'w'"),
    "sensor joint": (
        lambda: build(joints=pin(), sensors={"s": JointPosition("pinn")}),
        "joint of sensor 's' is 'pinn'",
    ),
    "sensor body": (lambda: build(sensors={"s": PointPosition("bar")}), "body of sensor 's' is 'bar'"),
    "gyroscope": (lambda: build(sensors={"s": BodyRate("bar")}), "body of sensor 's' is 'bar'"),
}


@pytest.mark.parametrize(("construct", "message"), UNKNOWN_NAMES.values(), ids=UNKNOWN_NAMES)
def test_names_that_do_not_exist(construct: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        construct()


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: build({}), "needs at least one body"),
    "bad name": (lambda: build({"my rod": ROD}), "'my rod' is not a valid name; use letters"),
    "world": (lambda: build({"world": ROD}), "'world' is used twice"),
    "twice": (lambda: build({"rod": ROD}, {"rod": hinge("world", "rod")}), "'rod' is used twice"),
    "to itself": (lambda: build(joints={"j": hinge("rod", "rod")}), "joint 'j' connects 'rod' to itself"),
    "zero axis": (lambda: hinge("world", "rod", axis=(0, 0, 0)), "axis must be three finite numbers.* not all zero"),
    "nan axis": (lambda: hinge("world", "rod", axis=(np.nan, 0, 1)), "axis must be three finite numbers"),
    "zero rotation": (lambda: hinge("world", "rod", zero_rotation=(0, 0, 0, 0)), "a rotation is four finite numbers"),
    "short point": (lambda: build(joints=pin(child_point=(1.0, 2.0))), r"pin\.child_point has shape \(2,\).*3 numbers"),
    "nan point": (lambda: build(joints=pin(child_point=(1, np.nan, 0))), r"pin\.child_point\.y is nan"),
    "negative compliance": (lambda: build(joints=pin(compliance=-1e-4)), r"pin\.compliance\.linear is -0.0001"),
    "negative damping": (lambda: build(joints=pin(damping=-1.0)), r"pin\.damping is -1; it must be at least 0 \[s\]"),
    "negative viscous": (lambda: build(joints=pin(viscous=-1.0)), r"pin\.viscous is -1; it must be at least 0"),
    "negative friction": (lambda: build(joints=pin(friction=Coulomb(dry=-0.1))), r"pin\.dry is -0.1; .*at least 0"),
    "negative level": (lambda: build(joints=pin(friction=Coulomb(coulomb=-0.1))), r"pin\.coulomb is -0.1"),
    "negative stribeck": (lambda: build(joints=pin(friction=Stribeck(stribeck=-1.0))), r"pin\.stribeck is -1"),
    "negative stick time": (lambda: build(joints=pin(friction=Coulomb(stick_time=-1.0))), r"pin\.stick_time is -1"),
    "friction is no law": (lambda: build(joints=pin(friction=0.1)), "friction of 'pin' is a float, not a friction law"),
    "radius of a slider": (
        lambda: build(joints={"s": slider("world", "rod", friction=Coulomb(dry_radius=0.0))}),
        r"s\.dry_radius must be positive",
    ),
    "law is no law": (lambda: build(joints=pin(laws={"motor": 3.0})), r"pin\.motor is a float, not an axis law"),
    "negative shaft": (
        lambda: build(joints=pin(laws={"m": TorqueMotor(shaft_inertia=-1.0, input=None)})),
        r"pin\.m\.shaft_inertia is -1",
    ),
    "no resistance": (
        lambda: build(joints=pin(laws={"m": DcMotor(0.0, 0.1, 0.1, input=None)})),
        r"pin\.m\.resistance is 0; it must be at least 1e-09 \[Ohm\]",
    ),
    "negative stiffness": (lambda: build(joints=pin(laws={"k": Spring(-1.0)})), r"pin\.k\.stiffness is -1"),
    "law on a ball": (
        lambda: build(joints={"b": ball("world", "rod", laws={"k": Spring(1.0)})}),
        "joint 'b' is a ball, which has no free axis",
    ),
    "friction on a lock": (
        lambda: build(joints={"l": lock("world", "rod", friction=Coulomb(dry=0.1))}),
        "joint 'l' is a lock, which has no free axis",
    ),
    "viscous on a distance": (
        lambda: build(joints={"d": distance("world", "rod", 1.0, viscous=0.1)}),
        "joint 'd' is a distance, which has no free axis",
    ),
    "zero distance": (lambda: build(joints={"d": distance("world", "rod", 0.0)}), r"d\.length must be positive"),
    "limit on a ball": (
        lambda: build(joints={"b": ball("world", "rod")}, contacts={"l": JointLimit("b")}),
        "contact 'l' refers to joint 'b', which has no free axis",
    ),
    "limits crossed": (
        lambda: build(joints=pin(), contacts={"l": JointLimit("pin", 1.0, 0.5)}),
        r"l: lower \(1\) must be below upper \(0.5\)",
    ),
    "limits beyond half a turn": (
        lambda: build(joints=pin(), contacts={"l": JointLimit("pin", -4.0, 1.0)}),
        "stops of a hinge must lie between −π and π rad, not at -4 and 1",
    ),
    "negative contact friction": (
        lambda: build(contacts={"c": touch(Box((1, 1, 1)), "rod", friction=-0.5)}),
        r"c\.friction is -0.5; it must be at least 0",
    ),
    "negative contact compliance": (
        lambda: build(contacts={"c": touch(Box((1, 1, 1)), "rod", compliance=-1.0)}),
        r"c\.compliance is -1",
    ),
    "plane on itself": (
        lambda: build(contacts={"c": touch(Sphere(0.1), "rod", plane="rod")}),
        "contact 'c': a body cannot touch a plane fixed to itself",
    ),
    "sensor on a ball": (
        lambda: build(joints={"b": ball("world", "rod")}, sensors={"s": JointPosition("b")}),
        "sensor 's' refers to joint 'b', which has no free axis",
    ),
    "rotary slider": (
        lambda: build(joints={"r": slider("world", "rod")}, sensors={"s": JointSpeed("r")}),
        "sensor 's': rotary must be False for joint 'r'",
    ),
    "blind sensor": (lambda: build(joints=pin(), sensors={"s": JointPosition("pin", scale=0.0)}), r"s\.scale is zero"),
    "negative std": (lambda: build(joints=pin(), sensors={"s": JointPosition("pin", std=-1.0)}), r"s\.std is -1"),
    "unknown hold": (lambda: build(inputs={"u": Input(hold="cubic")}), "input 'u': hold must be 'zero' or 'linear'"),
    "unknown frame": (lambda: build(forces={"f": Wrench("rod", frame="moon")}), "force 'f': frame must be 'world'"),
    "nan force": (lambda: build(forces={"f": Wrench("rod", force=(np.nan, 0, 0))}), r"f\.force\.x is nan"),
    "negative gravity": (lambda: build(gravity=Gravity(-9.8)), r"gravity\.acceleration is -9.8; .*at least 0 \[m/s²\]"),
    "gravity is a number": (lambda: build(gravity=9.8), "'gravity' is a float; a Gravity is expected there"),
    "body is a number": (lambda: build({"rod": 1.0}), "'rod' is a float; a Body is expected there"),
    "joint among sensors": (lambda: build(sensors=pin()), "'pin' is a Joint; a Sensor is expected there"),
    "numbers share a name": (
        lambda: build(joints=pin(laws={"compliance": _WithLinear(1.0)})),
        r"two numbers share the name 'pin\.compliance\.linear'",
    ),
}


class _WithLinear(AxisLaw):
    """A law whose number is called like one of the joint's own."""

    linear: Any = number("N m")
    input: str | None = field(static=True, default=None)


@pytest.mark.parametrize(("construct", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named_when_the_mechanism_is_built(construct: Callable[[], Any], message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        construct()


def test_all_errors_are_of_one_family() -> None:
    assert issubclass(MechanismError, ShadowfitError)
    assert issubclass(UnknownNameError, ShadowfitError)
    assert issubclass(ShadowfitError, ValueError)


def test_infinite_stops_are_ordinary() -> None:
    build(joints=pin(), contacts={"l": JointLimit("pin", lower=-1.0)})
    build(joints={"s": slider("world", "rod")}, contacts={"l": JointLimit("s", lower=-40.0, upper=20.0)})


def test_function_sensors_need_no_body() -> None:
    build(sensors={"height": FunctionSensor(lambda view: view.point("rod", np.zeros(3))[2], label="m")})


def test_a_box_has_no_negative_size() -> None:
    with pytest.raises(MechanismError, match=r"floor\.half_size\.x is -0\.1; it must be at least 0 \[m\]"):
        builtin.incline().set({"floor.half_size.x": -0.1})


def test_groups_stand_for_their_numbers() -> None:
    arm = hinge("world", "link1", friction=Coulomb(), laws={"motor": TorqueMotor(input=None)})
    mechanism = Mechanism({"link1": Body(1.0, (1, 1, 1)), "tip": Body(1.0, (1, 1, 1))}, {"joint1": arm})
    entries = ("xx", "yy", "zz", "xy", "xz", "yz")
    inertial = ["link1.mass", *(f"link1.inertia.{e}" for e in entries), *(f"link1.com.{x}" for x in "xyz")]
    assert set(mechanism.expand("link1.inertial")) == set(inertial)
    assert set(mechanism.expand("link*.inertial")) == set(inertial)
    assert set(mechanism.expand("joint*.friction")) == {"joint1.viscous", "joint1.coulomb"}
    assert mechanism.expand("joint1.armature") == ["joint1.motor.shaft_inertia"]
    assert mechanism.expand("joint1.gain") == ["joint1.motor.gain"]
    assert mechanism.expand("joint1.motor.gain") == ["joint1.motor.gain"]
    assert mechanism.expand("link1.weight") == ["link1.weight"]
