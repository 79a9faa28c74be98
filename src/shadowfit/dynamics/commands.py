"""Commands of time steps from held input signals.

A step's command is the mean of the input over the step's interval: ``[t_k, t_k + h]`` for SPOOK, whose impulse moves
the state from ``t_k`` to ``t_{k+1}``, and ``[t_k − h/2, t_k + h/2]`` for the leapfrog of the exact stepper.
"""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.dynamics.discretization import SCHEMES

Hold = Literal["zero", "linear"]


def held_mean(
    times: Float[Array, "m"],
    values: Float[Array, "m"],
    start: Float[Array, "n"],
    stop: Float[Array, "n"],
    hold: Hold = "zero",
) -> Float[Array, "n"]:
    """``(1/(b − a)) ∫_a^b u(t) dt`` of a signal held (or connected) between samples; constant beyond its ends."""
    library = _library(times, values, start, stop)
    times, values = library.asarray(times), library.asarray(values)
    until_start, until_stop = library.split(_integral(times, values, library.concatenate([start, stop]), hold), 2)
    return (until_stop - until_start) / (stop - start)


def _library(*arrays: Any) -> Any:
    """What computes with these arrays: NumPy on the host, for which nothing has to be compiled."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


def _integral(times: Array, values: Array, at: Array, hold: Hold) -> Array:
    """``∫_{t_0}^{at} u dt``, exact."""
    xp = _library(times, values, at)
    left = values[:-1] if hold == "zero" else 0.5 * (values[:-1] + values[1:])
    areas = xp.concatenate([xp.zeros(1), xp.cumsum(left * xp.diff(times))])
    index = xp.clip(xp.searchsorted(times, at, side="right") - 1, 0, times.shape[0] - 1)
    beyond = at - times[index]
    area = areas[index] + values[index] * beyond
    if hold == "linear":
        following = xp.minimum(index + 1, times.shape[0] - 1)
        gap = times[following] - times[index]
        slope = xp.where(gap > 0.0, (values[following] - values[index]) / xp.where(gap > 0.0, gap, 1.0), 0.0)
        # Before the first sample the signal keeps its first value.
        area = area + 0.5 * xp.where(beyond > 0.0, slope, 0.0) * beyond**2
    return area


def intervals(
    times: Float[Array, "n"], timestep: Float[Array, ""] | float, discretization: str
) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    """Start and end of the interval over which a step's input acts."""
    start = times + SCHEMES[discretization].input_shift * timestep
    return start, start + timestep
