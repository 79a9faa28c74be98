"""Commands of the time steps: inputs held between their samples, scaled, shifted and delayed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shadowfit.arrays import Array
from shadowfit.dynamics.commands import intervals
from shadowfit.estimation.problem.track import ON_GRID
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.mechanism.surroundings import Input
from shadowfit.recordings import Recording, held_input_average


def commands(
    plan: Plan,
    recording: Recording,
    inputs: Mapping[str, Input],
    times: np.ndarray,
    timestep: float,
    reach: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Command of steps at given times [s], ``gain·mean(u, delayed) + offset``, and derivatives by what is free of it.

    The mean is over the interval of a step [s]: from its time on for SPOOK, around it otherwise. Derivatives by delays
    of inputs that are held are secants over ``reach`` [s] to each side, unless that is zero.
    """
    first, last = intervals(times, timestep, plan.equations.discretization)
    free = set(plan.layout.numbers)
    table, slopes = np.zeros((len(times), len(inputs))), []
    for column, (name, part) in enumerate(inputs.items()):
        gain, offset, delay = float(part.gain), float(part.offset), float(part.delay)
        time, signal = _finite_input(recording, name)
        mean = held_input_average(time, signal, first, last, hold=part.hold, delay=delay)
        table[:, column] = gain * mean + offset
        if reach > 0.0 and part.hold == "zero":
            later, sooner = (held_input_average(time, signal, first, last, delay=delay + r) for r in (reach, -reach))
            by_delay = gain * (later - sooner) / (2.0 * reach)
        else:
            # Just before the ends: a delay can only grow from zero, and a sample may lie exactly on an end.
            early = ON_GRID * timestep if part.hold == "zero" else 0.0
            at_ends = [_held(time, signal, ends - delay - early, part.hold) for ends in (first, last)]
            by_delay = -gain * (at_ends[1] - at_ends[0]) / timestep
        for leaf, slope in (("gain", mean), ("offset", np.ones_like(mean)), ("delay", by_delay)):
            if f"{name}.{leaf}" in free:
                spread = np.zeros_like(table)
                spread[:, column] = slope
                slopes.append(spread)
    derivatives = np.stack(slopes, axis=2) if slopes else np.zeros((*table.shape, 0))
    return table, derivatives


def _finite_input(recording: Recording, name: str) -> tuple[np.ndarray, np.ndarray]:
    """An input's samples without the missing ones, over which the signal is held."""
    values = recording.channel(name)
    finite = np.isfinite(values)
    return recording.time[finite], values[finite]


def _held(time: np.ndarray, values: np.ndarray, at: Array, hold: str) -> np.ndarray:
    if hold == "linear":
        return np.interp(at, time, values)
    index = np.clip(np.searchsorted(time, at, side="right") - 1, 0, len(time) - 1)
    return values[index]
