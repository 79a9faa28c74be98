"""Joints of a recording and of a model: the same names, the same names with words around, or none."""

import numpy as np
import pytest

from shadowfit.errors import RecordingError
from shadowfit.mechanism import (
    Body,
    Input,
    JointPosition,
    JointSpeed,
    Mechanism,
    PositionMotor,
    TorqueMotor,
    hinge,
)
from shadowfit.models.matching import matched, same_joints
from shadowfit.recordings import Recording, read_recording

TIME = 0.01 * np.arange(4)


def leg() -> Mechanism:
    return Mechanism(
        {"thigh": Body(1.0, (1, 1, 1)), "shank": Body(1.0, (1, 1, 1))},
        {
            "hip": hinge("world", "thigh", laws={"motor": TorqueMotor(input="u")}),
            "knee": hinge("thigh", "shank", laws={"motor": PositionMotor(3.0, input="goal")}),
        },
        sensors={"q1": JointPosition("hip"), "w2": JointSpeed("knee")},
        inputs={"u": Input(), "goal": Input()},
    )


def recording(*names: str) -> Recording:
    return Recording(TIME, {name: i + TIME for i, name in enumerate(names)})


def test_quantities_go_to_sensors_and_inputs() -> None:
    columns = ("hip.position", "knee.velocity", "hip.effort", "knee.target", "temperature")
    found = matched(leg(), recording(*columns))
    assert set(found.channels) == {"q1", "w2", "u", "goal", "temperature"}
    np.testing.assert_array_equal(found.channel("u"), 2 + TIME)
    assert found.columns["goal"] == "knee.target"


def test_channels_under_their_own_names_stay() -> None:
    found = matched(leg(), recording("q1", "hip.position", "w2", "u", "goal"))
    assert set(found.channels) == {"q1", "hip.position", "w2", "u", "goal"}


def test_words_around_all_names_do_not_matter() -> None:
    assert same_joints(["joint1", "joint2"], ["fer_joint1", "fer_joint2", "gripper"]) == [
        {"joint1": "fer_joint1", "joint2": "fer_joint2"}
    ]
    asked = ["FL_hip_joint", "FL_calf_joint"]
    assert same_joints(asked, ["FL_hip", "FL_calf"]) == [dict(zip(asked, ["FL_hip", "FL_calf"], strict=True))]
    assert same_joints(["wrist_1"], ["wrist-1"]) == [{"wrist_1": "wrist-1"}]


def test_names_that_match_nothing_are_listed() -> None:
    with pytest.raises(RecordingError, match=r"has elbow, wrist; the model has hip, knee; .*--channel"):
        matched(leg(), recording("elbow.position", "wrist.velocity"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("hip.effort", "knee.effort"), r"are targets of position loops \(goal\).*torques \(knee.effort\).*\"torque\""),
        (("hip.target", "knee.target"), r"are torques \(u\).*targets of position loops \(hip.target\).*\"position\""),
        (
            ("knee.target", "ankle.effort"),
            r"no channel for u \(the recording's ankle: no joint .*\); where nothing .*= false under \[joints.hip\]",
        ),
        (
            ("knee.velocity",),
            r"are torques and targets of position loops \(u, goal\), and .* than position, velocity; record them",
        ),
    ],
)
def test_the_other_drive_and_joints_without_one_are_named(columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        matched(leg(), recording("hip.position", *columns))


def test_joints_of_several_robots_are_not_guessed() -> None:
    joints = [f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee")]
    columns = [f"{joint}.{quantity}" for joint in joints for quantity in ("position", "velocity", "effort", "target")]
    with pytest.raises(RecordingError, match="left_hip, left_knee; right_hip, right_knee; say which"):
        matched(leg(), recording(*columns))


def test_what_else_was_recorded_is_neither_here_nor_there() -> None:
    """A gripper with times of its own leaves no rows and no warnings."""
    time = np.sort(np.concatenate([0.01 * np.arange(50), 0.01 * np.arange(0, 50, 7) + 0.004]))
    own = np.isin(time, 0.01 * np.arange(50))
    names = ("hip.position", "knee.velocity", "hip.effort", "knee.target")
    channels = {name: np.where(own, np.sin(i + 9.0 * time), np.nan) for i, name in enumerate(names)}
    read = read_recording({"time": time, **channels, "gripper.position": np.where(own, np.nan, 0.1)})
    assert any("gripper" in text for text in read.warnings)
    found = matched(leg(), read)
    np.testing.assert_array_equal(found.time, time[own])
    assert found.warnings == ()
