"""Recordings of robots: channels `JOINT.position`, `JOINT.velocity`, `JOINT.effort`, `JOINT.target` and model names.

A recording of joint states names joints; a mechanism asks for the channels of its sensors and inputs. Where a channel
is not there under its own name, the column of its joint is taken. Names of joints agree, or differ by the same words
before and behind all of them (`fer_joint1` and `joint1`, `FL_hip` and `FL_hip_joint`). What else was recorded, such as
a gripper with times of its own, is neither here nor there.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from shadowfit.errors import RecordingError
from shadowfit.mechanism import (
    JointPosition,
    JointSpeed,
    JointTorque,
    Mechanism,
    PositionMotor,
    Servo,
    TorqueMotor,
    VelocityMotor,
)
from shadowfit.models.conditions import strange_conditions
from shadowfit.recordings import Recording, check_recording
from shadowfit.recordings.recording import MINIMUM_SAMPLES

SENSED: dict[type, str] = {JointPosition: "position", JointSpeed: "velocity", JointTorque: "effort"}
DRIVEN: dict[type, str] = {
    TorqueMotor: "effort",
    PositionMotor: "target",
    Servo: "target",
    VelocityMotor: "target_velocity",
}
WORDS = {"effort": "torques", "target": "targets of position loops"}
QUANTITIES = ("position", "velocity", "effort", "target", "target_velocity")


def matched(mechanism: Mechanism, recording: Recording) -> Recording:
    """The recording with the channels of joints under the names of the mechanism's sensors and inputs.

    Rows at which others have samples and none of these go, and so do warnings about other channels.

    Raises:
        RecordingError: the recording has columns of joints, the mechanism asks for some, and no name agrees or several
            do; or it has torques where the mechanism asks for targets of position loops, or the other way round.
    """
    of_joints = _by_joint(mechanism, recording)
    asked = {name.split(".")[0] for name in (*mechanism.sensors, *mechanism.inputs)}
    used = [name for name in of_joints.channels if name.split(".")[0] in asked]
    if not used:
        return recording
    moving = [name for name in used if name not in mechanism.conditions]
    alone = _used_alone(of_joints, used, moving, {*check_recording(recording)})
    return dataclasses.replace(alone, warnings=(*alone.warnings, *strange_conditions(mechanism, alone)))


def _used_alone(recording: Recording, used: list[str], moving: list[str], said: set[str]) -> Recording:
    """The recording at the times of some channels; of what was ``said`` about samples, what is about motion."""
    finite = {name: np.isfinite(values) for name, values in recording.channels.items()}
    present = np.any([finite[name] for name in used], axis=0)
    if present.sum() < MINIMUM_SAMPLES or not moving:
        return recording
    # Rows without any sample are a gap of all, and stay.
    present |= ~np.any(list(finite.values()), axis=0)
    channels = {name: values[present] for name, values in recording.channels.items()}
    rows = dataclasses.replace(recording, time=recording.time[present], channels=channels)
    seen = dataclasses.replace(
        rows,
        channels={name: channels[name] for name in moving},
        units={name: unit for name, unit in recording.units.items() if name in moving},
        columns={name: heading for name, heading in recording.columns.items() if name in moving},
    )
    notes = [text for text in recording.warnings if text not in said]
    return dataclasses.replace(rows, warnings=(*notes, *check_recording(seen)))


def _by_joint(mechanism: Mechanism, recording: Recording) -> Recording:
    wanted = {name: of for name, of in joint_channels(mechanism).items() if name not in recording.channels}
    columns = _joint_columns(recording.channels)
    if not wanted or not columns:
        return recording
    recorded, asked = sorted({joint for joint, _ in columns}), sorted({joint for joint, _ in wanted.values()})
    names, *others = same_joints(asked, recorded) or [{}]
    if others:
        several = "; ".join(", ".join(one.values()) for one in (names, *others))
        raise RecordingError(
            f"{recording.source or recording.name}: the model's joints may be one of these sets: {several}; "
            "say which is which with --channel or --channels"
        )
    if not names:
        raise RecordingError(
            f"{recording.source or recording.name}: no joint of the recording is one of the model's; the recording has "
            f"{', '.join(recorded)}; the model has {', '.join(asked)}; say which is which with --channel or --channels"
        )
    channels = {
        name: columns[names[joint], quantity]
        for name, (joint, quantity) in wanted.items()
        if joint in names and (names[joint], quantity) in columns
    }
    lacking = [name for name in wanted if name in mechanism.inputs and name not in channels]
    _refuse_lacking(recording, {name: wanted[name] for name in lacking}, names, columns)
    return renamed(recording, channels)


def _refuse_lacking(
    recording: Recording,
    lacking: Mapping[str, tuple[str, str]],
    names: Mapping[str, str],
    columns: Mapping[tuple[str, str], str],
) -> None:
    """Raise where inputs have no column, because the recording has another quantity of their joints or lacks some."""
    for drive, recorded, asked in (("torque", "effort", "target"), ("position", "target", "effort")):
        other = {
            name: columns[names[joint], recorded]
            for name, (joint, quantity) in lacking.items()
            if quantity == asked and (names.get(joint), recorded) in columns
        }
        if other:
            raise RecordingError(
                f"{recording.source or recording.name}: the model's inputs are {WORDS[asked]} "
                f"({', '.join(other)}), and the recording has {WORDS[recorded]} ({', '.join(other.values())}): "
                f'write drive = "{drive}" into the model file beside the robot file'
            )
    where, recorded_quantities = recording.source or recording.name, dict.fromkeys(quantity for _, quantity in columns)
    asked_quantities = {quantity for _, quantity in lacking.values()}
    if lacking and not asked_quantities & set(recorded_quantities):
        kinds = " and ".join(WORDS.get(quantity, quantity) for quantity in sorted(asked_quantities))
        raise RecordingError(
            f"{where}: the model's inputs are {kinds} ({', '.join(lacking)}), and of its joints the recording has no "
            f"more than {', '.join(recorded_quantities)}; record them, or say which columns they are with --channel"
        )
    if lacking:
        joints = list(dict.fromkeys(joint for joint, _ in lacking.values()))
        others = sorted({joint for joint, _ in columns} - set(names.values()))
        absent = [joint for joint in joints if joint not in names]
        remarks = [f"joints that the recording lacks: {', '.join(absent)}"] if absent else []
        remarks += [f"the recording's {', '.join(others)}: no joint of the model has such a name"] if others else []
        strange = f" ({'; '.join(remarks)})" if remarks else ""
        raise RecordingError(
            f"{where}: no channel for {', '.join(lacking)}{strange}; where nothing drives these "
            f"joints write motor = false under [joints.{joints[0]}] in the model file beside the robot file"
        )


def joint_channels(mechanism: Mechanism) -> dict[str, tuple[str, str]]:
    """Joint and quantity of each sensor and input that belongs to one joint."""
    sensed = {
        name: (sensor.joint, SENSED[type(sensor)])
        for name, sensor in mechanism.sensors.items()
        if type(sensor) in SENSED
    }
    drives: dict[str, set[tuple[str, str]]] = {}
    for name, joint in mechanism.joints.items():
        for law in joint.laws.values:
            if law.input is not None and type(law) in DRIVEN:
                drives.setdefault(law.input, set()).add((name, DRIVEN[type(law)]))
    return sensed | {name: next(iter(of)) for name, of in drives.items() if len(of) == 1}


def _joint_columns(channels: Iterable[str]) -> dict[tuple[str, str], str]:
    """Joint and quantity → channel, for channels called ``JOINT.quantity``."""
    columns = {}
    for name in channels:
        joint, _, quantity = name.rpartition(".")
        if joint and quantity in QUANTITIES:
            columns[joint, quantity] = name
    return columns


def same_joints(asked: Iterable[str], recorded: Iterable[str]) -> list[dict[str, str]]:
    """Joint of the model → joint of the recording: the likeliest way to see it, several where none is likelier.

    Empty where no name agrees.
    """
    plain = {name: "".join(c if c.isalnum() else "_" for c in name) for name in recorded}
    exact = {joint: name for joint in asked for name, other in plain.items() if joint == other}
    if exact:
        return [exact]
    pairs = [(joint, name, _words_around(joint, other)) for joint in asked for name, other in plain.items()]
    around = Counter(words for _, _, words in pairs if words is not None)
    most = max(around.values(), default=0)
    likeliest = [words for words, count in around.items() if count == most]
    return [{joint: name for joint, name, of in pairs if of == words} for words in likeliest]


def _words_around(first: str, second: str) -> tuple[str, str, bool] | None:
    """What stands before and behind the shorter name in the longer one, and which of the two is longer."""
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    if not shorter or shorter not in longer:
        return None
    before, _, behind = longer.partition(shorter)
    return before, behind, longer is first


def renamed(recording: Recording, names: Mapping[str, str]) -> Recording:
    """The recording with some channels under other names: new name → channel."""
    if not names:
        return recording
    new = {channel: name for name, channel in names.items()}
    return dataclasses.replace(
        recording,
        channels={new.get(key, key): values for key, values in recording.channels.items()},
        units={new.get(key, key): unit for key, unit in recording.units.items()},
        columns={
            **{new.get(key, key): heading for key, heading in recording.columns.items()},
            **{name: recording.columns.get(channel, channel) for name, channel in names.items()},
        },
    )
