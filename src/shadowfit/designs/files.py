"""A designed motion as files: a table for any machine (CSV), a joint trajectory for ROS controllers (YAML)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from shadowfit.arrays import Float
from shadowfit.designs.constraints import axis_torques
from shadowfit.designs.criteria import in_words
from shadowfit.designs.design import Design
from shadowfit.designs.motions import single_axes
from shadowfit.designs.setup import driven_joints
from shadowfit.dynamics.tree import coordinate_names
from shadowfit.recordings import parse_unit

# Points of a trajectory file in a second at most: controllers interpolate between them.
POINT_RATE = 100.0


def motion_table(designed: Design) -> dict[str, Float[np.ndarray, " n"]]:
    """Heading with unit → values at the sampling rate: time, inputs, and the joints' positions, speeds and torques.

    Columns of inputs are called as in recordings: ``simulate --recording`` takes the file.
    """
    mechanism, motion = designed.experiment.mechanism, designed.motion
    time = _times(designed, designed.settings.interval)
    table = {"time [s]": time}
    for place, (name, part) in enumerate(mechanism.inputs.items()):
        table[_heading(name, part.unit)] = CubicSpline(motion.time, motion.inputs[0, :, place])(time)
    driven = {name for name, _ in driven_joints(mechanism).values()}
    for name, place, unit in _axes(designed):
        curve = CubicSpline(motion.time, motion.coordinates[0, :, place])
        table[f"{name}.position [{unit}]"], table[f"{name}.speed [{unit}/s]"] = curve(time), curve(time, 1)
        if name in driven:
            torque = CubicSpline(motion.time, axis_torques(designed.experiment, motion, name)[0])
            table[f"{name}.torque [{'N m' if unit == 'rad' else 'N'}]"] = torque(time)
    return table


def trajectory_text(designed: Design) -> str:
    """The motion as a ``trajectory_msgs/JointTrajectory`` in YAML: positions, velocities and accelerations."""
    axes, motion = _axes(designed), designed.motion
    time = _times(designed, max(designed.settings.interval, 1.0 / POINT_RATE))
    curves = [CubicSpline(motion.time, motion.coordinates[0, :, place]) for _, place, _ in axes]
    rows = [np.stack([curve(time, order) for curve in curves], axis=1) for order in range(3)]
    lines = ["# trajectory_msgs/JointTrajectory", f"joint_names: [{', '.join(name for name, _, _ in axes)}]", "points:"]
    for k, at in enumerate(time):
        nanoseconds = round(at * 1e9)
        for text, row in zip(("- positions", "  velocities", "  accelerations"), rows, strict=True):
            lines.append(f"{text}: [{', '.join(f'{value:.9g}' for value in row[k])}]")
        lines.append(f"  time_from_start: {{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}")
    return "\n".join(lines) + "\n"


def summary(designed: Design) -> dict[str, Any]:
    """What a design says, as JSON values."""
    names, rests = (
        coordinate_names(designed.experiment.tree, designed.experiment.mechanism),
        designed.motion.coordinates[0, 0],
    )
    rows = zip(designed.labels, designed.relative.tolist(), designed.std.tolist(), designed.shift.tolist(), strict=True)
    return {
        "criterion": {"name": designed.settings.criterion, "value": designed.criterion},
        "duration": designed.settings.duration,
        "start": {name: float(at) for name, at in zip(names, rests, strict=True)},
        "parameters": {
            name: {"relative_std": _finite(relative), "std": _finite(std), "shift": _finite(shift)}
            for name, relative, std, shift in rows
        },
        "untold": [in_words(finding) for finding in designed.unknown],
        "usual": dict(designed.usual),
        "end_speeds": designed.end_speeds,
        "worth_of_a_second": designed.worth,
        "force_noise": dict(designed.force_noise),
        "sensor_noise": {name: float(sensor.std) for name, sensor in designed.experiment.mechanism.sensors.items()},
        "assumed_limits": list(designed.setup.assumed),
        "evaluations": designed.evaluations,
        "broken_off": designed.late,
        "seconds": designed.seconds,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _times(designed: Design, interval: float) -> Float[np.ndarray, " n"]:
    last = float(designed.motion.time[-1])
    return np.minimum(interval * np.arange(int(last / interval * (1.0 + 1e-9)) + 1), last)


def _axes(designed: Design) -> list[tuple[str, int, str]]:
    """Joints with one axis: name, place among the coordinates, unit."""
    names = coordinate_names(designed.experiment.tree, designed.experiment.mechanism)
    return [(names[place], place, "m" if way < 3 else "rad") for place, _, way in single_axes(designed.experiment.tree)]


def _heading(name: str, unit: str) -> str:
    return name if parse_unit(unit) is None else f"{name} [{unit}]"
