"""How sure the parameters are, in four senses.

Near the minimum an error ``e`` of the residuals moves the estimate by ``−H⁻¹ Tᵀe`` with ``H = TᵀT`` (plus priors). The
kinds differ in what they take the errors to be:

* ``robust`` (default): anything that averages out, correlated in time or of changing size: the variance of ``Tᵀe`` is
  that of a sum of correlated contributions, one of each step (:mod:`long_run`); and what a model lacks, functions of
  the motion or of a reading (:mod:`latent_search`), and disagreement of recordings or pieces (:mod:`blocks`).
* ``gauss-newton``: independent of each other, as large as the noise behind the fit's weights: ``σ₀² H⁻¹`` where the
  weights are those of the noise, ``H⁻¹ [Σ_k T_kᵀ C T_k] H⁻¹`` with its levels C where they are not.
* ``residual``: constant covariances Ω and R, estimated with the degrees of freedom that the residuals really have
  (:mod:`residual_covariance`).
* ``paper``: the same, estimated by ``Σ r rᵀ/(n − 1)`` (the paper's Section 3.7).

Parameters on a bound are held there, and covariances of all others are *conditional* on it. Their standard deviations
are not: the truth lies inside, at a distance x from the bound that the data say something about. If a parameter b were
free it would be found at ``−d ± s`` beyond the bound, and where the bound is known to hold its truth is that normal
variable's part inside. Others, which follow it by ``g = −H⁻¹H_b``, are off by as much: ``g² E[x²]`` is added to their
variances. (Intervals also span the estimate without bounds, see :meth:`Uncertainty.intervals`.) The truth inside also
says how wrong the model is (``robust``, which counts what models lack): of the square of d noise explains s², and what
is left, ``d² − s²``, is the model's. Noise or model, the larger of both is the spread of the free estimate. (d itself,
the scale that makes a truth on the bound most likely, widens bars of white twins by 1 to 2 %, this one by 0.2 %;
to wait until d is three bars leaves most truths outside where friction is of another kind: docs/record/error-bars.md.)

Directions that the data do not tell (see :mod:`identifiability`) are given a standard deviation of ten typical sizes,
enough to be seen and not so much that it drowns its neighbours.
"""

from __future__ import annotations

import functools
from typing import get_args

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.errors import UnknownNameError, nearest
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.uncertainty.distributions import square_beyond, student_quantile
from shadowfit.estimation.uncertainty.evidence import Evidence, Kind
from shadowfit.records import record


@record(frozen=True)
class Interval:
    """A confidence interval of one parameter, in its unit."""

    name: str
    lower: float
    upper: float
    one_sided: bool
    """The parameter sits on a bound, which is one end; the other is where the unbounded estimate's interval ends."""


