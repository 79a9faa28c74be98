"""Are residuals noise? Distribution against a normal one, and correlation with their own past."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.estimation.uncertainty.distributions import chi_square_tail, normal_quantile
from shadowfit.records import record

BINS = 41
QUANTILES = 200
LAGS = 60
# Lags of the test of whiteness.
WHITENESS_LAGS = 20
# Residuals beyond this many standard deviations are outliers; normal noise has one in 16 000.
OUTLYING = 4.0


@record(frozen=True)
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
    whiteness: float
    """Ljung–Box: probability of correlations as large as these in white noise."""
    normality: float
    """Jarque–Bera: probability of skewness and tails as large as these in normal noise."""
    outliers: Int[np.ndarray, " o"]
    """Places of samples further than four robust standard deviations from the median."""


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
        normal_quantile(levels),
        np.quantile(known, levels),
        autocorrelation(known, min(LAGS, known.size - 1)),
        1.96 / np.sqrt(known.size),
        ljung_box(known),
        jarque_bera(known),
        outliers(residual),
    )


def ljung_box(values: Float[np.ndarray, " n"], lags: int = WHITENESS_LAGS) -> float:
    """``Q = n (n + 2) Σ_l ρ_l²/(n − l)``, as the probability that white noise exceeds it (χ² with so many lags)."""
    count = len(values)
    reach = min(lags, count // 4)
    rho = autocorrelation(values, reach)[1:]
    statistic = count * (count + 2.0) * np.sum(rho**2 / (count - np.arange(1, reach + 1)))
    return chi_square_tail(reach, float(statistic))


def jarque_bera(values: Float[np.ndarray, " n"]) -> float:
    """``n (s²/6 + (k − 3)²/24)`` of skewness s and kurtosis k, as the probability of more in normal noise (χ²₂)."""
    off = values - values.mean()
    variance = np.mean(off**2)
    if variance == 0.0:
        return 1.0
    skewness, kurtosis = np.mean(off**3) / variance**1.5, np.mean(off**4) / variance**2
    return chi_square_tail(2, float(len(values) * (skewness**2 / 6.0 + (kurtosis - 3.0) ** 2 / 24.0)))


def outliers(residual: Float[np.ndarray, " n"], limit: float = OUTLYING) -> Int[np.ndarray, " o"]:
    """Places of residuals far from the median, in standard deviations of the bulk (1.48 median deviations)."""
    known = residual[np.isfinite(residual)]
    if not known.size:
        return np.zeros(0, int)
    middle = np.median(known)
    spread = 1.4826 * np.median(np.abs(known - middle))
    return np.flatnonzero(np.abs(residual - middle) > limit * spread) if spread > 0.0 else np.zeros(0, int)


def autocorrelation(values: Float[np.ndarray, " n"], lags: int) -> Float[np.ndarray, " l"]:
    """``Σ x_k x_{k+l} / Σ x_k²`` of the values about their mean, for l = 0 ... lags; zero for constant values."""
    centred = values - values.mean()
    energy = float(centred @ centred)
    if energy == 0.0:
        return np.zeros(lags + 1)
    return np.array([centred[: len(centred) - lag] @ centred[lag:] for lag in range(lags + 1)]) / energy
