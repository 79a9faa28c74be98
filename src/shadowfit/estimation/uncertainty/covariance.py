"""How sure the parameters are, in five senses.

Near the minimum an error ``e`` of the residuals moves the estimate by ``−H⁻¹ Tᵀe`` with ``H = TᵀT`` (plus priors). The
kinds differ in what they take the errors to be:

* ``gauss-newton``: independent of each other, as large as the noise behind the fit's weights: ``σ₀² H⁻¹`` where the
  weights are those of the noise, ``H⁻¹ [Σ_k T_kᵀ C T_k] H⁻¹`` with its levels C where they are not.
* ``blocks`` (default): the same, but as long alike as the residuals show (:mod:`memory`), and where recordings or
  pieces of them disagree by more than that, wider (:mod:`blocks`).
* ``paper``: constant covariances Ω and R, estimated by ``Σ r rᵀ/(n − 1)`` (the paper's Section 3.7).
* ``residual``: the same, with the degrees of freedom that the residuals really have (:mod:`residual_covariance`).
* ``robust``: anything that averages out, correlated in time or of changing size: the variance of ``Tᵀe`` is that of a
  sum of correlated contributions (:mod:`long_run`), the innovations' scores (:mod:`projection`).

Parameters on a bound are held there, and covariances of all others are *conditional* on it. Their standard deviations
are not: the truth lies inside, at a distance x from the bound that the data say something about. If a parameter b were
free it would be found at ``−d ± s`` beyond the bound, and where the bound is known to hold its truth is that normal
variable's part inside. Others, which follow it by ``g = −H⁻¹H_b``, are off by as much: ``g² E[x²]`` is added to their
variances. (Intervals also span the estimate without bounds, see :meth:`Uncertainty.intervals`.) Where that many ``s``
are no chance, the truth inside says how wrong the model is: the free estimate is off by d at least, and d is its
standard deviation (``blocks``, which counts what models lack; the scale of errors that makes a truth on the bound most
likely, Birge's ratio of a single number).

Directions that the data do not tell (see :mod:`identifiability`) are given a standard deviation of ten typical sizes,
enough to be seen and not so much that it drowns its neighbours.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import get_args

import numpy as np
from jaxtyping import Bool, Float

from shadowfit.errors import UnknownNameError, nearest
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.uncertainty.distributions import square_beyond, student_quantile
from shadowfit.estimation.uncertainty.evidence import Evidence, Kind

# Standard deviations beyond a bound that no chance explains (one in a thousand).
NO_CHANCE = 3.0


@dataclasses.dataclass(frozen=True)
class Interval:
    """A confidence interval of one parameter, in its unit."""

    name: str
    lower: float
    upper: float
    one_sided: bool
    """The parameter sits on a bound, which is one end; the other is where the unbounded estimate's interval ends."""


@dataclasses.dataclass(frozen=True)
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
            return self.evidence.covariance(self.kind)

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
    def _std_beyond(self) -> Float[np.ndarray, " p"]:
        """Standard deviation of each parameter on a bound if it were free; zero for the others."""
        spread = np.zeros(len(self.labels))
        for i in np.flatnonzero(self.evidence.at_bound).tolist():
            spread[i] = np.sqrt(max(self.evidence.covariance(self.kind, self._freed(i))[0][i, i], 0.0))
        wrong = (self.kind == "blocks") & (self._beyond > NO_CHANCE * spread)
        return np.where(wrong, self._beyond, spread)

    @functools.cached_property
    def _by_bounds(self) -> Float[np.ndarray, " p"]:
        """Variance by what parameters on a bound may be instead."""
        evidence, added = self.evidence, np.zeros(len(self.labels))
        bread = evidence.bread(~evidence.at_bound)
        for i in np.flatnonzero(evidence.at_bound & (self._std_beyond > 0.0)).tolist():
            inside = self._std_beyond[i] ** 2 * square_beyond(self._beyond[i] / self._std_beyond[i])
            added += (bread @ evidence.matrix[:, i]) ** 2 * inside
        return added

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
        may be that single value, unless the model must be wrong (``blocks``).
        """
        if not 0.0 < level < 1.0:
            raise UnknownNameError(f"the level of an interval is {level}; it must lie between 0 and 1, such as 0.95")
        factor = student_quantile(self.degrees, 0.5 + 0.5 * level)
        held = np.where(self.evidence.at_bound, 0.0, self.std)
        low, high = self.values - factor * held, self.values + factor * held
        if self.evidence.at_bound.any() or self.evidence.on_edge:
            everything = np.ones(len(self.labels), bool)
            unbounded = self.values - self.evidence.bread(everything) @ self.evidence.gradient
            spread = factor * np.sqrt(np.diagonal(self.evidence.covariance(self.kind, everything)[0]))
            low, high = np.minimum(low, unbounded - spread), np.maximum(high, unbounded + spread)
            inside = np.where(self._std_beyond == self._beyond, (factor - 1.0) * self._beyond, 0.0)
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
