"""Are the errors that are believed in as large as the fit shows?

Where the equations of motion have been given more weight than their errors ask for, the fit is near that of the output
error, and its residuals are what errors of forces add up to over a long time. Levels that were found along the most
likely motion are those of the fastest errors, step by step: white forces as large as these would let a swing wander far
more than machines do, whose errors are bounded. So residuals are compared with those that the errors would leave,

    y = rᵀr,      E = E[eᵀ(1 − P)e],

P the projection on states and parameters, and all variances of forces and functions are multiplied by
y/E: as in metrology, where results scatter by less or more than their uncertainties say (Birge's ratio). White errors
are drawn.

Residuals of the output error hold few independent numbers, however many samples there are: as many as the scatter of
the drawn squares tells, ``ν = 2 E²/var``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.projection import Projection
from shadowfit.records import record

# Draws of white errors, and their seed.
DRAWS, SEED = 24, 0


@record(frozen=True)
class Misfit:
    """Residuals of a fit against those that errors would leave."""

    ratio: float
    """y/E."""
    degrees: float
    """Independent numbers among the residuals, by which the ratio is known."""


def misfit(
    projections: Sequence[Projection],
    variances: Sequence[Float[np.ndarray, " m"]],
    functions: float,
    followed: Callable[[Sequence[Float[np.ndarray, "q c"]]], Float[np.ndarray, " c"]],
) -> Misfit:
    """Compare the residuals of all recordings with white errors.

    Args:
        projections: of each recording.
        variances: of the rows of a step, for each recording.
        functions: squares that errors leave which are not white.
        followed: squares that parameters take up, for ``Tᵀe`` of each recording.
    """
    squares, drawn, scores = 0.0, np.zeros(DRAWS), []
    for index, (projection, variance) in enumerate(zip(projections, variances, strict=True)):
        unit = np.random.default_rng((SEED, index)).standard_normal((*projection.residual.shape, DRAWS))
        # Rows without a residual (missing samples) have no error.
        errors = unit * np.sqrt(variance)[:, None] * (projection.residual != 0.0)[..., None]
        left = projection.left_of(errors)
        drawn += np.sum(np.square(left), axis=(0, 1))
        scores.append(np.tensordot(projection.rows, left, axes=([0, 1], [0, 1])))
        squares += float(np.sum(np.square(projection.residual)))
    drawn = np.maximum(drawn - followed(scores), 0.0)
    expected = float(np.mean(drawn)) + functions
    if not (np.isfinite(expected) and expected > 0.0 and np.isfinite(squares)):
        return Misfit(1.0, np.inf)
    return Misfit(squares / expected, float(2.0 * np.mean(drawn) ** 2 / np.var(drawn, ddof=1)))


def row_variances(
    impulses: int, impulse_ratio: Float[np.ndarray, " r"], count: int, assumed: float
) -> Float[np.ndarray, " m"]:
    """Variance of each row of a step: of impulses by their estimated levels, of samples as assumed."""
    ratio = np.tile(impulse_ratio, impulses // len(impulse_ratio))
    return assumed * np.concatenate([ratio**2, np.ones(count - impulses)])
