"""Covariances of the noise from the residuals, and the parameters' covariance that follows (the paper's Section 3.7).

If the impulse errors have the covariance Ω and a sensor's errors R, the same at all steps, then errors propagate into
the parameters by variable projection,

    Λ = (TᵀT)⁻¹ [Σ_k T_kᵀ C T_k] (TᵀT)⁻¹,     C = diag(Ω, R, …),

all in the units of the weighted rows. The paper estimates Ω and R by ``Σ r_k r_kᵀ/(n − 1)``. But the residuals are what
is left after the states have followed the noise: there are about as many states as impulse residuals, and together they
have no more degrees of freedom than there are observations. With ``D = Σ_k (1 − leverage_k)``, a matrix,
``E[Σ r_k r_kᵀ] = D`` for errors of unit covariance, hence

    Ĉ = D^{−1/2} (Σ_k r_k r_kᵀ) D^{−1/2},

and ``trace D`` is the number of degrees of freedom. Directions in which D vanishes (impulses against the joints, which
the states take up entirely) keep the variance that the fit assumed; T has no part there either.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.projection import Projection
from shadowfit.estimation.problem.rows import Group
from shadowfit.records import record

# A direction keeps this fraction of its residuals' freedom, or counts as taken up by the states.
LEAST_FREEDOM = 1e-4


@record(frozen=True)
class GroupNoise:
    """Noise of one group of residuals (the dynamics, one sensor), in the units of the weighted rows."""

    name: str
    squares: Float[np.ndarray, "d d"]
    """``Σ r rᵀ``."""
    count: int
    """Residual vectors."""
    find_freedom: Callable[[], Float[np.ndarray, "d d"]]

    @functools.cached_property
    def freedom(self) -> Float[np.ndarray, "d d"]:
        """D; found when first needed, as it wants the leverages of all residuals."""
        return self.find_freedom()

    @property
    def degrees(self) -> float:
        """Degrees of freedom: the trace of D."""
        return float(np.trace(self.freedom))

    def covariance(self, assumed: float) -> Float[np.ndarray, "d d"]:
        """Ĉ, with the assumed variance in directions without freedom."""
        values, vectors = np.linalg.eigh(self.freedom)
        free = values > LEAST_FREEDOM * max(self.count, 1)
        root = (vectors[:, free] / np.sqrt(values[free])) @ vectors[:, free].T
        taken = vectors[:, ~free]
        return root @ self.squares @ root + assumed * taken @ taken.T

    def plain(self) -> Float[np.ndarray, "d d"]:
        """The paper's ``Σ r rᵀ/(n − 1)``."""
        return self.squares / max(self.count - 1, 1)

    def level(self) -> float:
        """Standard deviation of the group relative to the weighted rows' unit; NaN without freedom."""
        return float(np.sqrt(np.trace(self.squares) / self.degrees)) if self.degrees > 1.0 else float("nan")


def group_noise(
    layouts: Sequence[Sequence[Group]],
    projections: Sequence[Projection],
    present: Sequence[Float[np.ndarray, "n m"]],
    inverses: Sequence[Float[np.ndarray, "p p"]],
) -> tuple[GroupNoise, ...]:
    """Noise of each group over all recordings.

    ``layouts``, ``present`` and ``inverses`` (of ``TᵀT``, for the parameters as the recording sees them) are given for
    each recording.
    """
    groups = []
    for index, kind in enumerate(layouts[0]):
        squares, count = np.zeros((kind.size, kind.size)), 0
        for layout, projection, here in zip(layouts, projections, present, strict=True):
            for rows in layout[index].samples():
                own = projection.residual[:, rows] * np.sqrt(here[:, rows])
                squares += own.T @ own
                count += int(np.ceil(here[:, rows].sum(axis=0).max(initial=0.0)))
        samples = [layout[index].samples() for layout in layouts]
        freedom = functools.partial(_freedom, kind.size, samples, projections, present, inverses)
        groups.append(GroupNoise(kind.name, squares, count, freedom))
    return tuple(groups)


def _freedom(
    size: int,
    samples: Sequence[Sequence[slice]],
    projections: Sequence[Projection],
    present: Sequence[Float[np.ndarray, "n m"]],
    inverses: Sequence[Float[np.ndarray, "p p"]],
) -> Float[np.ndarray, "d d"]:
    """``D = Σ_k (1 − leverage_k)`` of one group; what the parameters take up is counted with the states."""
    total = np.zeros((size, size))
    for rows_of, projection, here, inverse in zip(samples, projections, present, inverses, strict=True):
        for rows in rows_of:
            table = projection.rows[:, rows]
            known = here[:, rows].sum(axis=0)
            by_parameters = np.tensordot(table @ inverse, table, axes=([0, 2], [0, 2]))
            total += np.diag(known) - projection.leverages.total[rows, rows] - by_parameters
    return 0.5 * (total + total.T)


def propagated(
    layout: Sequence[Group], projection: Projection, covariances: Sequence[Float[np.ndarray, "d d"]], assumed: float
) -> Float[np.ndarray, "p p"]:
    """``Σ_k T_kᵀ C T_k`` with the groups' covariances; the rows of the first states have the assumed variance."""
    total = assumed * projection.start_rows.T @ projection.start_rows
    for group, covariance in zip(layout, covariances, strict=True):
        for rows in group.samples():
            table = projection.rows[:, rows]
            total = total + np.tensordot(table, np.matmul(covariance, table), axes=([0, 1], [0, 1]))
    return total


def score_variance(
    layout: Sequence[Group], projection: Projection, impulse_ratio: Float[np.ndarray, " r"], assumed: float
) -> Float[np.ndarray, "p p"]:
    """Variance of ``Tᵀe`` by the levels of the noise, which the weights of the impulses need not be."""
    ratio, (impulses, *_) = np.ones(projection.rows.shape[1]), layout
    ratio[: impulses.size] = np.tile(impulse_ratio, impulses.size // len(impulse_ratio))
    told = (
        projection if np.all(ratio == 1.0) else dataclasses.replace(projection, rows=projection.rows * ratio[:, None])
    )
    return assumed * told.information
