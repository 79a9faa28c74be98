"""A recording on the time grid of the model: which samples belong to which step, and what is wrong with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from shadowfit.errors import UnknownNameError, nearest
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import Accelerometer, BodyRate, JointPosition, JointSpeed, JointTorque, PointPosition
from shadowfit.recordings import Recording, check_recording
from shadowfit.records import record

# A sample this close to a time of the grid (in steps) is on it.
ON_GRID = 1e-6


@record(frozen=True)
class Track:
    """One recording on its time grid."""

    recording: Recording
    start_time: float
    steps: int
    fraction: np.ndarray
    """``(steps, samples)``: time of each sample after its step's, in steps; of the step before, or of the nearest."""
    measured: tuple[np.ndarray, ...]
    """For each sensor ``(steps, samples, d)``; some reading where missing."""
    present: tuple[np.ndarray, ...]
    """For each sensor ``(steps, samples)``: whether there is a sample."""

    def times(self, timestep: float) -> np.ndarray:
        """Times of the steps [s]."""
        return self.start_time + timestep * np.arange(self.steps)


def lay_on_grid(mechanism: Mechanism, recording: Recording, timestep: float, centred: bool) -> Track:
    """The recording on its grid; a sample belongs to the nearest step (``centred``), or to the one before it."""
    _check_digits(mechanism, recording)
    start = float(recording.time[0])
    place = (recording.time - start) / timestep
    nearest_step = np.round(place)
    place = np.where(np.abs(place - nearest_step) < ON_GRID, nearest_step, place)
    step = (np.round(place) if centred else np.floor(place)).astype(int)
    steps = int(step[-1]) + 1
    if steps < 3:
        raise ProblemError(
            f"recording {recording.name!r} spans {steps} steps of {timestep:g} s; at least 3 are needed: "
            "use a smaller time-step or a longer recording"
        )
    rank = np.arange(len(step)) - np.searchsorted(step, step, side="left")
    samples = int(rank.max()) + 1
    fraction = np.zeros((steps, samples))
    fraction[step, rank] = place - step
    measured, present = [], []
    for name, sensor in mechanism.sensors.items():
        table = np.full((steps, samples, len(sensor.components)), np.nan)
        columns = mechanism.sensors[name].channels(name)
        if any(column in recording.channels for column in columns):
            for component, column in enumerate(columns):
                table[step, rank, component] = recording.channel(column)
        here = np.all(np.isfinite(table), axis=2)
        # Any reading will do where none counts, but it must be one: a quaternion of zeros has no distance from others.
        measured.append(np.where(here[..., None], table, table[here][0] if here.any() else 1.0))
        present.append(here)
    if not any(p.any() for p in present):
        wanted = [c for name in mechanism.sensors for c in mechanism.sensors[name].channels(name)]
        raise UnknownNameError(
            f"recording {recording.name!r} has none of the sensors' channels ({', '.join(wanted)})"
            f"{nearest(wanted[0], recording.channels)}; say which is which with --channel SENSOR=COLUMN or --channels"
        )
    seen = [name for name, here in zip(mechanism.sensors, present, strict=True) if here.any()]
    for name in mechanism.sensors:
        if name not in seen:
            warnings.warn(f"recording {recording.name!r} has no samples of sensor {name!r}", stacklevel=4)
    _check_seen(mechanism, recording, seen)
    _warn_about(mechanism, recording, seen)
    for name in mechanism.inputs:
        if name not in recording.channels:
            raise UnknownNameError(
                f"recording {recording.name!r} has no channel for input {name!r}{nearest(name, recording.channels)}"
            )
    return Track(recording, start, steps, fraction, tuple(measured), tuple(present))


def _check_digits(mechanism: Mechanism, recording: Recording) -> None:
    """Raise where a reading is so large that its floating-point numbers lie further apart than its noise."""
    for name, sensor in mechanism.sensors.items():
        for column in mechanism.sensors[name].channels(name):
            values = np.abs(recording.channels.get(column, np.zeros(1)))
            row = int(np.argmax(np.where(np.isfinite(values), values, 0.0)))
            if np.spacing(values[row]) > float(sensor.std):
                raise ProblemError(
                    f"recording {recording.name!r}: channel {column!r} is {recording.channels[column][row]:.4g} in row "
                    f"{row + 1}, too large a number for a standard deviation of {float(sensor.std):g}; empty the cell, "
                    "or correct its unit"
                )


def _check_seen(mechanism: Mechanism, recording: Recording, seen: Sequence[str]) -> None:
    """Raise if some bodies, with all that joints tie to them, are seen by no sensor: nothing tells where they are."""
    group = {name: name for name in mechanism.bodies}
    for joint in mechanism.joints.values:
        if WORLD not in (joint.parent, joint.child):
            kept, merged = group[joint.parent], group[joint.child]
            group = {name: kept if root == merged else root for name, root in group.items()}
    sensed = {group[body] for name in seen for body in _sensed_bodies(mechanism, name)}
    unseen = [name for name in mechanism.bodies if group[name] not in sensed]
    if unseen:
        raise ProblemError(
            f"recording {recording.name!r}: no sensor with samples sees {', '.join(unseen)} (or anything tied to it by "
            "joints), so its motion cannot be estimated; add a sensor, or leave it out of the model"
        )


def _sensed_bodies(mechanism: Mechanism, name: str) -> tuple[str, ...]:
    """Bodies that a sensor looks at; one of a kind that is not known here may look at any."""
    sensor = mechanism.sensors[name]
    if hasattr(sensor, "joint"):
        joint = mechanism.joints[sensor.joint]
        return tuple(body for body in (joint.parent, joint.child) if body != WORLD)
    return (sensor.body,) if hasattr(sensor, "body") else mechanism.bodies.names


# What each sensor measures, as the checks of recordings call it: turning, then straight motion.
_KINDS: dict[type, tuple[str, str]] = {
    JointPosition: ("angle", "length"),
    JointSpeed: ("angular_velocity", "velocity"),
    PointPosition: ("position", "position"),
    BodyRate: ("angular_velocity", "angular_velocity"),
    Accelerometer: ("acceleration", "acceleration"),
    JointTorque: ("torque", "force"),
}


def _warn_about(mechanism: Mechanism, recording: Recording, seen: Sequence[str]) -> None:
    """Say what about the samples would spoil a fit: gaps, constant channels, degrees, ..."""
    kinds, stds = {}, {}
    for name in seen:
        sensor = mechanism.sensors[name]
        turning, straight = _KINDS.get(type(sensor), ("", ""))
        kind = turning if getattr(sensor, "rotary", True) else straight
        channels = mechanism.sensors[name].channels(name)
        kinds.update(dict.fromkeys(channels, kind))
        stds.update(dict.fromkeys(channels, float(sensor.std)))
    for text in check_recording(recording, kinds, assumed_std=stds):
        warnings.warn(f"recording {recording.name!r}: {text}", stacklevel=5)
