"""What a simulation's sensors and inputs read, as columns of a table that ``read_recording`` understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shadowfit.recordings import parse_unit

if TYPE_CHECKING:
    from shadowfit.dynamics import Trajectory
    from shadowfit.mechanism import Mechanism


def columns(mechanism: Mechanism, run: Trajectory, inputs: Mapping[str, Any], start: float = 0.0) -> dict[str, Any]:
    """Heading with unit → values over time: the time [s], all sensors, and all inputs (each held to the next row)."""
    table = {"time [s]": start + np.asarray(run.time)}
    for name, sensor in mechanism.sensors.items():
        values = np.asarray(run.readings[name]).reshape(len(run), -1)
        for channel, column in zip(sensor.channels(name), values.T, strict=True):
            table[_heading(channel, sensor.unit())] = column
    for name, signal in inputs.items():
        # The last row has no step of its own; it repeats the one before.
        held = np.append(signal, signal[-1])[: len(run)]
        table[_heading(name, mechanism.inputs[name].unit)] = held
    return table


def _heading(name: str, unit: str) -> str:
    return name if parse_unit(unit) is None else f"{name} [{unit}]"
