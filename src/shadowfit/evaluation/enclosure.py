"""Do simulations of possible machines enclose what was measured as often as they should? A posterior predictive check.

Of so many draws that one more reading of the same distribution lies between the least and the greatest of theirs with
the probability ``LEVEL`` (among n + 1 exchangeable values each is as often the extreme one), each is simulated over
pieces of a recording, from its estimated states and with its inputs, and gets the sensors' noise. Error bars that are
right enclose 95 % of the samples of a machine that the model describes; what a model lacks is in no draw, and they
enclose less. The states that simulations start from are taken to be known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics import State, Trajectory
from shadowfit.dynamics.placement import closed
from shadowfit.dynamics.simulate import simulate_many
from shadowfit.errors import OpenJointError, SimulationError
from shadowfit.estimation import Estimate
from shadowfit.estimation.posterior import Draws
from shadowfit.evaluation.inputs import recorded_inputs
from shadowfit.evaluation.rollout import fineness, start_states, stepping
from shadowfit.evaluation.series import compare
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording

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
    track, rng = estimate.problem.tracks[0], np.random.default_rng(SEED)
    steps = min(STEPS, track.steps - 2)
    firsts = np.unique(np.linspace(0, track.steps - 1 - steps, PIECES).astype(int)).tolist()
    along = start_states(estimate)
    starts = [along[first] for first in firsts]
    runs = [_residuals(estimate, draws.mechanism(number), starts, firsts, steps) for number in range(len(draws))]
    inside: dict[str, list[Float[np.ndarray, " k"]]] = {name: [] for name in noise}
    for piece in zip(*(run for run in runs if run), strict=True):
        for name, std in noise.items():
            errors = np.array([residuals[name] for residuals in piece])
            spread = errors + std * rng.standard_normal(errors.shape)
            known = np.isfinite(spread).all(axis=0)
            inside[name].append((spread.min(axis=0) <= 0.0)[known] & (spread.max(axis=0) >= 0.0)[known])
    joined = {name: np.concatenate([np.zeros(0, bool), *parts]) for name, parts in inside.items()}
    return {name: float(np.mean(part)) if len(part) else float("nan") for name, part in joined.items()}


def _residuals(
    estimate: Estimate, mechanism: Mechanism, starts: Sequence[State], firsts: Sequence[int], steps: int
) -> list[dict[str, Float[np.ndarray, "n e"]]]:
    """Of each piece, sensor → simulated less measured at the samples; none where the machine cannot be simulated."""
    track, finer = estimate.problem.tracks[0], fineness(estimate)
    how = stepping(estimate, finer)
    signals = recorded_inputs(mechanism, track.recording, how.timestep, (firsts[-1] + steps) * finer)
    inputs = [
        {name: values[first * finer : (first + steps) * finer] for name, values in signals.items()} for first in firsts
    ]

    def simulated(begin: Sequence[State]) -> list[Trajectory]:
        return simulate_many(mechanism, begin, inputs, steps=steps * finer, substeps=1, **dataclasses.asdict(how))

    try:
        try:
            runs = simulated(starts)
        except OpenJointError:
            runs = simulated([closed(mechanism, start) for start in starts])
    except SimulationError:
        return []
    times = track.times(estimate.problem.timestep)[list(firsts)]
    return [_compared(mechanism, track.recording, begin, run) for begin, run in zip(times, runs, strict=True)]


def _compared(
    mechanism: Mechanism, recording: Recording, begin: float, run: Trajectory
) -> dict[str, Float[np.ndarray, "n e"]]:
    readings = {name: np.asarray(values) for name, values in run.readings.items()}
    found = compare(mechanism, recording, begin + np.asarray(run.time), readings)
    return {name: series.residual for name, series in found.items()}
