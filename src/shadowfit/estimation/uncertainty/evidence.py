"""What the data say about the parameters, linearised at the estimate: information, noise, covariances."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.linear import projection
from shadowfit.estimation.linear.box_step import solve_on
from shadowfit.estimation.linear.projection import Projection
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem import rows
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.rows import Group
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.uncertainty.blocks import HOLD, Disagreement, Noise, Pieces
from shadowfit.estimation.uncertainty.identifiability import THRESHOLD, Finding, findings
from shadowfit.estimation.uncertainty.latent import Latents
from shadowfit.estimation.uncertainty.long_run import LongRun, long_run_covariance
from shadowfit.estimation.uncertainty.misfit import Misfit, misfit, row_variances
from shadowfit.estimation.uncertainty.residual_covariance import GroupNoise, group_noise, propagated, score_variance
from shadowfit.records import record

Kind = Literal["robust", "gauss-newton", "residual", "paper"]

# Components of an unidentified direction below this are rounding.
UNRELATED = 1e-4
# Rounding of an information that is a sum over all rows, states taken off, in units of that of its eigenvalues.
# (An arm with much added weight had a variance below zero in a direction of 1.5.)
ROUNDINGS = 10.0
# Information along an unidentified direction, in units of one over squared typical size.
LEAST_INFORMATION = 1e-2
# The same where bars are to be as wide as the data leave them, up to a hundred typical sizes.
HARDLY_ANY = 1e-4
# A value within this fraction of its typical size from a bound sits on it.
AT_BOUND = 1e-9
# Degrees of freedom of the missing forces below which the equations of motion hold exactly: states follow from the
# first ones and the parameters.
EXACT = 0.1

# Largest part of the information that acting forces may take away.
MOST_PULLED = 0.99


@record(frozen=True)
class Evidence:
    """All that the data say about the parameters, linearised at the estimate."""

    labels: tuple[str, ...]
    scale: Float[np.ndarray, " p"]
    """Typical sizes."""
    reference: float
    """σ₀."""
    prior: Float[np.ndarray, "p p"]
    """Weights of the priors and of the pull of acting forces, in the scaling of the rows."""
    pull: Float[np.ndarray, " p"]
    """Of these the latter."""
    file_prior: Float[np.ndarray, "p p"]
    """And those of the model file's bodies, which nobody has vouched for (:mod:`uncertainty.file_prior`)."""
    prior_gradient: Float[np.ndarray, " p"]
    at_bound: Bool[np.ndarray, " p"]
    projections: tuple[Projection, ...]
    """Of each recording."""
    places: tuple[np.ndarray, ...]
    """Of each recording's parameters among all."""
    layouts: tuple[tuple[Group, ...], ...]
    present: tuple[Float[np.ndarray, "n m"], ...]
    """How far each row is one of its group's level (:func:`rows.present`)."""
    impulse_ratio: Float[np.ndarray, " r"]
    """Standard deviation of each weighted impulse residual in units of ``σ₀``; one where the weights are believed. Of
    white errors alone, where there are others (``find_latent``)."""
    compare_pieces: Callable[[Bool[np.ndarray, " p"], Noise], Disagreement]
    on_edge: bool = False
    """Whether some body sits on the edge of what a body can have."""
    find_latent: Callable[[Evidence], Latents] | None = None
    """Looks for errors that are not white; None where the weights were given and say nothing about the data."""
    least_told: float = THRESHOLD**-2
    """Information, in units of one over squared typical size, below which the data do not tell a direction."""
    between: tuple[float, ...] | None = None
    """Variances between the most likely errors and equations that hold exactly (:class:`Weights`)."""
    over_stairs: Evidence | None = None
    """The same where delays of held inputs are seen over some time steps (:func:`gather_over_stairs`)."""

    @property
    def settled(self) -> bool:
        """Whether the states could be projected out: weights beyond the digits of the numbers leave rounding."""
        return all(projection.settled for projection in self.projections)

    @functools.cached_property
    def matrix(self) -> Float[np.ndarray, "p p"]:
        """H, in the scaling of the rows."""
        return self.prior + self.data

    @functools.cached_property
    def data(self) -> Float[np.ndarray, "p p"]:
        """H of the data alone, without priors."""
        return self._joined([recording.information for recording in self.projections])

    @functools.cached_property
    def information(self) -> Float[np.ndarray, "p p"]:
        """H as inverse variance."""
        return self.matrix / self.reference**2

    @functools.cached_property
    def gradient(self) -> Float[np.ndarray, " p"]:
        """``Tᵀr`` with the priors' part: zero at a minimum, except for parameters on a bound or bodies on an edge."""
        total = self.prior_gradient.copy()
        for place, recording in zip(self.places, self.projections, strict=True):
            np.add.at(total, place, recording.gradient)
        return total

    @functools.cached_property
    def noise(self) -> tuple[GroupNoise, ...]:
        """Noise of the dynamics and of each sensor, estimated from the residuals."""
        inverse = self.bread(~self.at_bound)
        local = [inverse[np.ix_(place, place)] for place in self.places]
        return group_noise(self.layouts, self.projections, self.present, local)

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the data and given priors cannot tell; parameters on a bound, which are held, are left out."""
        free = ~self.at_bound
        kept = [label for label, here in zip(self.labels, free, strict=True) if here]
        information = self.information - self.file_prior / self.reference**2
        return findings(information[np.ix_(free, free)], self.scale[free], kept)

    @functools.cached_property
    def std(self) -> Float[np.ndarray, " p"]:
        """Standard deviations by the noise's levels."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance("gauss-newton")[0]), 0.0))

    @functools.cached_property
    def prior_std(self) -> Float[np.ndarray, " p"]:
        """Standard deviation that its prior alone gives each parameter; infinite where there is none."""
        known = self.prior - np.diag(self.pull)
        here = np.diagonal(known) > 0.0
        std = np.full(len(known), np.inf)
        std[here] = self.reference * np.sqrt(np.diagonal(np.linalg.inv(known[np.ix_(here, here)])))
        return std

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
        return self._placed((weak / np.maximum(values, min(LEAST_INFORMATION, self.least_told))) @ weak.T, free)

    def _directions(self, free: Bool[np.ndarray, " p"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvectors and values of the information in typical sizes: those told by the data, and the rest."""
        scale = self.scale[free]
        block = np.nan_to_num(self.information[np.ix_(free, free)]) * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(block)
        # What rounding leaves of nothing may be more than the least that counts.
        rounding = ROUNDINGS * len(values) * np.finfo(float).eps * values.max(initial=0.0)
        values = np.where(values > rounding, values, 0.0)
        weak = values < self.least_told
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

    @functools.cached_property
    def disagreement(self) -> Disagreement:
        """Whether recordings, and pieces of them, agree about the parameters."""
        return self._disagreement_about(~self.at_bound)

    def _disagreement_about(self, free: Bool[np.ndarray, " p"]) -> Disagreement:
        """The same with these parameters free: pieces may well disagree about what all of them put on a bound."""
        levels = self.by_levels()
        wider = self._wider(free, levels)
        bread = self.bread(free)
        return self.compare_pieces(free, Noise(wider**2 * np.diagonal(bread @ levels @ bread), wider, self.ratio))

    def _wider(self, free: Bool[np.ndarray, " p"], white: Float[np.ndarray, "p p"]) -> Float[np.ndarray, " p"]:
        """How much wider bars are by what the steps tell than by white errors.

        Errors are as large as their levels at least: residuals of a short recording, or of a clean simulation, may be
        smaller by chance or because nobody added noise.
        """
        bread, steps = self.bread(free), self.meat("robust", free)[0]
        # Weights of 1e300 overflow here, and their error bars are then unknown.
        with np.errstate(over="ignore", invalid="ignore"):
            own, whole = (np.diagonal(bread @ meat @ bread) for meat in (white, steps))
            return np.sqrt(np.maximum(np.divide(whole, own, out=np.ones_like(own), where=own > 0.0), 1.0))

    @functools.cached_property
    def latent(self) -> Latents:
        """Errors that are functions of the motion, of time or of a reading, as large as the fit shows."""
        unscaled = self._latent_as_found
        return dataclasses.replace(unscaled, variance=self.misfit.ratio * unscaled.variance)

    @functools.cached_property
    def _latent_as_found(self) -> Latents:
        """The same as large as they were found before weight was added."""
        if self.find_latent is None:
            return Latents((), np.zeros((len(self.labels), len(self.labels))))
        with one_thread():
            return self.find_latent(self)

    @functools.cached_property
    def misfit(self) -> Misfit:
        """Residuals of the fit against those that its errors would leave; one where weights are those of the noise."""
        if self.believed or self.find_latent is None:
            return Misfit(1.0, np.inf)
        variances, functions = self._row_variances(self.impulse_ratio), self._latent_as_found.energy
        return misfit(self.projections, variances, functions, self._followed)

    def _followed(self, scores: Sequence[Float[np.ndarray, "q c"]]) -> Float[np.ndarray, " c"]:
        """Squares that parameters take up of errors with given ``Tᵀe`` of each recording."""
        total = np.zeros((len(self.labels), scores[0].shape[1]))
        for place, score in zip(self.places, scores, strict=True):
            np.add.at(total, place, score)
        return np.einsum("pc,pq,qc->c", total, self.bread(~self.at_bound), total)

    @property
    def believed(self) -> bool:
        """Whether the weights are those of the noise."""
        return bool(np.allclose(self.impulse_ratio, 1.0, rtol=1e-9, atol=0.0))

    @property
    def ratio(self) -> Float[np.ndarray, " r"]:
        """Standard deviation of each weighted impulse residual in units of ``σ₀``, as large as the fit shows."""
        return self.impulse_ratio * np.sqrt(self.misfit.ratio)

    def _row_variances(self, ratio: Float[np.ndarray, " r"]) -> list[Float[np.ndarray, " m"]]:
        """Variance of the rows of a step of each recording."""
        impulses, assumed = self.layouts[0][0].size, self.reference**2
        return [row_variances(impulses, ratio, one.residual.shape[1], assumed) for one in self.projections]

    # --- the variance of Tᵀe, in the scaling of the rows ---

    def by_levels(self) -> Float[np.ndarray, "p p"]:
        """By the most likely levels of the noise, which the weights need not be."""
        if self.believed:
            return self.matrix * self.reference**2
        assumed = self.reference**2
        parts = [
            score_variance(layout, recording, self.ratio, assumed)
            for layout, recording in zip(self.layouts, self.projections, strict=True)
        ]
        return self.prior * assumed + self._joined(parts)

    def meat(self, kind: Kind, free: Bool[np.ndarray, " p"]) -> tuple[Float[np.ndarray, "p p"], float]:
        """Variance of ``Tᵀe`` in one of the senses, and its degrees of freedom (infinite if it is not estimated)."""
        known = self.prior * self.reference**2
        if kind == "gauss-newton":
            return self.matrix * self.reference**2, np.inf
        if kind == "robust":
            runs = self._long_runs(free)
            return known + self._joined([run.covariance for run in runs]), sum(run.degrees for run in runs)
        assumed = self.reference**2
        spread = [noise.plain() if kind == "paper" else noise.covariance(assumed) for noise in self.noise]
        parts = [
            propagated(layout, recording, spread, assumed)
            for layout, recording in zip(self.layouts, self.projections, strict=True)
        ]
        degrees = np.inf if kind == "paper" else max(sum(noise.degrees for noise in self.noise), 1.0)
        return known + self._joined(parts), degrees

    def _long_runs(self, free: Bool[np.ndarray, " p"]) -> list[LongRun]:
        """Long-run covariances of each recording's scores, made comparable by the information's own directions."""
        strong, values, _, _ = self._directions(free)
        root, back = np.zeros((2, len(free), strong.shape[1]))
        root[free] = self.scale[free, None] * strong / np.sqrt(values)
        back[free] = strong * np.sqrt(values) / self.scale[free, None]
        runs = []
        for place, scores in zip(self.places, self._scores, strict=True):
            # Weights of 1e300 overflow here, and their error bars are then unknown.
            with np.errstate(over="ignore", invalid="ignore"):
                run = long_run_covariance(scores @ root[place])
                runs.append(dataclasses.replace(run, covariance=back[place] @ run.covariance @ back[place].T))
        return runs

    @functools.cached_property
    def _scores(self) -> list[Float[np.ndarray, "k q"]]:
        """What one step after another, or block of steps, tells about each recording's parameters: parts of ``Tᵀr``.

        Those of innovations, which do not know the future; where the equations hold exactly the residuals are these,
        and what states have learnt from other steps would be the difference of equal numbers. Without what functions
        explain, and each recording by what it says itself: these, and disagreement of recordings, count beside it.
        """
        projections = self.projections
        if self.latent.left:
            pairs = zip(projections, self.latent.left, strict=True)
            projections = tuple(dataclasses.replace(one, residual=left) for one, left in pairs)
        exact = self.noise[0].degrees < EXACT
        alone = [self._alone(*each) for each in zip(self.places, projections, strict=True)]
        return [one.step_scores if exact else one.scores for one in alone]

    def _alone(self, place: np.ndarray, projection: Projection) -> Projection:
        """A recording with the residuals of its own estimate; what it cannot tell stays as all tell it."""
        if len(self.projections) == 1 or not len(place):
            return projection
        information = projection.information + HOLD * self.matrix[np.ix_(place, place)]
        size = np.sqrt(np.maximum(np.diagonal(information), np.finfo(float).tiny))
        inverse = np.linalg.pinv(information / np.outer(size, size), hermitian=True) / np.outer(size, size)
        step = np.where(self.at_bound[place], 0.0, -inverse @ projection.gradient)
        return dataclasses.replace(
            projection,
            residual=projection.residual + projection.rows @ step,
            start_residual=projection.start_residual + projection.start_rows @ step,
        )

    def covariance(
        self, kind: Kind, free: Bool[np.ndarray, " p"] | None = None
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]]:
        """Covariance of the free parameters (those not on a bound), zero for the others, and degrees of freedom."""
        free = ~self.at_bound if free is None else free
        bread, ignorance = self.bread(free), self.ignorance(free)
        meat, degrees = self.meat(kind, free)
        wider = np.ones(len(free))
        if kind == "robust":
            meat = self.meat("gauss-newton", free)[0]
            wider = self._wider(free, meat)
        # Weights of 1e300 overflow here, and their error bars are then unknown.
        with np.errstate(over="ignore", invalid="ignore"):
            plain = bread @ meat @ bread * np.outer(wider, wider)
        covariance = self._less_pulled(plain, free) + ignorance
        if kind != "robust":
            return covariance, np.full(len(free), degrees)
        return self._widened(covariance, bread @ self.latent.variance @ bread, free, degrees)

    @functools.cached_property
    def without_file(self) -> Evidence:
        """What the data say, however little: without the model file's bodies, which nobody has vouched for."""
        if not self.file_prior.any():
            return self
        nothing = np.zeros_like(self.file_prior)
        stairs = None if self.over_stairs is None else self.over_stairs.without_file
        own = self.prior - self.file_prior
        return dataclasses.replace(self, prior=own, file_prior=nothing, least_told=HARDLY_ANY, over_stairs=stairs)

    def _less_pulled(
        self, covariance: Float[np.ndarray, "p p"], free: Bool[np.ndarray, " p"]
    ) -> Float[np.ndarray, "p p"]:
        """A covariance V without the information 2C of acting forces whose levels are estimated: ``(V⁻¹ − 2C)⁻¹``."""
        pulled = free & (self.pull > 0.0)
        if not pulled.any():
            return covariance
        root = np.sqrt(2.0 * self.pull[pulled]) / self.reference
        share = root[:, None] * covariance[np.ix_(pulled, pulled)] * root
        values, vectors = np.linalg.eigh(0.5 * (share + share.T))
        # (V⁻¹ − RᵀR)⁻¹ = V + V Rᵀ (1 − R V Rᵀ)⁻¹ R V. Where the data say less than is taken away, R V Rᵀ > 1, most of
        # what they say is.
        most = np.clip(values, 0.0, MOST_PULLED)
        inner = (vectors * most / (np.maximum(values, np.finfo(float).tiny) * (1.0 - most))) @ vectors.T
        across = covariance[:, pulled] * root
        return covariance + across @ inner @ across.T

    def _widened(
        self,
        covariance: Float[np.ndarray, "p p"],
        latent: Float[np.ndarray, "p p"],
        free: Bool[np.ndarray, " p"],
        degrees: float,
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]]:
        """A covariance with what errors that are not white add, or what disagreement does if that is more.

        All are what a model lacks, seen in several ways; the two answers of :mod:`constraints` are one. Where these add
        to a variance correlations stay. Degrees of freedom of a sum of variances are those of Welch and Satterthwaite;
        errors have ``degrees`` of them.
        """
        whole = covariance + latent
        variance = np.diagonal(whole)
        known = free & (variance > 0.0)
        held = np.array_equal(free, ~self.at_bound)
        disagreement = self.disagreement if held else self._disagreement_about(free)
        seen = disagreement.added if self.between is None else np.maximum(disagreement.added, self.between)
        added = np.maximum(seen - np.diagonal(latent), 0.0)
        growth = np.where(known, added / np.where(known, variance, 1.0), 0.0)
        factor, share = np.sqrt(1.0 + growth), growth / (1.0 + growth)
        inverse = (1.0 - share) ** 2 / degrees + share**2 / disagreement.degrees
        with np.errstate(divide="ignore"):
            return whole * np.outer(factor, factor), 1.0 / inverse


def gather(
    problem: Problem,
    here: Linearisation,
    weights: Weights,
    find_latent: Callable[[Evidence], Latents] | None = None,
) -> Evidence:
    """The evidence at a point: all recordings with their states projected out."""
    recordings = range(len(problem.tracks))
    parameters = problem.parameters
    lower, upper = parameters.bounds(here.point.values)
    slack = AT_BOUND * parameters.scales
    return Evidence(
        tuple(parameters.labels()),
        np.maximum(parameters.scales, np.abs(parameters.flat(here.point.values))),
        weights.reference,
        here.prior_matrix,
        np.zeros(parameters.size) if weights.pull is None else weights.reference**2 * np.array(weights.pull.curvature),
        weights.reference**2 * parameters.file_information_at(here.point.values, weights.file_spread),
        here.prior_gradient,
        (lower >= -slack) | (upper <= slack),
        tuple(projected(problem, here, weights, i) for i in recordings),
        tuple(parameters.places(i) for i in recordings),
        tuple(rows.groups(problem, i) for i in recordings),
        tuple(rows.present(problem, here.point, weights, i) for i in recordings),
        weights.impulse_ratio,
        Pieces(problem, here.point, weights).compare,
        bool(parameters.on_edge(here.point.values)),
        find_latent,
        between=weights.between,
    )


def gather_over_stairs(
    problem: Problem, here: Linearisation, weights: Weights, find_latent: Callable[[Evidence], Latents]
) -> Evidence:
    """The evidence where errors are not white, and beside it that with delays seen over a time step to each side.

    Of an input that is held the derivative by its delay is a pulse within the one time step that a stair falls into. An
    error that lasts for some steps behind each stair (a lag of the loop, a gear that yields) may hardly touch this
    pulse, and move the delay into another step all the same.
    """
    own, wide = gather(problem, here, weights, find_latent), problem.over_stairs()
    if wide is problem:
        return own
    seen = gather(wide, objective.linearise(wide, here.point, weights), weights, find_latent)
    return dataclasses.replace(own, over_stairs=seen)


def projected(problem: Problem, here: Linearisation, weights: Weights, recording: int) -> Projection:
    """Rows of one recording, states projected out."""
    normal = here.normals[recording]
    factor, ridge = objective.undamped(normal)
    which = (problem, here.point, weights, recording)
    chunks = functools.partial(objective.each_chunk, *which)
    return projection.project(chunks, objective.start_rows_of(*which), factor, problem.tracks[recording].steps, ridge)
