"""Which machines the data leave possible: a distribution of the parameters, and draws of it.

About the estimate, with the covariance that the error bars have (disagreement of recordings included) and Student's
tails of as many degrees of freedom, but only where bounds and bodies allow: *truncated*, not clipped, so that no draw
sits on a bound. Of bodies all of whose ten numbers are free the moments are drawn, in which what a motion tells is
linear (:mod:`problem.whole_bodies`): base parameters stay known where mass and centre of mass are not.

Combinations are as sure as the data tell them, and the priors, of the model file's bodies too, say how they are shared
out. (Error bars of single numbers are wider: they do without the file's bodies, of which nobody has vouched for
anything.) What the data do not tell has its prior alone; where nobody gave one, it is taken to be known to its own
typical size. A parameter on a bound has the mean square from there that the error bars of the others count with.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.errors import ShadowfitError
from shadowfit.estimation.problem.parameters import Chart, ParameterSet
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.uncertainty.truncated_normal import truncated_normal
from shadowfit.frames import inference_data, pandas_frame, polars_frame
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record

# Variances below this part of the largest, of parameters in their standard deviations, are rounding.
ROUNDING = 1e-14


class DrawError(ShadowfitError):
    """Draws that cannot be made."""


@record(frozen=True)
class Posterior:
    """A distribution of machines."""

    base: Mechanism
    """The calibrated mechanism, for all numbers that are not drawn."""
    parameters: ParameterSet
    values: Values
    """Of the estimate."""
    covariance: Float[np.ndarray, "p p"]
    """Of increments from there."""
    degrees: Float[np.ndarray, " p"]
    """Degrees of freedom behind each variance."""

    def draw(self, count: int, seed: int) -> Draws:
        """So many possible machines; the same for the same seed.

        Raises:
            DrawError: none are asked for, nothing was free, or its covariance is not known.
        """
        if not isinstance(count, int | np.integer) or count < 1:
            raise DrawError(f"{count} draws are asked for; it must be a whole number, at least 1")
        if not self.parameters.size:
            raise DrawError("this fit had no free parameters, so there is one machine and nothing to draw")
        if not np.all(np.isfinite(self.covariance)):
            raise DrawError("the covariance of this fit is not finite, so that nothing can be drawn from it")
        chart = self.parameters.chart(self.values)
        root, rng = self._root(chart), np.random.default_rng(seed)
        std = np.sqrt(np.sum(root**2, axis=1))

        def steps(points: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n p"]:
            return points[:, 1:] @ root.T * _tails(points[:, 0], self.degrees)

        def excess(points: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
            return _excess(chart, std, steps(points))

        drawn = steps(truncated_normal(excess, 1 + root.shape[1], int(count), rng))
        increments = drawn if chart.tangent is None else drawn @ chart.tangent.T
        return Draws(self.base, self.parameters, tuple(self.parameters.plus(self.values, one) for one in increments))

    def _root(self, chart: Chart) -> Float[np.ndarray, "p k"]:
        """R with the covariance ``R Rᵀ`` of steps in a chart; no row where there is no variance."""
        covariance = self.covariance
        if chart.tangent is not None:
            back = np.linalg.inv(chart.tangent)
            covariance = back @ covariance @ back.T
        std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        inverse = np.divide(1.0, std, out=np.zeros_like(std), where=std > 0.0)
        variances, vectors = np.linalg.eigh(covariance * np.outer(inverse, inverse))
        told = variances > ROUNDING * variances[-1]
        return std[:, None] * vectors[:, told] * np.sqrt(variances[told])


@record(frozen=True)
class Draws:
    """Possible machines, drawn from what a fit found."""

    base: Mechanism
    parameters: ParameterSet
    machines: tuple[Values, ...]

    def __len__(self) -> int:
        return len(self.machines)

    def __repr__(self) -> str:
        return f"<{len(self)} machines drawn, {len(self.labels)} parameters of {self.base.name or 'a mechanism'}>"

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns: those of the fit's table of parameters."""
        return tuple(self.parameters.labels())

    @functools.cached_property
    def table(self) -> Float[np.ndarray, "n p"]:
        """Values, one row for each machine; rotations as rotation vectors."""
        return np.array([self.parameters.vector(one) for one in self.machines]).reshape(len(self), len(self.labels))

    def values(self, number: int, recording: int = 0) -> Mapping[str, Any]:
        """The drawn values of one machine by name, and the moments of inertia that give way to them."""
        one = self.machines[number]
        return {**self.parameters.named(one, recording), **self.parameters.followers(one, recording)}

    def mechanism(self, number: int, recording: int = 0) -> Mechanism:
        """One machine, to be simulated or written; with the values that a recording has of its own."""
        return self.base.write(self.values(number, recording))

    def to_dict(self) -> dict[str, Float[np.ndarray, " n"]]:
        """Name → values, one for each machine."""
        return dict(zip(self.labels, self.table.T, strict=True))

    def to_polars(self) -> Any:
        """A Polars frame, one row for each machine."""
        return polars_frame(self.to_dict())

    def to_pandas(self) -> Any:
        """The same as a pandas frame (extra ``pandas``)."""
        return pandas_frame(self.to_dict())

    def to_arviz(self) -> Any:
        """The same as the posterior of an InferenceData of ArviZ (extra ``arviz``)."""
        return inference_data(self.to_dict())


