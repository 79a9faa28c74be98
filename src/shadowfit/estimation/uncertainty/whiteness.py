"""Are the errors of the equations of motion white, as the likelihood has them?

The residuals of white errors are not white: states follow errors, fast ones more than slow ones. What their
autocorrelations would be is drawn (:meth:`Projection.left_of`), at lags of 1, 2, 4, … steps up to a quarter of the
recording. Errors are not white where the residuals' own are far outside the scatter of the draws at any lag: what a
model lacks is a function of the state, and comes back with every period of the motion.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from shadowfit.estimation.linear.projection import Projection

# Draws of white errors, and their seed.
DRAWS, SEED = 19, 0
# Errors are white unless a lag's correlation is this many standard deviations of the draws off their mean. (Student's t
# of 18 degrees of freedom is beyond five in one of ten thousand cases, and there are some ten lags.)
FAR = 5.0


def are_white(projections: Sequence[Projection], impulses: int, reference: float) -> bool:
    """Whether the missing impulses of all coordinates look as white errors of the weights' levels would.

    Args:
        projections: rows of each recording, weighted; impulses come first.
        impulses: their number in a step.
        reference: standard deviation of a weighted row.
    """
    lags = _lags(max(len(projection.residual) for projection in projections))
    drawn, shown = np.zeros((len(lags) + 1, impulses, DRAWS)), np.zeros((len(lags) + 1, impulses))
    for index, projection in enumerate(projections):
        errors = reference * np.random.default_rng((SEED, index)).standard_normal((*projection.residual.shape, DRAWS))
        # Rows without a residual (missing samples) have no error.
        left = projection.left_of(errors * (projection.residual != 0.0)[..., None])
        drawn += _products(left[:, :impulses], lags)
        shown += _products(projection.residual[:, :impulses], lags)
    with np.errstate(divide="ignore", invalid="ignore"):
        white, own = drawn[1:] / drawn[0], shown[1:] / shown[0]
        distance = np.abs(own - white.mean(axis=-1)) / white.std(axis=-1, ddof=1)
    return bool(np.nanmax(distance, initial=0.0) < FAR)


def _lags(steps: int) -> list[int]:
    return list(itertools.takewhile(lambda lag: 4 * lag <= steps, (2**i for i in itertools.count())))


def _products(series: Float[np.ndarray, "n ..."], lags: Sequence[int]) -> Float[np.ndarray, "lags+1 ..."]:
    """Sums of squares, and of products of values that are so many steps apart."""
    return np.array([np.sum(series[lag:] * series[: len(series) - lag], axis=0) for lag in (0, *lags)])
