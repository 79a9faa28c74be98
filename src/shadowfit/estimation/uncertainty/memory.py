"""Errors with a memory: what their correlation in time does to error bars.

What a model lacks, or what a torque sensor adds, is mostly alike from one step to the next, and many steps with the
same error tell as little as one. With the autocovariances c_l of a row's errors the variance of ``Tᵀe`` grows by

    Σ_l w(l/S) c_l Σ_k (T_kᵀT_{k+l} + T_{k+l}ᵀT_k),

with Parzen's weights w over a bandwidth S that follows from the errors themselves (:mod:`long_run`). Errors and what
they meet are kept apart here: unlike the long-run variance of the products ``T_kᵀr_k`` (the kind ``robust``), which has
to be found from as many series as there are parameters, this needs one for each joint or sensor.

**From residuals to errors.** States follow errors, fast ones more than slow ones, so that the residuals of white errors
are correlated, too. What they would be is drawn: white errors of the estimated levels, less what the states take up
(:meth:`Projection.left_of`). Autocovariances of the residuals count as far as they exceed those.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.projection import Projection
from shadowfit.estimation.uncertainty.long_run import bandwidth, lag_one, lagged_sums, parzen

# Draws of white errors, and their seed.
DRAWS, SEED = 8, 0
# Neighbours are alike if their correlation exceeds that of white errors by so many times what chance does (1/√n).
SIGNIFICANT = 4.0
# Rows of whose variance the states leave less than this show nothing.
LEAST_LEFT = 0.01


def added_variance(projection: Projection, variances: Float[np.ndarray, " m"]) -> Float[np.ndarray, "p p"]:
    """What correlation in time adds to the variance of ``Tᵀe``, for errors of given variances of the rows of a step."""
    steps, count, parameters = projection.rows.shape
    if parameters == 0:
        return np.zeros((0, 0))
    generator = np.random.default_rng(SEED)
    drawn = generator.standard_normal((steps, count, DRAWS)) * np.sqrt(variances)[:, None]
    # Rows without a residual (missing samples) have no error.
    drawn *= (projection.residual != 0.0)[..., None]
    left = projection.left_of(drawn)
    total = np.zeros((parameters, parameters))
    for row in range(count):
        here = projection.residual[:, row] != 0.0
        residual, white = projection.residual[here, row], left[here, row]
        if len(residual) and np.mean(white**2) > LEAST_LEFT * variances[row]:
            total += _lagged_products(projection.rows[here, row], excess(residual, white))
    # Estimated covariances may fall below zero in directions that hardly matter.
    values, vectors = np.linalg.eigh(total)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def excess(residual: Float[np.ndarray, " n"], white: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " S"]:
    """``w(l/S) c_l`` for l = 1, 2, … beyond that of white errors; empty where neighbours are no more alike."""
    count, energy = len(residual), float(residual @ residual)
    if not (np.isfinite(energy) and energy > 0.0):
        return np.zeros(0)
    by_chance = float(np.mean(lag_one(white)))
    if lag_one(residual[:, None])[0] - by_chance <= SIGNIFICANT / np.sqrt(count):
        return np.zeros(0)
    width = bandwidth(residual[:, None])
    lags = min(int(np.ceil(width)), count) - 1
    observed, drawn = (lagged_sums(series, lags)[1:] / count for series in (residual, white))
    return np.array([parzen(lag / width) for lag in range(1, lags + 1)]) * (observed - drawn.mean(axis=1))


def _convolved(rows: Float[np.ndarray, "n p"], kernel: Float[np.ndarray, " k"]) -> Float[np.ndarray, "n+k-1 p"]:
    """``Σ_j kernel_j rows_{i−j}`` along the first axis, by Fourier transforms of a quick length."""
    count = len(rows) + len(kernel) - 1
    length = 1 << (count - 1).bit_length()
    spectrum = np.fft.rfft(kernel, length)[:, None]
    return np.fft.irfft(np.fft.rfft(rows, length, axis=0) * spectrum, length, axis=0)[:count]


def _lagged_products(rows: Float[np.ndarray, "n p"], weights: Float[np.ndarray, " S"]) -> Float[np.ndarray, "p p"]:
    """``Σ_k Σ_l w_l (T_kᵀT_{k+l} + T_{k+l}ᵀT_k)``."""
    if not len(weights):
        return np.zeros((rows.shape[1], rows.shape[1]))
    kernel = np.concatenate([weights[::-1], [0.0], weights])
    met = _convolved(rows, kernel)[len(weights) : len(weights) + len(rows)]
    product = rows.T @ met
    return 0.5 * (product + product.T)


def row_variances(
    impulses: int, impulse_ratio: Float[np.ndarray, " r"], count: int, assumed: float
) -> Float[np.ndarray, " m"]:
    """Variance of each row of a step: of impulses by their estimated levels, of samples as assumed."""
    ratio = np.tile(impulse_ratio, impulses // len(impulse_ratio))
    return assumed * np.concatenate([ratio**2, np.ones(count - impulses)])
