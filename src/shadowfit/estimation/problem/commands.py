"""Commands of the time steps: inputs held between their samples, scaled, shifted and delayed.

A command is a mean of its input. The simulator's is over the interval of a step (:class:`_OverStep`), and so is that of
a fit of the simulator's own equations. With deferred correction, which is after the machine's, it has the weights of a
hat over two steps (:class:`_UnderHat`),

    û_k = 1/h ∫ (1 − |t − t_k|/h) u(t) dt,        q_{k+1} − 2 q_k + q_{k−1} = h² (q̈ under the hat),

which is what the second difference of a motion sees of its forces, exactly: a jump within a step counts, and moves with
a delay, as it does in the machine. (With means over a step the correction takes off what the jumps lack, but not what
their derivatives do: bars of delays, and of what shares their effect, were too small by a third where targets are held
for some samples.) Hats of finer steps, weighed by a hat, are the hat of a step, so that inputs have no error of the
discretisation that would be left to correct.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics.commands import intervals
from shadowfit.estimation.problem.track import ON_GRID
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.held_signals import Hold, held
from shadowfit.mechanism.surroundings import Input
from shadowfit.recordings import Recording, held_input_average, held_input_hat
from shadowfit.records import record

Vector = Float[np.ndarray, " n"]


class _Mean(Protocol):
    """Means of one input, one for each step, as functions of its delay [s]."""

    def at(self, delay: float) -> Vector:
        """The means."""
        ...

    def slope(self, delay: float) -> Vector:
        """Their derivatives."""
        ...


@record(frozen=True)
class _OverStep:
    """Means over the intervals of steps."""

    time: Vector
    signal: Vector
    hold: Hold
    first: Vector
    last: Vector

    def at(self, delay: float) -> Vector:
        return held_input_average(self.time, self.signal, self.first, self.last, self.hold, delay)

    def slope(self, delay: float) -> Vector:
        length = self.last - self.first
        # Just before the ends: a delay can only grow from zero, and a sample may lie exactly on an end.
        late = delay + (ON_GRID * length if self.hold == "zero" else 0.0)
        first, last = (held(np, self.time, self.signal, end - late, self.hold)[0] for end in (self.first, self.last))
        return np.asarray((first - last) / length)


@record(frozen=True)
class _UnderHat:
    """Means around the times of steps, with the weights of a hat that reaches to the steps beside them."""

    time: Vector
    signal: Vector
    hold: Hold
    centre: Vector
    reach: float

    def at(self, delay: float) -> Vector:
        return held_input_hat(self.time, self.signal, self.centre, self.reach, self.hold, delay)

    def slope(self, delay: float) -> Vector:
        around = np.concatenate([self.centre + shift for shift in (-self.reach, 0.0, self.reach)])
        before, now, after = np.split(held(np, self.time, self.signal, around - delay, self.hold)[1], 3)
        return np.asarray((2.0 * now - before - after) / self.reach**2)


def commands(
    plan: Plan,
    recording: Recording,
    inputs: Mapping[str, Input],
    times: np.ndarray,
    timestep: float,
    reach: float = 0.0,
    hat: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Command of steps at given times [s], ``gain·mean(u, delayed) + offset``, and derivatives by what is free of it.

    The mean is under a ``hat``, or over the interval of a step: from its time on for SPOOK, around it otherwise.
    Derivatives by delays of inputs that are held are secants over ``reach`` [s] to each side, unless that is zero.
    """
    free = set(plan.layout.numbers)
    table, slopes = np.zeros((len(times), len(inputs))), []
    for column, (name, part) in enumerate(inputs.items()):
        gain, delay = float(part.gain), float(part.delay)
        time, signal = _finite_input(recording, name)
        mean: _Mean
        if hat:
            mean = _UnderHat(time, signal, part.hold, times, timestep)
        else:
            first, last = map(np.asarray, intervals(times, timestep, plan.equations.discretization))
            mean = _OverStep(time, signal, part.hold, first, last)
        acting = mean.at(delay)
        table[:, column] = gain * acting + float(part.offset)
        if reach > 0.0 and part.hold == "zero":
            by_delay = (mean.at(delay + reach) - mean.at(delay - reach)) / (2.0 * reach)
        else:
            by_delay = mean.slope(delay)
        for leaf, slope in (("gain", acting), ("offset", np.ones_like(acting)), ("delay", gain * by_delay)):
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
