"""Variance of a sum of correlated contributions, from one realisation (Newey–West style).

For a series ``u_k`` of contributions with mean zero, the variance of ``Σ u_k`` is the sum of all autocovariances.
Estimated ones are noisy, hence weights that fall with the lag,

    Γ_0 + Σ_l w(l/S) (Γ_l + Γ_lᵀ),     Γ_l = Σ_k u_k u_{k−l}ᵀ,

with Parzen's w, which keeps the result positive semidefinite. The bandwidth S follows from the data as if each
component were a first-order autoregression (Andrews, Econometrica 1991). Strong correlation is taken out beforehand by
such an autoregression and put back afterwards (Andrews and Monahan, Econometrica 1992).
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.records import record

# Largest coefficient of the autoregression that is taken out: beyond, putting it back would multiply by anything.
LARGEST_COEFFICIENT = 0.97
# ∫ w² of Parzen's weights: the equivalent number of independent contributions is n/(0.54 S).
PARZEN_ENERGY = 0.539285
PARZEN_BANDWIDTH = 2.6614


@record(frozen=True)
class LongRun:
    """Variance of a sum."""

    covariance: Float[np.ndarray, "p p"]
    bandwidth: float
    """S, in contributions."""
    degrees: float
    """Equivalent number of independent contributions behind the estimate."""


def long_run_covariance(series: Float[np.ndarray, "n p"]) -> LongRun:
    """Covariance of the sum of a series over its first axis; the components should be of comparable size."""
    count, size = series.shape
    if not np.all(np.isfinite(series)):
        # A fit that ended with such numbers says so; its error bars are unknown.
        return LongRun(np.full((size, size), np.nan), 1.0, 1.0)
    # Powers of four of wild scores overflow, those of their share of the largest do not.
    largest = np.max(np.abs(series), axis=0, initial=0.0)
    unit = np.where(largest > 0.0, largest, 1.0)
    centred = series / unit - np.mean(series / unit, axis=0)
    coefficient = np.clip(lag_one(centred), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
    whitened = centred[1:] - coefficient * centred[:-1]
    width = bandwidth(whitened)
    total = whitened.T @ whitened
    for lag in range(1, min(int(np.ceil(width)), len(whitened))):
        product = whitened[lag:].T @ whitened[:-lag]
        total = total + parzen(lag / width) * (product + product.T)
    colour = unit / (1.0 - coefficient)
    # One contribution is lost to the autoregression, and the parameters have been fitted.
    small = count / max(count - 1 - size, 1)
    with np.errstate(over="ignore"):
        covariance = small * total * np.outer(colour, colour)
    return LongRun(covariance, width, count / (PARZEN_ENERGY * width))


def lagged_sums(series: Float[np.ndarray, "n ..."], lags: int) -> Float[np.ndarray, "lags+1 ..."]:
    """``Σ_k u_k u_{k+l}`` for l = 0, 1, …, lags along the first axis, by Fourier transforms of a quick length."""
    length = 1 << (len(series) + lags).bit_length()
    spectrum = np.fft.rfft(series, length, axis=0)
    return np.fft.irfft(spectrum.real**2 + spectrum.imag**2, length, axis=0)[: lags + 1]


def lag_one(series: Float[np.ndarray, "n p"]) -> Float[np.ndarray, " p"]:
    """Coefficient of a first-order autoregression of each component."""
    energy = np.sum(series**2, axis=0)
    return np.sum(series[1:] * series[:-1], axis=0) / np.where(energy > 0.0, energy, 1.0)


def bandwidth(series: Float[np.ndarray, "n p"]) -> float:
    """``S = 2.66 (α n)^{1/5}``, α from first-order autoregressions of the components; within 1 and n/2."""
    coefficient = np.clip(lag_one(series), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
    power = np.mean((series[1:] - coefficient * series[:-1]) ** 2, axis=0) ** 2
    weight = np.sum(power / (1.0 - coefficient) ** 4)
    curvature = np.sum(4.0 * coefficient**2 * power / (1.0 - coefficient) ** 8)
    ratio = curvature / weight if weight > 0.0 else 0.0
    return float(np.clip(PARZEN_BANDWIDTH * (ratio * len(series)) ** 0.2, 1.0, max(0.5 * len(series), 1.0)))


def parzen(x: float) -> float:
    """Parzen's weight of a lag, as a fraction of the bandwidth."""
    return 1.0 - 6.0 * x**2 + 6.0 * x**3 if x <= 0.5 else 2.0 * (1.0 - x) ** 3