@record(frozen=True)
class Uncertainty:
    """Uncertainty of the parameters, of one kind."""

    kind: Kind
    evidence: Evidence
    values: Float[np.ndarray, " p"]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]

    @functools.cached_property
    def _found(self) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]]:
        with one_thread():
            covariance, degrees = self.evidence.covariance(self.kind)
            factor = self._vouched_for_by_data(covariance) * self._seen_over_stairs(covariance)
        return covariance * np.outer(factor, factor), degrees

    def _seen_over_stairs(self, covariance: Float[np.ndarray, "p p"]) -> Float[np.ndarray, " p"]:
        """Factors on standard deviations where what delays do over some time steps leaves more room.

        Correlations stay.
        """
        own = np.diagonal(covariance)
        over = self._variances_over_stairs(~self.evidence.at_bound)
        return np.sqrt(np.where(own > 0.0, np.maximum(over / np.where(own > 0.0, own, 1.0), 1.0), 1.0))

    def _variances(self, free: Bool[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """Variances if these parameters are free; what is no body's is known by the data alone."""
        evidence = self.evidence
        own = np.diagonal(evidence.covariance(self.kind, free)[0])
        if evidence.file_prior.any():
            alone = np.diagonal(evidence.without_file.covariance(self.kind, free)[0])
            own = np.where(np.diagonal(evidence.file_prior) == 0.0, np.maximum(own, alone), own)
        return np.maximum(own, self._variances_over_stairs(free))

    def _variances_over_stairs(self, free: Bool[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """The least variances where inputs are held; zero if there is no reason for it.

        A staircase has a minimum in every step: bars are those of the one that was found, or of the way to the next if
        that is wider (``robust``, which counts what models lack).
        """
        seen = self.evidence.over_stairs
        if seen is None or self.kind != "robust":
            return np.zeros(len(self.labels))
        return np.diagonal(seen.covariance(self.kind, free)[0])

    def _vouched_for_by_data(self, covariance: Float[np.ndarray, "p p"]) -> Float[np.ndarray, " p"]:
        """Factors on standard deviations of numbers that are no body's, but known by what the file says of bodies.

        A rotor that turns with a link, and friction beside an offset that a weight hides, would be as sure as the
        file's bodies, of which nobody has vouched for anything. Correlations stay.
        """
        evidence = self.evidence
        if not evidence.file_prior.any():
            return np.ones(len(covariance))
        own, alone = (np.diagonal(one) for one in (covariance, evidence.without_file.covariance(self.kind)[0]))
        others = (np.diagonal(evidence.file_prior) == 0.0) & (own > 0.0)
        return np.sqrt(np.where(others, np.maximum(alone / np.where(others, own, 1.0), 1.0), 1.0))

    @property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Covariance of the increments, conditional on the parameters that sit on a bound, whose rows are zero."""
        return self._found[0]

    @property
    def degrees(self) -> Float[np.ndarray, " p"]:
        """Degrees of freedom behind each variance; infinite where the fit's weights are believed."""
        return self._found[1]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the rows."""
        return self.evidence.labels

    @functools.cached_property
    def std(self) -> Float[np.ndarray, " p"]:
        """Standard deviations, with what others on a bound may do to them; NaN for those themselves."""
        spread = np.sqrt(np.maximum(np.diagonal(self.covariance) + self._by_bounds, 0.0))
        return np.where(self.evidence.at_bound, np.nan, spread)

    @functools.cached_property
    def freed_std(self) -> Float[np.ndarray, " p"]:
        """Standard deviations; for a parameter on a bound the one that it would have if it were free."""
        return np.where(self.evidence.at_bound, self._std_beyond, self.std)

    @functools.cached_property
    def _beyond(self) -> Float[np.ndarray, " p"]:
        """How far beyond its bound each parameter that sits on one would be found if it were free; else zero."""
        distance = np.zeros(len(self.labels))
        for i in np.flatnonzero(self.evidence.at_bound).tolist():
            distance[i] = abs(float(self.evidence.bread(self._freed(i))[i] @ self.evidence.gradient))
        return distance

    @functools.cached_property
    def _noise_beyond(self) -> Float[np.ndarray, " p"]:
        """Standard deviation by noise of each parameter on a bound if it were free; zero for the others."""
        spread = np.zeros(len(self.labels))
        for i in np.flatnonzero(self.evidence.at_bound).tolist():
            spread[i] = np.sqrt(max(self._variances(self._freed(i))[i], 0.0))
        return spread

    @functools.cached_property
    def _std_beyond(self) -> Float[np.ndarray, " p"]:
        """The same, or what the model is wrong by where that is more (``robust``)."""
        if self.kind != "robust":
            return self._noise_beyond
        wrong = np.sqrt(np.maximum(self._beyond**2 - self._noise_beyond**2, 0.0))
        return np.maximum(self._noise_beyond, wrong)

    @functools.cached_property
    def _by_bounds(self) -> Float[np.ndarray, " p"]:
        """Variance by what others on a bound may be instead."""
        return np.where(self.evidence.at_bound, 0.0, np.diagonal(self._followed(self._inside)))

    @functools.cached_property
    def _inside(self) -> Float[np.ndarray, " p"]:
        """Mean squares of how far parameters on a bound may be off it, those on other bounds held; else zero."""
        squares = np.zeros(len(self.labels))
        for i in np.flatnonzero(self.evidence.at_bound & (self._std_beyond > 0.0)).tolist():
            squares[i] = self._std_beyond[i] ** 2 * square_beyond(self._beyond[i] / self._std_beyond[i])
        return squares

    @functools.cached_property
    def _inside_together(self) -> Float[np.ndarray, " p"]:
        """The same if all of them were free: some share an effect, and one leaves its bound where the other may."""
        evidence, squares, everything = self.evidence, self._inside.copy(), np.ones(len(self.labels), bool)
        moved = -evidence.bread(everything) @ evidence.gradient
        spread = np.sqrt(self._variances(everything))
        for i in np.flatnonzero(evidence.at_bound & (spread > 0.0)).tolist():
            outwards = 1.0 if self.values[i] >= self.upper[i] else -1.0
            squares[i] = max(squares[i], spread[i] ** 2 * square_beyond(outwards * moved[i] / spread[i]))
        return squares

    def _followed(self, squares: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """Second moments of parameters on a bound that are off it by some mean squares, and of those that follow."""
        evidence = self.evidence
        bread, places = evidence.bread(~evidence.at_bound), np.flatnonzero(squares > 0.0)
        answers = -bread @ evidence.matrix[:, places]
        answers[places, np.arange(len(places))] = 1.0
        return (answers * squares[places]) @ answers.T

    @property
    def with_bounds(self) -> Float[np.ndarray, "p p"]:
        """The covariance with what parameters on a bound may be instead, and these themselves: for combinations."""
        if not self.evidence.at_bound.any():
            return self.covariance
        with one_thread():
            return self.covariance + self._followed(self._inside_together)

    @property
    def correlation(self) -> Float[np.ndarray, "p p"]:
        """Correlations; NaN for parameters on a bound."""
        spread = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        held = np.where(self.evidence.at_bound, np.nan, spread)
        return self.covariance / np.outer(held, held)

    def intervals(self, level: float = 0.95) -> tuple[Interval, ...]:
        """Confidence intervals, cut at the bounds.

        While no parameter sits on a bound, and no body on the edge of what a body can have, they are symmetric.
        Otherwise the truth may well lie inside, and others would have answered to that: intervals then also span those
        of the estimate without bounds, as the quadratic model has it. For a parameter on a bound this begins there, and
        may be that single value, but for ``robust``.
        """
        if not 0.0 < level < 1.0:
            raise UnknownNameError(f"the level of an interval is {level}; it must lie between 0 and 1, such as 0.95")
        factor = student_quantile(self.degrees, 0.5 + 0.5 * level)
        held = np.where(self.evidence.at_bound, 0.0, self.std)
        low, high = self.values - factor * held, self.values + factor * held
        if self.evidence.at_bound.any() or self.evidence.on_edge:
            everything = np.ones(len(self.labels), bool)
            unbounded = self.values - self.evidence.bread(everything) @ self.evidence.gradient
            spread = factor * np.sqrt(self._variances(everything))
            low, high = np.minimum(low, unbounded - spread), np.maximum(high, unbounded + spread)
            wrong = self._std_beyond > self._noise_beyond
            inside = np.where(wrong, np.maximum(factor * self._std_beyond - self._beyond, 0.0), 0.0)
            low, high = np.minimum(low, self.values - inside), np.maximum(high, self.values + inside)
        low, high = np.clip(low, self.lower, self.upper), np.clip(high, self.lower, self.upper)
        return tuple(
            Interval(label, float(a), float(b), bool(bound))
            for label, a, b, bound in zip(self.labels, low, high, self.evidence.at_bound, strict=True)
        )

    def _freed(self, i: int) -> Bool[np.ndarray, " p"]:
        free = ~self.evidence.at_bound
        free[i] = True
        return free


def check_kind(kind: str) -> Kind:
    """The kind, if there is one of this name."""
    for known in get_args(Kind):
        if kind == known:
            return known
    raise UnknownNameError(f"there is no kind of uncertainty {kind!r}{nearest(kind, get_args(Kind))}")
