"""Settings that follow from how fast the recorded motion is, where they are not given: time-step and cut-off."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import BodyOrientation, Sensor
from shadowfit.recordings import Recording
from shadowfit.recordings.pace import pace

# Longest time-step [s]: the paper's. Slower motions would allow for longer ones, and a fit of them costs little anyway.
LONGEST_STEP = 0.01
# Steps within the pace of a motion, a sixth of a swing's period.
STEPS = 8.0
# Lowest cut-off [Hz] of the filter behind the first trajectory: the paper's; and the cut-off times the pace.
LOWEST_CUTOFF, CUTOFF = 10.0, 0.8


def pace_of(mechanism: Mechanism, recording: Recording, channels: Container[str] | None = None) -> float:
    """Time [s] in which the quickest channel of a configuration has half forgotten where it was; infinite if none has.

    Of some ``channels``, or of all. Orientations are left out: their quaternions may change sign at any time.
    """
    times = [
        pace(recording.channels[channel], recording.sample_interval, angle=getattr(sensor, "rotary", False))
        for name, sensor in mechanism.sensors.items()
        if of_configuration(sensor) and not isinstance(sensor, BodyOrientation)
        for channel in sensor.channels(name)
        if channel in (recording.channels if channels is None else channels)
    ]
    return min(times, default=np.inf)


def of_configuration(sensor: Sensor) -> bool:
    """Whether a sensor tells where bodies are.

    Speeds, accelerations and torques are noisier, and their jumps are none of the configuration.
    """
    return not (sensor.needs_velocity or sensor.needs_acceleration or sensor.needs_command)


def default_timestep(intervals: Sequence[float], quickest: float = np.inf) -> float:
    """The smallest of the sampling intervals [s], or the largest whole multiple of it that is short enough.

    That is at most 10 ms, and an eighth of the pace of the quickest motion [s]: 48 steps for the period of a swing.
    """
    interval, longest = min(intervals), min(LONGEST_STEP, quickest / STEPS)
    # Twelve digits: time stamps that are written in decimals give intervals like 0.0099999999999998.
    return float(f"{interval * max(1, int(longest / interval * (1.0 + 1e-9))):.12g}")


def default_cutoff(quickest: float) -> float:
    """Cut-off [Hz] for motions of this pace [s]: five times the frequency of a swing, and at least 10 Hz."""
    return max(LOWEST_CUTOFF, CUTOFF / quickest)
