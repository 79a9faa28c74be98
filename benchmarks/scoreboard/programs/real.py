"""Fits of recordings with plain defaults: how well their models simulate, and pairs of fits that should agree.

A simulation starts at the first estimated state and has nothing but the recorded inputs. Its yardstick is the output
error of the same model: next to all weight on the equations of motion, from the result on. Pairs are halves of a
recording, repeats, opposite signs, and the time-step that is chosen with a fifth of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.rigs import real, stand_ins
from benchmarks.rigs.rig import Rig
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, outcome
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.series import compare
from shadowfit.recordings import Recording

SCENARIOS: dict[str, Rig] = {**real.rigs(), **stand_ins.RIGS}
# One of each kind, and those with repeats: the rest takes more time than it adds.
QUICK = ("qube", "cartpole", "single", "dfki", "decay-b", "drive", "play")
ALL, FINER = "all recordings", "a fifth of the time-step"
HALVES = {"first half": 0, "second half": 1}
ALONE = "alone "
# Weight of the output-error fit, relative to that of the result (in κ).
OUTPUT_ERROR = 1e8


def cases(form: Form) -> list[Case]:
    """For each rig the fit, its halves, its time-steps, and each recording that is compared with another one."""
    return [
        Case("real", name, variant, needs_data=rig.needs_data)
        for name, rig in SCENARIOS.items()
        if form == "full" or name in QUICK
        for variant in (ALL, FINER, *HALVES, *(ALONE + Path(own).stem for own in _compared(rig)))
    ]


def _compared(rig: Rig) -> list[str]:
    return list(dict.fromkeys(name for _, *pair in rig.pairs for name in pair))


def run(case: Case) -> dict[str, Any]:
    """One fit, with the names of the pairs that it belongs to."""
    rig = SCENARIOS[case.scenario]
    recordings = [rig.read(name) for name in rig.fitted]
    if case.variant == ALL:
        found = fitted(rig.mechanism(), recordings, rig.free)
        return {
            **outcome(found, rig.truth),
            "pairs": [["time-step", FINER]],
            "simulated": simulated(rig, found.estimate),
        }
    if case.variant == FINER:
        chosen = fitted(rig.mechanism(), recordings, rig.free).estimate.problem.timestep
        options = Options(timestep=chosen / 5.0)
        return {**outcome(fitted(rig.mechanism(), recordings, rig.free, options)), "pairs": [["time-step", FINER]]}
    if case.variant in HALVES:
        half = halves(recordings[0])[HALVES[case.variant]]
        return {**outcome(fitted(rig.mechanism(), half, rig.free)), "pairs": [["halves", "halves"]]}
    name = next(own for own in _compared(rig) if Path(own).stem == case.variant.removeprefix(ALONE))
    pairs = [[kind, " and ".join(pair)] for kind, *pair in rig.pairs if name in pair]
    return {**outcome(fitted(rig.mechanism(), rig.read(name), rig.free)), "pairs": pairs}


def halves(recording: Recording) -> Sequence[Recording]:
    """The two halves of a recording."""
    middle = recording.time[0] + 0.5 * recording.duration
    return recording.between(-np.inf, middle), recording.between(middle, np.inf)


def simulated(rig: Rig, estimate: Estimate) -> list[dict[str, Any]]:
    """Errors of simulations [unit of the sensor] of each recording: of the fit, and of the output error."""
    best, rows = output_error(estimate), []
    for place, name in enumerate(rig.fitted):
        errors = rollouts(estimate, place), rollouts(best, place)
        rows += [_row("fitted", name, sensor, *(own[sensor] for own in errors)) for sensor in errors[0]]
    for name in rig.held_out:
        recording = rig.read(name)
        errors = held_out(estimate, estimate, recording), held_out(best, estimate, recording)
        rows += [_row("held out", name, sensor, *(own[sensor] for own in errors)) for sensor in errors[0]]
    return rows


def _row(kind: str, recording: str, sensor: str, error: float, best: float) -> dict[str, Any]:
    return {"kind": kind, "recording": Path(recording).stem, "sensor": sensor, "error": error, "output error": best}


def output_error(estimate: Estimate) -> Estimate:
    """The same model with (next to) all weight on the equations of motion, from the result on."""
    weights = estimate.weights.scaled(OUTPUT_ERROR)
    point = estimate.outcome.linearisation.point
    outcome = minimise_corrected(estimate.problem, point, weights, LevenbergMarquardt().warm())
    return dataclasses.replace(estimate, weights=weights, outcome=outcome)


def rollouts(estimate: Estimate, recording: int) -> dict[str, float]:
    """Root mean square error of each sensor in a simulation from the first estimated state."""
    finer, track = fineness(estimate), estimate.problem.tracks[recording]
    mechanism = estimate.mechanism(recording)
    first = jax.tree.map(lambda x: x[0], start_states(estimate, recording))
    how = stepping(estimate, finer)
    trajectory = roll_out(mechanism, first, track.recording, how, steps=(track.steps - 1) * finer)
    readings = {name: np.asarray(values)[::finer] for name, values in trajectory.readings.items()}
    times = np.asarray(track.times(estimate.problem.timestep))[: len(next(iter(readings.values())))]
    return {name: own.rmse() for name, own in compare(mechanism, track.recording, times, readings).items()}


def held_out(model: Estimate, levels: Estimate, recording: Recording) -> dict[str, float]:
    """The same on a recording that a model has not seen: its states are estimated with the levels of a fit."""
    options = dataclasses.replace(
        levels.problem.options, state_weight=levels.state_weight, impulse_covariance=levels.impulse_variances
    )
    return rollouts(fit(model.mechanism(), recording, (), options=options), 0)
