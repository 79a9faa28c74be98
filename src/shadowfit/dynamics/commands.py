"""Commands of time steps from held input signals.

A step's command is the mean of the input over the step's interval: ``[t_k, t_k + h]`` for SPOOK, whose impulse moves
the state from ``t_k`` to ``t_{k+1}``, and ``[t_k − h/2, t_k + h/2]`` for the leapfrog of the exact stepper.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.discretization import SCHEMES
from shadowfit.held_signals import Hold, held
from shadowfit.lazy_jax import namespace


def held_mean(
    times: Float[Array, "m"],
    values: Float[Array, "m"],
    start: Float[Array, "n"],
    stop: Float[Array, "n"],
    hold: Hold = "zero",
) -> Float[Array, "n"]:
    """``(1/(b − a)) ∫_a^b u(t) dt`` of a signal held (or connected) between samples; constant beyond its ends."""
    library = namespace(times, values, start, stop)
    times, values = library.asarray(times), library.asarray(values)
    _, integral = held(library, times, values, library.concatenate([start, stop]), hold)
    until_start, until_stop = library.split(integral, 2)
    return (until_stop - until_start) / (stop - start)


def intervals(
    times: Float[Array, "n"], timestep: Float[Array, ""] | float, discretization: str
) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    """Start and end of the interval over which a step's input acts."""
    start = times + SCHEMES[discretization].input_shift * timestep
    return start, start + timestep
