"""True motion: the reduced equations, integrated tightly, and simpler rollouts of the same equations.

The truth is SciPy's DOP853 with a relative tolerance of 1e-10, restarted wherever the held input jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.peers.systems import System

RELATIVE, ABSOLUTE = 1e-10, 1e-12
Rate = Callable[[float, np.ndarray], list[float]]
Integrator = Callable[[System, Mapping[str, float], np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""System, numbers, state, held input, times → states: :func:`advance`, or that of :mod:`sticking`."""


def rate(system: System, p: Mapping[str, float], u: np.ndarray) -> Rate:
    """``(q̇, q̈)`` as a function of time and state ``(q, q̇)``, at a constant input."""
    numbers, held = system.parameters(p), [float(value) for value in u]
    n = len(system.joints)

    def derivative(_: float, state: np.ndarray) -> list[float]:
        values = state.tolist()
        q, v = values[:n], values[n:]
        return [*v, *system.accelerations(q, v, held, numbers, math)]

    return derivative


def advance(system: System, p: Mapping[str, float], state: np.ndarray, u: np.ndarray, times: np.ndarray) -> np.ndarray:
    """States at ``times`` [s] after ``times[0]``, where the state is given and from where the input is held."""
    found = solve_ivp(
        rate(system, p, u),
        (times[0], times[-1]),
        state,
        "DOP853",
        t_eval=times,
        rtol=RELATIVE,
        atol=ABSOLUTE,
        first_step=min(times[1] - times[0], 1e-3),
    )
    if not found.success:
        raise RuntimeError(f"the truth of {system.name} stopped at {found.t[-1]:.6g} s: {found.message}")
    return found.y.T


def motion(
    system: System,
    p: Mapping[str, float],
    start: np.ndarray,
    inputs: np.ndarray,
    interval: float,
    integrate: Integrator = advance,
) -> np.ndarray:
    """True states ``(samples, 2 n)`` at the samples; sample k of the inputs acts from k to k + 1."""
    states = np.empty((len(inputs), 2 * len(system.joints)))
    states[0] = start
    jumps = np.flatnonzero(np.any(inputs[1:] != inputs[:-1], axis=1)) + 1
    edges = np.unique([0, *jumps, len(inputs) - 1])
    for begin, end in pairwise(edges):
        times = interval * np.arange(end - begin + 1)
        states[begin : end + 1] = integrate(system, p, states[begin], inputs[begin], times)
    return states


def rollout(
    system: System, p: Mapping[str, float], start: np.ndarray, inputs: np.ndarray, interval: float
) -> np.ndarray:
    """The same by one Runge–Kutta step (fourth order) for each sample, quick and good to 1e-8: for residuals."""
    n = len(system.joints)
    numbers = system.parameters(p)
    state = [float(value) for value in start]
    rows = [state]
    accelerations = system.accelerations

    def slope(at: list[float], u: list[float]) -> list[float]:
        return at[n:] + accelerations(at[:n], at[n:], u, numbers, math)

    def moved(h: float, k: list[float]) -> list[float]:
        return [x + h * d for x, d in zip(state, k, strict=True)]

    for u in inputs[:-1].tolist():
        k1 = slope(state, u)
        k2 = slope(moved(0.5 * interval, k1), u)
        k3 = slope(moved(0.5 * interval, k2), u)
        k4 = slope(moved(interval, k3), u)
        state = [
            x + interval / 6.0 * (a + 2.0 * (b + c) + d) for x, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True)
        ]
        rows.append(state)
    return np.array(rows)