def _tails(levels: Float[np.ndarray, " n"], degrees: Float[np.ndarray, " p"]) -> Float[np.ndarray, "n p"]:
    """``√(ν/χ²)`` for standard normal levels of χ²: a normal variable times it is Student's, all at the same level."""
    factors = np.ones((len(levels), len(degrees)))
    if np.all(np.isinf(degrees)):
        return factors
    from scipy.special import gammaincinv, ndtr  # noqa: PLC0415  where the weights are believed nobody waits for it

    for one in np.unique(degrees[np.isfinite(degrees)]).tolist():
        half = np.maximum(gammaincinv(0.5 * one, ndtr(levels)), np.finfo(float).tiny)
        factors[:, degrees == one] = np.sqrt(0.5 * one / half)[:, None]
    return factors


def _excess(chart: Chart, std: Float[np.ndarray, " p"], steps: Float[np.ndarray, "n p"]) -> Float[np.ndarray, " n"]:
    """How far steps lead out of bounds, in standard deviations, or bodies beyond their edge; at most zero inside."""
    (lower, upper), moving = chart.bounds, std > 0.0
    outside = np.maximum(lower - steps, steps - upper)[:, moving] / std[moving]
    excess = np.max(outside, axis=1, initial=-np.inf)
    cones = chart.cones
    if not len(cones):
        return excess
    matrices = cones.offset + np.einsum("nce,ceij->ncij", steps[:, cones.places], cones.slopes)
    size = np.abs(np.trace(cones.offset, axis1=1, axis2=2))
    return np.maximum(excess, np.max(-np.linalg.eigvalsh(matrices)[..., 0] / size, axis=1))


def with_prior(covariance: Float[np.ndarray, "p p"], information: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """A covariance V with the information P of priors that it knows nothing of: ``(V⁻¹ + P)⁻¹``, V of any rank.

    With ``P = A Aᵀ`` it is ``V − V A (1 + Aᵀ V A)⁻¹ Aᵀ V``. What is not finite (of a fit that failed) stays so.
    """
    if not (information.any() and np.all(np.isfinite(covariance))):
        return covariance
    values, vectors = np.linalg.eigh(information)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    across = covariance @ root
    left = covariance - across @ np.linalg.solve(np.eye(len(root)) + root.T @ across, across.T)
    return 0.5 * (left + left.T)


def last_prior(untold: Bool[np.ndarray, " p"], scale: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
    """Information that says of what nobody has told anything about that it is known to its own typical size."""
    return np.diag(np.where(untold, scale**-2.0, 0.0))
