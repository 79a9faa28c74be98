"""The demonstration as a project: a Furuta pendulum's swing-up, recorded from a twin with known parameters."""

from __future__ import annotations

from shadowfit import runtime
from shadowfit.evaluation.columns import write_recording
from shadowfit.models import twins
from shadowfit.projects.project import FreeNumber, Part
from shadowfit.web.desk import Desk

RECORDING = "data/swing_up.csv"


def demonstrate(desk: Desk) -> None:
    """Put machine, recording and parameters of the demonstration into a desk's project."""
    runtime.start_jax()
    twin = twins.demonstration()
    write_recording(desk.folder / RECORDING, twin.recording)
    desk.change(
        model=twin.model,
        weld=(),
        channels=None,
        fit=Part((RECORDING,)),
        validation=Part(),
        free=dict.fromkeys(twin.free, FreeNumber()),
        settings={name: float(value) for name, value in twin.settings.items()},
        options={},
    )
