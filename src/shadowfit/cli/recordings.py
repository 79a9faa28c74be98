"""Reading the recordings that a command names, with everything remarkable about them said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shadowfit.cli.options import assignments

if TYPE_CHECKING:
    from shadowfit.mechanism import Mechanism
    from shadowfit.recordings import Recording

# Kind of quantity that a sensor with this unit compares with.
KINDS = {"rad": "angle", "m": "length", "rad/s": "angular_velocity", "m/s": "velocity"}


def read_recordings(
    paths: Iterable[Path], channels: Iterable[str], mechanism: Mechanism, *, quiet: bool
) -> list[Recording]:
    """The recordings of a command line, checked against a mechanism's sensors and inputs."""
    import dataclasses

    from shadowfit.cli import console
    from shadowfit.recordings import check_recording, read_recording

    mapping = assignments(channels, "--channel")
    found = []
    for path in paths:
        recording = read_recording(path, channels=mapping)
        sensors = {
            channel: KINDS.get(sensor.unit(), "other")
            for name, sensor in mechanism.sensors.items()
            for channel in (f"{name}.{part}" if part else name for part in sensor.components)
            if channel in recording.channels
        }
        inputs = [name for name in mechanism.inputs if name in recording.channels]
        # The reader looks at all channels; of those that are not used, nobody wants to hear.
        noted = check_recording(recording, sensors, inputs)
        found.append(dataclasses.replace(recording, warnings=noted))
        if not quiet:
            for warning in noted:
                console.messages().print(f"warning: {path}: {warning}", soft_wrap=True)
    return found
