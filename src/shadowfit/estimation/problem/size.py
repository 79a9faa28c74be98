"""How large a problem will be, from the times of the recordings alone, before any of it is allocated."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from shadowfit.dynamics.tree import tree_of
from shadowfit.errors import MechanismError
from shadowfit.estimation.problem.options import Options
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.memory import require
from shadowfit.recordings import Recording

# Copies of the normal equations that exist at a time: of the point, of a trial, their factors, one being added up.
COPIES = 5
# Bytes of a sample in a table of the result while it is written, and of a body at a step: poses, velocities, a rollout
# (with deferred correction of finer steps) with its readings. Measured, and rounded up.
SAMPLE, BODY, FINE_BODY = 700, 2500, 9000


def check_size(
    mechanism: Mechanism, recordings: Sequence[Recording], parameters: int, timestep: float, options: Options
) -> None:
    """Raise if the fit would need more memory than it may use.

    Raises:
        NotEnoughMemoryError: with the number of steps, and the longest gap where most of them lie in it.
    """
    per_step = _bytes_of_a_step(mechanism, parameters, options)
    needed, steps = 0.0, 0.0
    for recording in recordings:
        length = recording.duration / timestep + 1.0
        # A table has room for as many samples in each step as there are in the fullest one.
        samples = np.unique(np.floor((recording.time - recording.time[0]) / timestep), return_counts=True)[1].max()
        needed += length * (per_step + SAMPLE * len(mechanism.sensors) * float(samples))
        steps += length
    require(
        needed,
        f"a fit of {steps:,.0f} time steps of {timestep:g} s",
        options.memory,
        f"; {_advice(recordings, timestep)}",
    )


def _bytes_of_a_step(mechanism: Mechanism, parameters: int, options: Options) -> float:
    bodies = max(len(mechanism.bodies), 1)
    unknowns = {"joint": 6.0 * bodies, "configuration": 6.0 * bodies, "full": 12.0 * bodies}[options.unknowns]
    if options.unknowns == "joint":
        # A mechanism that is no tree is refused by the plan, with what to do.
        with contextlib.suppress(MechanismError):
            unknowns = float(tree_of(mechanism).size)
    equations = 8.0 * COPIES * (3.0 * unknowns**2 + unknowns * parameters)
    return equations + bodies * (BODY if options.correction == "none" else FINE_BODY)


def _advice(recordings: Sequence[Recording], timestep: float) -> str:
    gaps = [(float(np.max(np.diff(r.time))), int(np.argmax(np.diff(r.time))), r) for r in recordings]
    longest, row, recording = max(gaps, key=lambda gap: gap[0])
    if longest > 0.5 * recording.duration and longest > 10.0 * timestep:
        return f"recording {recording.name!r} has a gap of {longest:.4g} s behind row {row + 1}: split it there"
    return "choose a larger time-step, or a part of the recording (--from, --to)"
