"""Are the errors of the equations of motion white, as the likelihood has them?

The residuals of white errors are not white: states follow errors, fast ones more than slow ones. What their
autocorrelations would be is drawn (:meth:`Projection.left_of`), at all lags up to a quarter of the recording. Errors
are not white where the residuals' own are far above the draws at any lag: what a model lacks is a function of the
state, and comes back with every period of the motion. (Residuals that are *less* alike than those of white errors are
rough, by reversals of friction for instance, and tell nothing of the kind.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.estimation.linear.projection import Projection
from shadowfit.estimation.uncertainty.long_run import lagged_sums

# Draws of white errors, and their seed.
DRAWS, SEED = 39, 0
# Errors are white unless a lag's correlation exceeds the draws' mean by so many of their standard deviations (Student's
# t of 38 degrees of freedom does in one of seven thousand cases, and some fifty lags are independent), and by so much.
FAR, MUCH = 4.0, 0.1
# The first lag that is looked at. Forces that are white within a step, too, are shared by neighbours: an impulse is
# that of a force over two steps, weighted by a triangle, and the correlation of neighbours a quarter.
FIRST = 2


def are_white(projections: Sequence[Projection], impulses: int, reference: float) -> bool:
    """Whether the missing impulses of all coordinates look as white errors of the weights' levels would.

    Args:
        projections: rows of each recording, weighted; impulses come first.
        impulses: their number in a step.
        reference: standard deviation of a weighted row.
    """
    lags = max(len(projection.residual) for projection in projections) // 4
    drawn, shown = np.zeros((lags + 1, impulses, DRAWS)), np.zeros((lags + 1, impulses))
    for index, projection in enumerate(projections):
        errors = reference * np.random.default_rng((SEED, index)).standard_normal((*projection.residual.shape, DRAWS))
        # Rows without a residual (missing samples) have no error.
        left = projection.left_of(errors * (projection.residual != 0.0)[..., None])
        drawn += lagged_sums(left[:, :impulses], lags)
        shown += lagged_sums(projection.residual[:, :impulses], lags)
    with np.errstate(divide="ignore", invalid="ignore"):
        white, observed = drawn[FIRST:] / drawn[0], shown[FIRST:] / shown[0]
        excess = observed - white.mean(axis=-1)
        return not bool(np.any((excess > MUCH) & (excess > FAR * white.std(axis=-1, ddof=1))))
