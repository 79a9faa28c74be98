"""Which columns of the recordings a model reads, and what is in them: the first thing to look at before a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording
from shadowfit.recordings.grid import quantisation
from shadowfit.records import record


@record(frozen=True)
class UsedChannel:
    """A channel of a recording that stands for a sensor or an input of the model."""

    recording: str
    name: str
    column: str
    """Heading in the file."""
    unit: str
    """Of the numbers here, as the file states it or the model takes it (:func:`unit_of`)."""
    low: float
    high: float
    step: float | None
    """Distance of neighbouring values where they lie on a grid, as those of an encoder do."""
    samples: int
    """Samples that are not missing."""
    interval: float
    """Median time between samples [s]."""


def used_channels(mechanism: Mechanism, recordings: Sequence[Recording]) -> list[UsedChannel]:
    """The channels of each recording that the model asks for, in the recording's order."""
    asked = {name.split(".")[0] for name in (*mechanism.sensors, *mechanism.inputs)}
    return [
        _used(mechanism, recording, name)
        for recording in recordings
        for name in recording.channels
        if name.split(".", maxsplit=1)[0] in asked
    ]


def unit_of(mechanism: Mechanism, recording: Recording, name: str) -> str:
    """Unit of a channel; where the file states none, the one that the model's sensor or input takes it for."""
    if name in recording.units:
        return recording.units[name]
    if name in mechanism.inputs:
        return f"{mechanism.inputs[name].unit}, not stated"
    # Channels of sensors with several, such as poses, differ in their units.
    return f"{mechanism.sensors[name].unit()}, not stated" if name in mechanism.sensors else "not stated"


def _used(mechanism: Mechanism, recording: Recording, name: str) -> UsedChannel:
    known = recording.channels[name][np.isfinite(recording.channels[name])]
    low, high = (float(known.min()), float(known.max())) if known.size else (np.nan, np.nan)
    return UsedChannel(
        recording=recording.name,
        name=name,
        column=recording.columns.get(name, name),
        unit=unit_of(mechanism, recording, name),
        low=low,
        high=high,
        step=quantisation(known),
        samples=known.size,
        interval=recording.sample_interval,
    )
