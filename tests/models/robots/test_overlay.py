"""A small model file beside a robot file, and the full one that `convert` makes of it."""

import numpy as np
import pytest

from models.robots.test_urdf import ARM
from shadowfit.models import ModelFileError, load_model, parse_model
from shadowfit.models.robots.overlay import _without_absent_motors

TWO = ARM.replace('"flange" type="fixed"', '"elbow" type="revolute"')

OVERLAY = """robot = "robot.urdf"
limits = true
description = "an arm on a desk"

[joints."*"]
friction = "stribeck"
stribeck_rate = 4.0

[joints.elbow]
motor = false
stribeck_rate = 9.0

[inputs.shoulder_effort]
delay = 0.01

[sensors."*_position"]
std = 1e-5

[sensors.tip]
type = "point_position"
body = "tool"
point = [0.1, 0.0, 0.0]

[state]
elbow.position = 0.3
"""


def load(folder, text, robot=TWO):
    (folder / "robot.urdf").write_text(robot, "utf-8")
    (folder / "model.toml").write_text(text, "utf-8")
    return load_model(folder / "model.toml")


def test_what_the_file_adds_and_changes(tmp_path):
    loaded = load(tmp_path, OVERLAY)
    mechanism = loaded.mechanism
    assert loaded.description == "an arm on a desk"
    assert loaded.start.positions == {"elbow": 0.3}
    assert mechanism.get("shoulder.stribeck_rate") == 4.0
    assert mechanism.get("elbow.stribeck_rate") == 9.0
    assert mechanism.get("shoulder.coulomb") == 0.3
    assert mechanism.get("elbow_position.std") == mechanism.get("shoulder_position.std") == 1e-5
    assert mechanism.get("tip.point.x") == 0.1
    assert tuple(mechanism.inputs) == ("shoulder_effort",)
    assert mechanism.get("shoulder_effort.delay") == 0.01
    assert len(mechanism.joints["elbow"].laws) == 0
    assert mechanism.get("shoulder_limits.lower") == -1.5


def test_that_a_joint_has_no_motor_may_be_said_of_one_that_has_none():
    """As of any joint that a file's actuators do not reach; other parts that are taken away must be there."""
    joint = {"child": "tool"}
    assert _without_absent_motors({"joints": {"elbow": {**joint, "motor": False}}}) == {"joints": {"elbow": joint}}
    for other in ({"joints": {"elbow": {**joint, "rotor": False}}}, {"joints": {"elbow": False}}, {"bodies": {}}):
        assert _without_absent_motors(other) == other


def test_the_text_is_a_whole_model_file_that_says_the_same(tmp_path):
    loaded = load(tmp_path, OVERLAY)
    again = parse_model(loaded.text)
    assert again.mechanism.leaves() == loaded.mechanism.leaves()
    for name in loaded.mechanism.leaves():
        np.testing.assert_array_equal(again.mechanism.get(name), loaded.mechanism.get(name))
    assert again.start.positions == loaded.start.positions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('robot = "none.urdf"', "none.urdf: cannot be read"),
        ("robot = 3", "model.toml:1: robot must be a text"),
        ('robot = "robot.urdf"\nlimits = 1', "model.toml:2: limits must be true or false"),
        ('robot = "robot.urdf"\nweld = 1', "model.toml:2: weld must be"),
        ('robot = "robot.urdf"\nweld = "tool"', "'tool' cannot be welded"),
        ('robot = "robot.urdf"\ndrive = "steam"', "model.toml:2: drive is 'steam'"),
        ('robot = "robot.urdf"\n[joints.elbow]\nviscos = 1.0', "model.toml:3: joints.elbow.viscos is not a key"),
        ('robot = "robot.urdf"\n[joints."elb*"]\nviscos = 1.0', "model.toml:3: joints.elbow.viscos is not a key"),
        ('robot = "robot.urdf"\n[joints."hip*"]\nviscous = 1.0', "model.toml:2: joints: no name matches 'hip*'"),
        ('robot = "robot.urdf"\n[inputs."*_target"]\ndelay = 0.1', 'write drive = "position" at the top'),
        (
            'robot = "robot.urdf"\ndrive = "position"\n[inputs."*_effort"]\ndelay = 0.1',
            "model.toml:3: inputs: no name matches '*_effort'; there are: shoulder_target, elbow_target (the file's "
            'actuators are position loops; write drive = "torque" at the top if the recording has JOINT.effort)',
        ),
        ('robot = "robot.urdf"\n[joints.hip]\nviscous = 1.0', "joints.hip.type is missing"),
    ],
)
def test_mistakes_are_named_with_their_line(text, message, tmp_path):
    with pytest.raises(ModelFileError) as raised:
        load(tmp_path, text)
    assert message in str(raised.value)
