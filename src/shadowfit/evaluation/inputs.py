"""Inputs of a simulation along a recording."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording, held_input_average


def recorded_inputs(
    mechanism: Mechanism, recording: Recording | None, timestep: float, steps: int
) -> dict[str, Float[np.ndarray, " steps"]]:
    """Each input over each step, shape (steps,): from a recording, or zero without one."""
    if recording is None:
        return {name: np.zeros(steps) for name in mechanism.inputs}
    begin = recording.time[0] + timestep * np.arange(steps)
    inputs = {}
    for name, part in mechanism.inputs.items():
        # A held signal counts by its mean over the step; a connected one by its values at the steps' times.
        end = begin + timestep if part.hold == "zero" else begin
        values = recording.channel(name)
        known = np.isfinite(values)
        inputs[name] = held_input_average(recording.time[known], values[known], begin, end, part.hold)
    return inputs
