"""Do simulations of possible machines enclose what was measured as often as they should? A posterior predictive check.

Of so many draws that one more reading of the same distribution lies between the least and the greatest of theirs with
the probability ``LEVEL`` (among n + 1 exchangeable values each is as often the extreme one), each is simulated over
pieces of a recording, from its estimated states and with its inputs, and gets the sensors' noise. Error bars that are
right enclose 95 % of the samples of a machine that the model describes; what a model lacks is in no draw, and they
enclose less. The states that simulations start from are taken to be known.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate
from shadowfit.estimation.posterior import Draws
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.series import compare

LEVEL = 0.95
# Draws whose extremes are such bands.
DRAWS = round(2.0 / (1.0 - LEVEL)) - 1
# Pieces of a recording, spread evenly over it, and their steps.
PIECES, STEPS = 10, 100
# Of the sensors' noise, another one than that of the draws.
SEED = 1


def enclosed(estimate: Estimate, draws: Draws, noise: Mapping[str, float]) -> dict[str, float]:
    """Sensor → part of a recording's samples that lie between simulations of draws; NaN where none was compared.

    Args:
        estimate: the states along the recording, its only one.
        draws: possible machines, as many as ``DRAWS``.
        noise: standard deviation of each sensor's noise, in its unit.
    """
    track = estimate.problem.tracks[0]
    steps = min(STEPS, track.steps - 2)
    rng = np.random.default_rng(SEED)
    inside: dict[str, list[Float[np.ndarray, " k"]]] = {name: [] for name in noise}
    for first in np.unique(np.linspace(0, track.steps - 1 - steps, PIECES).astype(int)).tolist():
        runs = [_residuals(estimate, draws, number, first, steps) for number in range(len(draws))]
        for name, std in noise.items():
            errors = np.array([run[name] for run in runs if name in run])
            spread = errors + std * rng.standard_normal(errors.shape)
            known = np.isfinite(spread).all(axis=0) if len(spread) else np.zeros(0, bool)
            inside[name].append((spread.min(axis=0) <= 0.0)[known] & (spread.max(axis=0) >= 0.0)[known])
    joined = {name: np.concatenate(parts) for name, parts in inside.items()}
    return {name: float(np.mean(part)) if len(part) else float("nan") for name, part in joined.items()}


def _residuals(
    estimate: Estimate, draws: Draws, number: int, first: int, steps: int
) -> dict[str, Float[np.ndarray, "n e"]]:
    """Sensor → simulated less measured, at the samples of a piece; none where the machine cannot be simulated."""
    track, finer, mechanism = estimate.problem.tracks[0], fineness(estimate), draws.mechanism(number)
    try:
        run = roll_out(
            mechanism,
            start_states(estimate)[first],
            track.recording,
            stepping(estimate, finer),
            steps=steps * finer,
            first_step=first * finer,
        )
    except ShadowfitError:
        return {}
    time = track.times(estimate.problem.timestep)[first] + np.asarray(run.time)
    readings = {name: np.asarray(values) for name, values in run.readings.items()}
    return {name: one.residual for name, one in compare(mechanism, track.recording, time, readings).items()}
