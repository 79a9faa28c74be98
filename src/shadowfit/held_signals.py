"""Signals between their samples: held, or connected by lines; constant beyond the first and the last sample."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from shadowfit.arrays import Float

Hold = Literal["zero", "linear"]


def held(library: Any, times: Any, values: Any, at: Any, hold: Hold) -> tuple[Any, Any]:
    """``u(t)`` and its integral ``U(t)`` from the first sample on, exactly, by NumPy or by ``jax.numpy``.

    For t in [t_k, t_{k+1}], s = t − t_k, Δ = t_{k+1} − t_k,

        zero:    u = u_k,                          U = U_k + s u_k
        linear:  u = u_k + s (u_{k+1} − u_k)/Δ,    U = U_k + s u_k + s² (u_{k+1} − u_k)/(2Δ)

    from U_0 = 0, with U_{k+1} the value at s = Δ. At a jump ``u`` is the later value.
    """
    interval = library.diff(times)
    rise = library.diff(values) / interval if hold == "linear" else library.zeros_like(interval)
    areas = interval * (values[:-1] + 0.5 * rise * interval)
    integral = library.concatenate([library.zeros(1), library.cumsum(areas)])
    slope = library.concatenate([rise, library.zeros(1)])
    k = library.clip(library.searchsorted(times, at, side="right") - 1, 0, len(times) - 1)
    s = at - times[k]
    inside = library.where(s > 0.0, slope[k], 0.0)
    return values[k] + inside * s, integral[k] + s * (values[k] + 0.5 * inside * s)


def integrated_twice(
    times: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"], at: Float[np.ndarray, " m"], hold: Hold
) -> Float[np.ndarray, " m"]:
    """``W(t)``, the integral of U, from the first sample on, exactly.

    For t in [t_k, t_{k+1}] and s = t − t_k, with the slope a between samples (zero where they are held),

        W = W_k + s U_k + s² u_k/2 + s³ a/6
    """
    integral = held(np, times, values, times, hold)[1]
    interval = np.diff(times)
    rise = np.diff(values) / interval if hold == "linear" else np.zeros_like(interval)
    areas = interval * (integral[:-1] + interval * (values[:-1] / 2.0 + interval * rise / 6.0))
    twice = np.concatenate([[0.0], np.cumsum(areas)])
    k = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 1)
    s = at - times[k]
    slope = np.where(s > 0.0, np.append(rise, 0.0)[k], 0.0)
    return np.asarray(twice[k] + s * (integral[k] + s * (values[k] / 2.0 + s * slope / 6.0)))
