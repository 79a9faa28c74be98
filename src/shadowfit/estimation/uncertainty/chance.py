"""How much better a model seems to predict by chance, when the equations of motion are given more weight.

A fit with more weight on the equations of motion than their errors ask for is nearer to the fit of the output error,
and that is what predictions over long windows of the same data measure: they get better even where the errors are white
forces of the estimated levels, and the likelihood knows all there is to know. What white errors do is found by drawing
them, all in the linearised problem. With errors ε of the weighted rows the two fits are off by

    δ = −(TᵀT)⁻¹ Tᵀ ε,

T being the rows of each with its states projected out, and predictions from parameters so far off are compared with
samples of the drawn errors. The weight of the data is the best of many that were tried, so that each draw counts with
the best of the same ones: at far too large weights, where the equations are solved to rounding only, draws predict
badly, and by themselves would let any gain pass. Weight is added where the data gain more than the draws do, by six of
their standard deviations: weight that is added for nothing costs far more than weight that is not, and gains of fits
that are not linear have longer tails than those of draws (three of twenty rotary pendulums with white forces gained
more by three standard deviations, none by six; recorded machines gain several times as much).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.axis_noise import shaping
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.prediction import Motion, linearised, window_errors
from shadowfit.estimation.uncertainty.evidence import Evidence
from shadowfit.records import record

# Draws of the noise.
DRAWS = 19
SEED = 0
# Standard deviations of the draws' gains beyond their mean that chance does not reach.
BEYOND = 6.0


@record(frozen=True)
class Chance:
    """Draws of white noise, and how well models that are fitted to them predict."""

    problem: Problem
    along: Point
    """The most likely motion."""
    motions: list[Motion]
    """Equations along it, of each recording."""
    draws: list[Float[np.ndarray, "n d+m c"]]
    """Errors of impulses [N m s, N s] and of readings, of each recording."""
    before: Float[np.ndarray, " c"]
    """Scores with the most likely weights."""
    best: Float[np.ndarray, " c"]
    """Largest gain of each draw, with any of the weights that were tried."""

    @property
    def gain(self) -> float:
        """The gain in the score that chance does not reach."""
        return float(np.mean(self.best) + BEYOND * np.std(self.best))

    def tried(self, weights: Weights, evidence: Evidence) -> Chance:
        """The same after fits of the draws with other weights."""
        return dataclasses.replace(self, best=np.maximum(self.best, self.gains(weights, evidence)))

    def gains(self, weights: Weights, evidence: Evidence) -> Float[np.ndarray, " c"]:
        """Gains in the score of predictions, from likely to other weights."""
        off = _estimates(self.problem, self.along, evidence, weights, self.draws)
        return self.before - _scores(self.problem, self.motions, self.draws, off)


def drawn(problem: Problem, along: Point, weights: Weights, evidence: Evidence) -> Chance:
    """Draws of noise that is white and of the most likely levels."""
    draws = _draws(problem, along, weights)
    motions = [linearised(problem, along, i) for i in range(len(draws))]
    before = _scores(problem, motions, draws, _estimates(problem, along, evidence, weights, draws))
    return Chance(problem, along, motions, draws, before, np.zeros(len(before)))


def _scores(
    problem: Problem, motions: list[Motion], draws: list[np.ndarray], off: Float[np.ndarray, "p c"]
) -> Float[np.ndarray, " c"]:
    """Scores of the predictions of models that were fitted to the draws, with so large errors of the parameters."""
    # What steps and readings lack where the draws are true and parameters are off.
    recordings = (
        (motion, errors + motion.parameters @ off[problem.parameters.places(i)])
        for i, (motion, errors) in enumerate(zip(motions, draws, strict=True))
    )
    return np.array([prediction.score for prediction in window_errors(problem, recordings)])


def _draws(problem: Problem, along: Point, weights: Weights) -> list[Float[np.ndarray, "n d+m c"]]:
    """Errors of impulses [N m s, N s] and of readings, of the levels of the weights."""
    size = problem.plan.node_size
    impulses = weights.reference * np.linalg.inv(weights.dynamics)
    readings = weights.reference * np.repeat(weights.std, problem.error_sizes)
    draws = []
    for index, track in enumerate(problem.tracks):
        samples = track.fraction.shape[1]
        generator = np.random.default_rng((SEED, index))
        unit = generator.standard_normal((track.steps, size + samples * len(readings), DRAWS))
        shaped = shaping(along, weights, index)
        if shaped is not None:
            unit[:, :size] = shaped.undone(unit[:, :size])
        unit[:, :size] = impulses @ unit[:, :size]
        unit[:, size:] *= np.tile(readings, samples)[:, None]
        draws.append(unit)
    return draws


def _estimates(
    problem: Problem, along: Point, evidence: Evidence, weights: Weights, draws: list[np.ndarray]
) -> Float[np.ndarray, "p c"]:
    """Errors of the parameters that a fit with these weights makes of the draws."""
    size, total = problem.plan.node_size, np.zeros((len(evidence.labels), DRAWS))
    readings = np.repeat(weights.std, problem.error_sizes)
    recordings = zip(evidence.places, evidence.projections, draws, strict=True)
    for index, (place, projection, errors) in enumerate(recordings):
        each = np.tile(readings, (errors.shape[1] - size) // max(len(readings), 1))
        impulses, shaped = weights.dynamics @ errors[:, :size], shaping(along, weights, index)
        impulses = impulses if shaped is None else shaped.times(impulses)
        weighted = np.concatenate([impulses, errors[:, size:] / each[:, None]], axis=1)
        np.add.at(total, place, np.einsum("kmp,kmc->pc", projection.rows, weighted, optimize=True))
    return -evidence.bread(~evidence.at_bound) @ total
