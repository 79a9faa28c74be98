"""How much better a model seems to predict by chance, when the equations of motion are given more weight.

A fit with more weight on the equations of motion than their errors ask for is nearer to the fit of the output error,
and that is what predictions over long windows of the same data measure: they get better even where the errors are white
forces of the estimated levels, and the likelihood knows all there is to know. What white errors do is found by drawing
them, all in the linearised problem. With errors ε of the weighted rows the two fits are off by

    δ = −(TᵀT)⁻¹ Tᵀ ε,

T being the rows of each with its states projected out, and predictions from parameters so far off are compared with
samples of the drawn errors. Weight is added where the data show a larger gain than any draw.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.prediction import linearised, window_errors
from shadowfit.estimation.uncertainty.evidence import Evidence

# Draws of the noise. Of so many and the data themselves, the data are the extreme one by chance in one of twenty cases.
DRAWS = 19
SEED = 0


def gains_by_chance(
    problem: Problem, along: Point, likely: tuple[Weights, Evidence], chosen: tuple[Weights, Evidence]
) -> Float[np.ndarray, " draws"]:
    """Gains in the score of predictions, from likely to chosen weights, where noise is white and of likely levels."""
    draws = _draws(problem, likely[0])
    motions = [linearised(problem, along, i) for i in range(len(draws))]
    scores = []
    for weights, evidence in (likely, chosen):
        off = _estimates(problem, evidence, weights, draws)
        # What steps and readings lack where the draws are true and parameters are off.
        recordings = (
            (motion, drawn + motion.parameters @ off[problem.parameters.places(i)])
            for i, (motion, drawn) in enumerate(zip(motions, draws, strict=True))
        )
        scores.append([found.score for found in window_errors(problem, recordings)])
    return np.array(scores[0]) - np.array(scores[1])


def _draws(problem: Problem, weights: Weights) -> list[Float[np.ndarray, "n d+m c"]]:
    """Errors of impulses [N m s, N s] and of readings, of the levels of the weights."""
    size = problem.plan.node_size
    impulses = weights.reference * np.linalg.inv(weights.dynamics)
    readings = weights.reference * np.repeat(weights.std, problem.error_sizes)
    found = []
    for index, track in enumerate(problem.tracks):
        samples = track.fraction.shape[1]
        generator = np.random.default_rng((SEED, index))
        unit = generator.standard_normal((track.steps, size + samples * len(readings), DRAWS))
        unit[:, :size] = impulses @ unit[:, :size]
        unit[:, size:] *= np.tile(readings, samples)[:, None]
        found.append(unit)
    return found


def _estimates(problem: Problem, evidence: Evidence, weights: Weights, draws: list[np.ndarray]) -> np.ndarray:
    """Errors of the parameters that a fit with these weights makes of the draws, shape (p, c)."""
    size, total = problem.plan.node_size, np.zeros((len(evidence.labels), DRAWS))
    readings = np.repeat(weights.std, problem.error_sizes)
    for place, projection, drawn in zip(evidence.places, evidence.projections, draws, strict=True):
        each = np.tile(readings, (drawn.shape[1] - size) // max(len(readings), 1))
        weighted = np.concatenate([weights.dynamics @ drawn[:, :size], drawn[:, size:] / each[:, None]], axis=1)
        np.add.at(total, place, np.einsum("kmp,kmc->pc", projection.rows, weighted, optimize=True))
    return -evidence.bread(~evidence.at_bound) @ total
