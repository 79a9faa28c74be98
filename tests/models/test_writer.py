"""Writing model files: what is written reads back as the same mechanism, to the last digit."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowfit.errors import ShadowfitError
from shadowfit.mechanism import (
    Accelerometer,
    Body,
    BodyAngle,
    BodyOrientation,
    BodyRate,
    Box,
    Compliance,
    ConstantForce,
    Coulomb,
    DcMotor,
    Drag,
    FunctionSensor,
    Gravity,
    Input,
    JointLimit,
    JointPosition,
    JointSpeed,
    JointTorque,
    Mechanism,
    MotorPosition,
    MotorSpeed,
    PointPosition,
    PositionMotor,
    Ratio,
    Rotor,
    Servo,
    Sphere,
    Spring,
    Stribeck,
    TorqueMotor,
    VelocityMotor,
    Wrench,
    ball,
    connect,
    distance,
    hinge,
    leaves,
    lock,
    slider,
    touch,
)
from shadowfit.mechanism.joint_types import Planar, SameAngle
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import (
    ModelFileError,
    Start,
    format_model,
    library,
    load_model,
    read_model,
    vocabulary,
    write_model,
)
from shadowfit.models.reader import parse_model
from shadowfit.models.writer import same_numbers
from trees import same_trees


def everything():
    """A mechanism with every part that model files know."""
    bodies = {f"b{i}": Body(0.1 * (i + 1), (0.01, 0.011, 0.012, 1e-3, -1e-3, 2e-4), (0.1, 0.0, -0.2)) for i in range(6)}
    joints = {
        "h": hinge(
            "world",
            "b0",
            axis=(1.0, 2.0, 3.0),
            zero_rotation=(0.5, -0.5, 0.5, 0.5),
            friction=Stribeck(dry=0.1, stribeck=0.2, coulomb=0.3, stribeck_coulomb=0.4, stribeck_rate=5.0),
            laws={"motor": DcMotor(8.0, 0.04, 0.05, ratio=2.0), "drag": Drag(1e-4), "cable": Spring(1.0, 2.0, 3.0)},
        ),
        "s": slider(
            "b0",
            "b1",
            axis=(0.0, -1.0, 0.0),
            compliance=Compliance(1e-5, 1e-6),
            damping=0.0,
            viscous=0.1,
            friction=Coulomb(dry=0.2),
            laws={
                "drive": VelocityMotor(3.0, input="v"),
                "push": TorqueMotor(0.0, 0.3),
                "hold": PositionMotor(9.0, 1.0, 4.0, rotary=False),
                "servo": Servo(0.5, 0.4, 4.0, supply_input="v", current_limit=2.0, rotary=False),
                "idle": Rotor(0.2),
                "pull": ConstantForce(-0.4),
            },
        ),
        "k": ball("b1", "b2", child_point=(0.1, 0.2, 0.3)),
        "w": lock("b2", "b3", zero_rotation=(0.0, 1.0, 0.0, 0.0)),
        "d": distance("b3", "b4", 0.25),
        "e": connect(SameAngle(), "b2", "b5", axis=(0.0, 1.0, 0.0)),
        "p": connect(Planar(), "world", "b4", axis=(0.0, 0.0, 1.0)),
    }
    contacts = {
        "low": JointLimit("h", lower=-1.0),
        "both": JointLimit("s", lower=-1.0, upper=2.0, compliance=0.0),
        "floor": touch(Box((0.1, 0.2, 0.3)), "b4", friction=0.5, plane_point=(0.0, 0.0, -9.0)),
        "wall": touch(Sphere(0.1), "b5", normal=(1.0, 1.0, 0.0), plane="b4", center=(0.0, 0.1, 0.0)),
    }
    sensors = {
        "angle": JointPosition("h", std=0.0, offset=0.1),
        "shift": JointPosition("s", rotary=False),
        "rate": JointSpeed("h"),
        "speed": JointSpeed("s", rotary=False),
        "tip": PointPosition("b2", point=(0.0, 0.1, 0.0), offset=(1.0, 2.0, 3.0)),
        "turned": BodyOrientation("b3"),
        "inclined": BodyAngle("b3", axis=(0.0, 1.0, 0.0), offset=0.2),
        "effort": JointTorque("s", gain=1.2, rotary=False),
        "felt": Accelerometer("b4", point=(0.0, 0.1, 0.0), offset=(0.0, 0.0, 0.1)),
        "gyro": BodyRate("b4", offset=(1e-3, 0.0, 0.0), mounting=(0.0, 0.0, 1.0, 0.0)),
        "motor": MotorPosition(Parts({"h": Ratio(30.0), "s": Ratio(-2.0)}), offset=0.1),
        "motor_rate": MotorSpeed(Parts({"h": Ratio(30.0)})),
    }
    forces = {
        "wind": Wrench("b0", force=(1.0, 0.0, 0.0)),
        "thrust": Wrench("b5", force=(0.0, 0.0, 1.0), torque=(0.1, 0.0, 0.0), input="u", frame="body"),
    }
    inputs = {"u": Input(unit="V", delay=0.01, offset=-0.5), "v": Input(0.0, hold="linear")}
    gravity = Gravity(9.81, (np.cos(0.01), np.sin(0.01), 0.0, 0.0))
    return Mechanism(
        bodies, joints, contacts=contacts, forces=forces, sensors=sensors, inputs=inputs, gravity=gravity, name="all"
    )


def assert_same(a, b):
    assert a.name == b.name
    for name, leaf in a.leaves().items():
        assert np.array_equal(leaves.read(a, leaf), leaves.read(b, leaf)), name
    assert same_trees(a, b)


@pytest.mark.parametrize("name", library())
def test_built_in_models_survive(name):
    loaded = load_model(name)
    again = parse_model(format_model(loaded.mechanism, start=loaded.start, description=loaded.description))
    assert_same(loaded.mechanism, again.mechanism)
    assert again.start.positions == loaded.start.positions
    assert again.description == loaded.description


def test_every_part_survives(tmp_path):
    mechanism = everything()
    words = (vocabulary.JOINT_TYPES, vocabulary.AXIS_LAWS, vocabulary.FRICTION_LAWS, vocabulary.CONTACT_SHAPES)
    used = {
        type(part) for joint in mechanism.joints.values for part in (joint.kind, joint.friction, *joint.laws.values)
    }
    used |= {type(part) for part in (*mechanism.sensors.values, *mechanism.contacts.values)}
    used |= {type(contact.shape) for contact in mechanism.contacts.values if hasattr(contact, "shape")}
    known = {part for group in (*words, vocabulary.SENSORS, vocabulary.CONTACTS) for part in group.values()}
    assert known <= used, "the mechanism of this test must hold every part"
    write_model(mechanism, tmp_path / "all.toml")
    assert_same(read_model(tmp_path / "all.toml"), mechanism)


@settings(max_examples=10)
@given(st.data())
def test_any_numbers_survive(data):
    mechanism = load_model("furuta").mechanism
    small = st.floats(1e-9, 1e3)
    values = {}
    for name, leaf in mechanism.leaves().items():
        if leaf.kind == "rotation":
            quaternion = np.array(data.draw(st.tuples(*[st.floats(-1.0, 1.0)] * 4)))
            norm = np.linalg.norm(quaternion)
            values[name] = quaternion / norm if norm > 1e-3 else [1.0, 0.0, 0.0, 0.0]
        elif ".inertia." not in name:
            values[name] = data.draw(small)
    mechanism = mechanism.set(values)
    assert_same(parse_model(format_model(mechanism)).mechanism, mechanism)


@pytest.mark.parametrize("seed", [0, 1, 2406, 2823])
def test_any_hinge_survives(seed):
    """Few axes come out of the reader to the last digit, and those must be told from the many that do not."""
    axis = np.random.default_rng(seed).normal(size=7)[4:]
    mechanism = Mechanism({"b": Body(1.0, (1, 1, 1))}, {"j": hinge("world", "b", axis=axis)})
    assert same_numbers(parse_model(format_model(mechanism)).mechanism, mechanism)


def test_starts_survive():
    mechanism = Mechanism(
        {"free": Body(1.0, (1.0, 1.0, 1.0)), "arm": Body(1.0, (1.0, 1.0, 1.0))}, {"h": hinge("world", "arm")}
    )
    turn = np.array([np.cos(0.3), 0.0, np.sin(0.3), 0.0])
    start = Start({"h": 0.1 + 0.2}, {"h": -1e-3}, {"free": (np.arange(3.0), turn)}, {"free": np.arange(6.0) / 7.0})
    again = parse_model(format_model(mechanism, start=start)).start
    assert (again.positions, again.speeds) == (start.positions, start.speeds)
    for kept, given_ in zip(again.poses["free"], start.poses["free"], strict=True):
        assert np.array_equal(kept, given_)
    assert np.array_equal(again.velocities["free"], start.velocities["free"])


def test_files_are_for_people():
    text = format_model(load_model("furuta").mechanism, comment="Fitted.\n\nTwice.", description='A "rig"')
    assert text.startswith('# Fitted.\n#\n# Twice.\nname = "furuta"\ndescription = "A \\"rig\\""\n')
    for line in (
        "axis = [0.0, 0.0, 1.0]",
        "zero_rotation = { x = [0.0, 0.0, -1.0], y = [1.0, 0.0, 0.0] }",
        "viscous = 0.0001  # N m s/rad",
        'friction = "coulomb"',
    ):
        assert line in text.splitlines()
    assert "com = " not in text, "zeros that mean nothing are left out"


def test_odd_names_and_texts_survive():
    body = {"größe": Body(1.0, (1.0, 1.0, 1.0))}
    mechanism = Mechanism(
        body, {"α": hinge("world", "größe", laws={"µ": Drag(1.0)})}, inputs={"ü": Input(unit='°"\x7f\n')}
    )
    assert_same(parse_model(format_model(mechanism)).mechanism, mechanism)


def test_what_has_no_word_is_refused(tmp_path):
    bodies = {"b": Body(1.0, (1.0, 1.0, 1.0))}
    by_function = Mechanism(bodies, sensors={"f": FunctionSensor(lambda view: view.point("b", np.zeros(3))[0])})
    with pytest.raises(ModelFileError, match=r"sensors\.f is a FunctionSensor, which model files have no word for"):
        write_model(by_function, tmp_path / "no.toml")
    hidden = Mechanism(bodies, {"h": hinge("world", "b", laws={"damping": Spring(1.0)})})
    with pytest.raises(ModelFileError):
        write_model(hidden, tmp_path / "no.toml")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "model.toml"
    mechanism = load_model("pendulum").mechanism
    write_model(mechanism, path)
    before = path.read_text()

    def fail(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(ShadowfitError, match=r"model\.toml cannot be written: No space left on device"):
        write_model(mechanism.set({"hinge.viscous": 1.0}), path)
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]
