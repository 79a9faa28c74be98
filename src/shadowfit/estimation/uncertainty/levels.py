"""Levels of the noise of each joint and each sensor: one Newton step towards the most likely ones.

With ``x_g = log σ_g²`` of each group of residuals (a joint's missing impulses, a sensor's readings) the likelihood with
states and parameters integrated out (:mod:`shadowfit.estimation.noise`) has the slopes and, on average, the curvature

    ∂(−2 log L)/∂x_g = D_g − S_g,      K_gh = e_gᵀ (1 − P) e_h,

with e the weighted residuals, e_g those of a group, S_g their squares, P the projection on what states and parameters
can take up, and ``D_g = N_g − tr P_gg`` the degrees of freedom that they leave. (K is the "average information" of
restricted maximum likelihood; Gilmour, Thompson and Cullis 1995.) The step is ``K⁻¹ (S log(S/D))``, which for small
steps is Newton's, ``K⁻¹ (S − D)``, and for a group by itself leads to ``σ² S/D`` at once from any distance.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Bool, Float, Int
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sensor_limits import given_sensors
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.uncertainty.evidence import Evidence
from shadowfit.records import record

# A group keeps at least this many degrees of freedom, or its level is not touched.
LEAST_DEGREES = 2.0
# Largest change of x at once: a factor of ten in a standard deviation.
LARGEST_STEP = 2.0 * np.log(10.0)
# Added to the diagonal of K, relative to it: groups that the data cannot tell apart keep their ratio.
RIDGE = 1e-3


@record(frozen=True)
class LevelStep:
    """What the residuals of a fit tell about the levels of its noise."""

    impulses: Float[np.ndarray, " r"]
    """Proposed factor on the standard deviation of each impulse residual."""
    sensors: Float[np.ndarray, " s"]
    """The same for each sensor."""
    ratios: Float[np.ndarray, " g"]
    """``√(S/D)`` of all groups, impulses first: one where the level is right."""
    gain: float
    """Expected decrease of −2 log L."""

    @property
    def largest(self) -> float:
        """Largest factor, or one over the smallest."""
        return float(np.exp(np.max(np.abs(np.log(np.concatenate([self.impulses, self.sensors]))))))

    def shortened(self, part: float) -> LevelStep:
        """A part of the step, in the logarithms of the levels."""
        expected = self.gain * part * (2.0 - part)  # of a parabola
        return dataclasses.replace(self, impulses=self.impulses**part, sensors=self.sensors**part, gain=expected)


def level_step(problem: Problem, weights: Weights, evidence: Evidence) -> LevelStep:
    """The step from the present levels; one group for all impulses unless they are those of joints."""
    rows = problem.plan.node_size
    single = problem.level_names is not None
    squares, degrees = _tallies(evidence, weights.reference, single)
    groups = _columns(problem, rows, single)
    curvature = _curvature(problem, weights, evidence, groups, len(squares))
    known = (degrees > LEAST_DEGREES) & (squares > 0.0) & ~given_levels(problem)
    ratio = np.where(known, squares / np.maximum(degrees, LEAST_DEGREES), 1.0)
    right = np.where(known, squares * np.log(ratio), 0.0)
    matrix = curvature[np.ix_(known, known)]
    step = np.zeros(len(squares))
    if known.any():
        matrix = matrix + np.diag(RIDGE * squares[known])
        step[known] = np.clip(np.linalg.solve(matrix, right[known]), -LARGEST_STEP, LARGEST_STEP)
    gain = float(0.5 * np.sum((squares - degrees)[known] * step[known]))
    factors = np.exp(0.5 * step)
    impulses = factors[:rows] if single else np.full(rows, factors[0])
    return LevelStep(impulses, factors[-len(problem.error_sizes) :], np.sqrt(ratio), gain)


def given_levels(problem: Problem) -> Bool[np.ndarray, " g"]:
    """Which levels the error model gives."""
    joints, given = problem.level_names, problem.options.errors.forces
    forces = np.array([False] if joints is None else [name in given for name in joints], bool)
    return np.concatenate([forces, given_sensors(problem)])


def _tallies(evidence: Evidence, reference: float, single: bool) -> tuple[np.ndarray, np.ndarray]:
    """S and D of each group."""
    dynamics, *sensors = evidence.noise
    squares, degrees = np.diagonal(dynamics.squares), np.diagonal(dynamics.freedom)
    if not single:
        squares, degrees = squares.sum(keepdims=True), degrees.sum(keepdims=True)
    squares = np.concatenate([squares, [float(np.trace(one.squares)) for one in sensors]])
    degrees = np.concatenate([degrees, [one.degrees for one in sensors]])
    return squares / reference**2, degrees


def _columns(problem: Problem, rows: int, single: bool) -> Int[np.ndarray, " m"]:
    """Group of each row of a step with one sample."""
    first = np.arange(rows) if single else np.zeros(rows, int)
    sensors = np.repeat(np.arange(len(problem.error_sizes)), problem.error_sizes)
    return np.concatenate([first, sensors + first[-1] + 1])


def _curvature(
    problem: Problem,
    weights: Weights,
    evidence: Evidence,
    groups: Int[np.ndarray, " m"],
    count: int,
) -> Float[np.ndarray, "g g"]:
    """K: residuals' squares less what states and parameters take up of them."""
    total, scores = np.zeros((count, count)), np.zeros((count, len(evidence.labels)))
    rows = problem.plan.node_size
    for index, projection in enumerate(evidence.projections):
        follower = projection.follower()
        repeats = (projection.residual.shape[1] - rows) // (len(groups) - rows)
        member = np.concatenate([groups[:rows], np.tile(groups[rows:], repeats)])
        indicator = (member[:, None] == np.arange(count)).astype(float)
        # An error in part of its group's level counts as far as it is.
        residual = projection.residual * evidence.present[index]
        left = follower.chunks.met(residual[:, :, None] * indicator, follower.factor.nodes)
        halfway = follower.factor.halfway(left)
        total -= np.einsum("kig,kih->gh", halfway, halfway)
        squares = np.sum(residual**2, axis=0) @ indicator
        total += np.diag(squares)
        by_group = np.einsum("kmp,km,mg->gp", projection.rows, residual, indicator, optimize=True)
        scores[:, evidence.places[index]] += by_group
    total -= scores @ evidence.bread(~evidence.at_bound) @ scores.T
    return 0.5 * (total + total.T) / weights.reference**2
