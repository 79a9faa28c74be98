"""How sure the parameters are, in four senses.

Near the minimum an error ``e`` of the residuals moves the estimate by ``−H⁻¹ Tᵀe`` with ``H = TᵀT`` (plus priors). The
kinds differ in what they take the errors to be:

* ``gauss-newton``: as large as the fit's weights say, independent of each other: ``σ₀² H⁻¹``.
* ``paper``: constant covariances Ω and R, estimated by ``Σ r rᵀ/(n − 1)`` (the paper's Section 3.7).
* ``residual``: the same, with the degrees of freedom that the residuals really have (:mod:`residual_covariance`).
* ``robust``: anything that averages out, correlated in time or of changing size: the variance of ``Tᵀe`` is that of a sum
  of correlated contributions (:mod:`long_run`), the innovations' scores (:mod:`projection`).

Parameters on a bound are held there: all others are *conditional* on it. Directions that the data do not tell (see
:mod:`identifiability`) are given a standard deviation of ten typical sizes, enough to be seen and not so much that it
drowns its neighbours.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from shadowfit.errors import UnknownNameError, nearest
from shadowfit.estimation.box_step import solve_on
from shadowfit.estimation.identifiability import THRESHOLD, Finding, findings
from shadowfit.estimation.long_run import LongRun, long_run_covariance
from shadowfit.estimation.projection import Projection
from shadowfit.estimation.residual_covariance import GroupNoise, group_noise, propagated
from shadowfit.estimation.rows import Group

Kind = Literal["gauss-newton", "paper", "residual", "robust"]

# Components of an unidentified direction below this are rounding.
UNRELATED = 1e-4
# Information along an unidentified direction, in units of one over squared typical size.
LEAST_INFORMATION = 1e-2


@dataclasses.dataclass(frozen=True)
class Interval:
    """A confidence interval of one parameter, in its unit."""

    name: str
    lower: float
    upper: float
    one_sided: bool
    """The parameter sits on a bound, which is one end; the other is where the unbounded estimate's interval ends."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """All that the data say about the parameters, linearised at the estimate."""

    labels: tuple[str, ...]
    scale: Float[np.ndarray, " p"]
    """Typical sizes."""
    reference: float
    """σ₀."""
    prior: Float[np.ndarray, " p"]
    """Weights of the priors, in the scaling of the rows."""
    prior_gradient: Float[np.ndarray, " p"]
    at_bound: Bool[np.ndarray, " p"]
    projections: tuple[Projection, ...]
    """Of each recording."""
    places: tuple[np.ndarray, ...]
    """Of each recording's parameters among all."""
    layouts: tuple[tuple[Group, ...], ...]
    present: tuple[Bool[np.ndarray, "n m"], ...]

    @functools.cached_property
    def matrix(self) -> Float[np.ndarray, "p p"]:
        """H, in the scaling of the rows."""
        return np.diag(self.prior) + self._joined([own.information for own in self.projections])

    @functools.cached_property
    def information(self) -> Float[np.ndarray, "p p"]:
        """H as inverse variance."""
        return self.matrix / self.reference**2

    @functools.cached_property
    def gradient(self) -> Float[np.ndarray, " p"]:
        """``Tᵀr`` with the priors' part: zero at a minimum, except for parameters on a bound."""
        total = self.prior_gradient.copy()
        for place, own in zip(self.places, self.projections, strict=True):
            np.add.at(total, place, own.gradient)
        return total

    @functools.cached_property
    def noise(self) -> tuple[GroupNoise, ...]:
        """Noise of the dynamics and of each sensor, estimated from the residuals."""
        inverse = self.bread(~self.at_bound)
        local = [inverse[np.ix_(place, place)] for place in self.places]
        return group_noise(self.layouts, self.projections, self.present, local)

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the data cannot tell; parameters on a bound, which are held, are left out."""
        free = ~self.at_bound
        kept = [label for label, here in zip(self.labels, free, strict=True) if here]
        return findings(self.information[np.ix_(free, free)], self.scale[free], kept)

    def bread(self, free: Bool[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """H⁻¹ on the free parameters, without the directions that the data do not tell; zero elsewhere."""
        strong, values = self._directions(free)[:2]
        if strong.shape[1] == np.count_nonzero(free):
            exact = solve_on(self.matrix, free, np.eye(len(free)))
            if exact is not None:
                return exact
        return self._placed((strong / values) @ strong.T, free) / self.reference**2

    def ignorance(self, free: Bool[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """Covariance of the directions that the data do not tell.

        Rounding gives them small components on parameters that have nothing to do with them; these are cleared, so that
        they keep their own uncertainty.
        """
        _, _, weak, values = self._directions(free)
        weak = np.where(np.abs(weak) < UNRELATED, 0.0, weak)
        return self._placed((weak / np.maximum(values, LEAST_INFORMATION)) @ weak.T, free)

    def _directions(self, free: Bool[np.ndarray, " p"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvectors and values of the information in units of typical sizes: those told by the data, and the rest."""
        scale = self.scale[free]
        block = np.nan_to_num(self.information[np.ix_(free, free)]) * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(block)
        weak = values < THRESHOLD**-2
        return vectors[:, ~weak], values[~weak], vectors[:, weak], values[weak]

    def _placed(self, block: np.ndarray, free: Bool[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """A matrix in units of typical sizes among all parameters, in their units."""
        whole = np.zeros((len(free), len(free)))
        whole[np.ix_(free, free)] = block * np.outer(self.scale[free], self.scale[free])
        return whole

    def _joined(self, parts: Sequence[np.ndarray]) -> Float[np.ndarray, "p p"]:
        total = np.zeros((len(self.labels), len(self.labels)))
        for place, part in zip(self.places, parts, strict=True):
            np.add.at(total, np.ix_(place, place), part)
        return total

    # --- the variance of Tᵀe, in the scaling of the rows ---

    def meat(self, kind: Kind, free: Bool[np.ndarray, " p"]) -> tuple[Float[np.ndarray, "p p"], float]:
        """Variance of ``Tᵀe`` in one of the senses, and its degrees of freedom (infinite if it is not estimated)."""
        known = np.diag(self.prior) * self.reference**2
        if kind == "gauss-newton":
            return self.matrix * self.reference**2, np.inf
        if kind == "robust":
            runs = self._long_runs(free)
            return known + self._joined([run.covariance for run in runs]), sum(run.degrees for run in runs)
        assumed = self.reference**2
        spread = [noise.plain() if kind == "paper" else noise.covariance(assumed) for noise in self.noise]
        parts = [
            propagated(layout, own, spread, assumed)
            for layout, own in zip(self.layouts, self.projections, strict=True)
        ]
        degrees = np.inf if kind == "paper" else max(sum(noise.degrees for noise in self.noise), 1.0)
        return known + self._joined(parts), degrees

    def _long_runs(self, free: Bool[np.ndarray, " p"]) -> list[LongRun]:
        """Long-run covariances of each recording's scores, made comparable by the information's own directions."""
        strong, values, _, _ = self._directions(free)
        root = np.zeros((len(free), strong.shape[1]))
        root[free] = self.scale[free, None] * strong / np.sqrt(values)
        back = np.zeros((len(free), strong.shape[1]))
        back[free] = strong * np.sqrt(values) / self.scale[free, None]
        runs = []
        for place, own in zip(self.places, self.projections, strict=True):
            run = long_run_covariance(own.scores @ root[place])
            runs.append(dataclasses.replace(run, covariance=back[place] @ run.covariance @ back[place].T))
        return runs

    def covariance(
        self, kind: Kind, free: Bool[np.ndarray, " p"] | None = None
    ) -> tuple[Float[np.ndarray, "p p"], float]:
        """Covariance of the free parameters (those not on a bound), zero for the others, and degrees of freedom."""
        free = ~self.at_bound if free is None else free
        bread, ignorance = self.bread(free), self.ignorance(free)
        if kind == "gauss-newton":
            return bread * self.reference**2 + ignorance, np.inf
        meat, degrees = self.meat(kind, free)
        return bread @ meat @ bread + ignorance, degrees


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of the parameters, of one kind."""

    kind: Kind
    evidence: Evidence
    values: Float[np.ndarray, " p"]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]

    @functools.cached_property
    def _found(self) -> tuple[Float[np.ndarray, "p p"], float]:
        return self.evidence.covariance(self.kind)

    @property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Covariance of the increments, conditional on the parameters that sit on a bound, whose rows are zero."""
        return self._found[0]

    @property
    def degrees(self) -> float:
        """Degrees of freedom behind the size of the covariance; infinite where the fit's weights are believed."""
        return self._found[1]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the rows."""
        return self.evidence.labels

    @functools.cached_property
    def std(self) -> Float[np.ndarray, " p"]:
        """Standard deviations; NaN for parameters on a bound."""
        spread = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        return np.where(self.evidence.at_bound, np.nan, spread)

    @functools.cached_property
    def freed_std(self) -> Float[np.ndarray, " p"]:
        """Standard deviations; for a parameter on a bound the one that it would have if it were free."""
        spread = self.std.copy()
        for i in np.flatnonzero(self.evidence.at_bound):
            spread[i] = np.sqrt(max(self.evidence.covariance(self.kind, self._freed(i))[0][i, i], 0.0))
        return spread

    @property
    def correlation(self) -> Float[np.ndarray, "p p"]:
        """Correlations; NaN for parameters on a bound."""
        return self.covariance / np.outer(self.std, self.std)

    def intervals(self, level: float = 0.95) -> tuple[Interval, ...]:
        """Confidence intervals, cut at the bounds.

        For a parameter on a bound: the interval that its estimate would have without the bound (all others on their
        bounds held), as far as it lies inside. It begins at the bound and may be that single value.
        """
        if not 0.0 < level < 1.0:
            raise UnknownNameError(f"the level of an interval is {level}; it must lie between 0 and 1, such as 0.95")
        factor = float(stats.t.ppf(0.5 + 0.5 * level, self.degrees))
        found = []
        for i, label in enumerate(self.labels):
            bound = bool(self.evidence.at_bound[i])
            centre = self.values[i] + (self._beyond(i) if bound else 0.0)
            ends = np.clip([centre - factor * self.freed_std[i], centre + factor * self.freed_std[i]], *self._box(i))
            found.append(Interval(label, float(ends[0]), float(ends[1]), bound))
        return tuple(found)

    def _box(self, i: int) -> tuple[float, float]:
        return float(self.lower[i]), float(self.upper[i])

    def _freed(self, i: int) -> Bool[np.ndarray, " p"]:
        free = ~self.evidence.at_bound
        free[i] = True
        return free

    def _beyond(self, i: int) -> float:
        """How far beyond its bound the quadratic model would put a parameter."""
        free = self._freed(i)
        return float(-(self.evidence.bread(free) @ np.where(free, self.evidence.gradient, 0.0))[i])


def check_kind(kind: str) -> Kind:
    """The kind, if there is one of this name."""
    for known in get_args(Kind):
        if kind == known:
            return known
    raise UnknownNameError(f"there is no kind of uncertainty {kind!r}{nearest(kind, get_args(Kind))}")
