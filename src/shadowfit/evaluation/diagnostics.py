"""Are residuals noise? Distribution against a normal one, and correlation with their own past."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy import stats

BINS = 41
QUANTILES = 200
LAGS = 60


@dataclasses.dataclass(frozen=True)
class ResidualDiagnostics:
    """Statistics of the residuals of one channel, which are scaled by the standard deviation that the fit assumed."""

    mean: float
    std: float
    edges: Float[np.ndarray, " b+1"]
    density: Float[np.ndarray, " b"]
    """Fraction of the residuals in a bin, divided by its width."""
    normal: Float[np.ndarray, " m"]
    """Quantiles of the standard normal distribution ..."""
    quantiles: Float[np.ndarray, " m"]
    """... and of the residuals."""
    autocorrelation: Float[np.ndarray, " l"]
    """At lags 0, 1, 2, ... samples."""
    white: float
    """Autocorrelations of white noise lie within ± this, 19 times of 20."""


def diagnose(residual: Float[np.ndarray, " n"], std: float) -> ResidualDiagnostics | None:
    """Diagnostics of a channel's residuals, missing ones left out; None for fewer than ten."""
    known = residual[np.isfinite(residual)] / std
    if known.size < 10:
        return None
    reach = max(4.0, float(np.quantile(np.abs(known), 0.995)) * 1.2)
    edges = np.linspace(-reach, reach, BINS + 1)
    counts, _ = np.histogram(known, edges)
    levels = (np.arange(min(QUANTILES, known.size)) + 0.5) / min(QUANTILES, known.size)
    return ResidualDiagnostics(
        float(known.mean()),
        float(known.std()),
        edges,
        counts / known.size / np.diff(edges),
        stats.norm.ppf(levels),
        np.quantile(known, levels),
        autocorrelation(known, min(LAGS, known.size - 1)),
        1.96 / np.sqrt(known.size),
    )


def autocorrelation(values: Float[np.ndarray, " n"], lags: int) -> Float[np.ndarray, " l"]:
    """``Σ x_k x_{k+l} / Σ x_k²`` of the values about their mean, for l = 0 ... lags; zero for constant values."""
    centred = values - values.mean()
    energy = float(centred @ centred)
    if energy == 0.0:
        return np.zeros(lags + 1)
    return np.array([centred[: len(centred) - lag] @ centred[lag:] for lag in range(lags + 1)]) / energy
