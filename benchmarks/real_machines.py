"""Fits of real recordings with plain defaults: do the models predict, and do the error bars hold?

One command for all rigs, and no option that depends on the rig: model files of ``studies/``, ``Options.physical``. Two
tables:

* open-loop simulations over whole recordings, fitted and held out, beside the fit of the output error (the same model
  with next to all weight on the equations of motion, started from the result);
* |difference| / combined standard deviation of fits that should agree: first and second half, repeats, opposite signs,
  and time-steps of 10 ms (or the next that the sampling allows) and a fifth of it; over all parameters that are told.

Run ``python -m benchmarks.real_machines --data FOLDER [--rigs qube single ...]`` (or set SHADOWFIT_DATA): some minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from benchmarks.rigs.real import Rig, rigs
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.series import compare
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

# Weight of the output-error fit, relative to that of the result (in κ).
OUTPUT_ERROR = 1e8


def fitted(rig: Rig, recordings: Sequence[Recording], timestep: float | None = None) -> Estimate:
    """A fit with plain defaults."""
    mechanism = rig.mechanism()
    options = dataclasses.replace(Options.physical(mechanism), timestep=timestep)
    return fit(mechanism, list(recordings), list(rig.free), options=options)


def output_error(estimate: Estimate) -> Estimate:
    """The same model with (next to) all weight on the equations of motion, from the result on."""
    weights = estimate.weights.scaled(OUTPUT_ERROR)
    settings = LevenbergMarquardt().warm()
    point = estimate.outcome.linearisation.point
    return dataclasses.replace(
        estimate, weights=weights, outcome=minimise_corrected(estimate.problem, point, weights, settings)
    )


def rollouts(estimate: Estimate, recording: int) -> dict[str, float]:
    """Root mean square error of each sensor in an open-loop simulation from the first estimated state."""
    finer, track = fineness(estimate), estimate.problem.tracks[recording]
    mechanism = estimate.mechanism(recording)
    first = jax.tree.map(lambda x: x[0], start_states(estimate, recording))
    how = stepping(estimate, finer)
    trajectory = roll_out(mechanism, first, track.recording, how, steps=(track.steps - 1) * finer)
    readings = {name: np.asarray(values)[::finer] for name, values in trajectory.readings.items()}
    times = np.asarray(track.times(estimate.problem.timestep))[: len(next(iter(readings.values())))]
    return {name: own.rmse() for name, own in compare(mechanism, track.recording, times, readings).items()}


def held_out(rig: Rig, estimate: Estimate, recording: Recording) -> dict[str, float]:
    """The same on a recording that the fit has not seen: only its states are estimated."""
    options = dataclasses.replace(
        estimate.problem.options, state_weight=estimate.state_weight, impulse_covariance=estimate.impulse_variances
    )
    return rollouts(fit(estimate.mechanism(), recording, (), options=options), 0)


def differences(first: Estimate, second: Estimate) -> list[tuple[str, float]]:
    """|difference|/combined standard deviation of the parameters that both fits tell."""
    pairs = zip(first.parameters, second.parameters, strict=True)
    return [
        (a.name, abs(a.value - b.value) / float(np.hypot(a.std, b.std)))
        for a, b in pairs
        if not (a.at_bound or b.at_bound) and a.identifiable and b.identifiable and np.isfinite(a.std + b.std)
    ]


def _milli(errors: dict[str, float]) -> str:
    return ", ".join(f"{name} {1e3 * value:.3g}" for name, value in errors.items())


def study(name: str, rig: Rig) -> list[tuple[str, str, float]]:
    """Print the rig's rollouts, and give (comparison, parameter, difference)."""
    recordings = [rig.read(path) for path in rig.fitted]
    began = time.perf_counter()
    estimate = fitted(rig, recordings)
    seconds = time.perf_counter() - began
    choice = estimate.noise_choice
    added = 1.0 if choice is None else choice.added_weight
    print(f"\n## {name}: {estimate.status.name.lower()}, {estimate.iterations} iterations, {seconds:.1f} s")
    print(
        f"weight added: {added:.0e}; unexplained { ({k: float(f'{v:.3g}') for k, v in estimate.unexplained.items()}) }"
    )
    limit = output_error(estimate)
    for index, path in enumerate(rig.fitted):
        ours, best = rollouts(estimate, index), rollouts(limit, index)
        print(f"fitted   {Path(path).stem}: {_milli(ours)} | output error {_milli(best)} [1e-3 of the unit]")
    for path in rig.held_out:
        print(f"held out {Path(path).stem}: {_milli(held_out(rig, estimate, rig.read(path)))}", flush=True)
    rows = [
        ("time-step", *row) for row in differences(estimate, fitted(rig, recordings, estimate.problem.timestep / 5))
    ]
    for kind, *paths in rig.pairs:
        pair = [fitted(rig, [rig.read(path)]) for path in paths]
        rows += [(kind, *row) for row in differences(*pair)]
    first = recordings[0]
    middle = first.time[0] + 0.5 * first.duration
    pair = [fitted(rig, [first.between(*span)]) for span in ((-np.inf, middle), (middle, np.inf))]
    rows += [("halves", *row) for row in differences(*pair)]
    for kind, parameter, value in rows:
        print(f"  {kind:10} {parameter:36} {value:.2f}", flush=True)
    return rows


def main() -> None:
    """Run all rigs and print what they say together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SHADOWFIT_DATA"), help="default: $SHADOWFIT_DATA")
    parser.add_argument("--rigs", nargs="*", help="some of the rigs only")
    arguments = parser.parse_args()
    if arguments.data:
        os.environ["SHADOWFIT_DATA"] = arguments.data
    else:
        parser.error("there are no recordings; give --data, or set SHADOWFIT_DATA")
    start_jax()
    rows: list[tuple[str, str, float]] = []
    for name, rig in rigs().items():
        if not arguments.rigs or name in arguments.rigs:
            rows += study(name, rig)
    print("\n## |difference| / combined standard deviation")
    for kind in (*sorted({row[0] for row in rows}), "all"):
        values = np.array([value for own, _, value in rows if kind in (own, "all")])
        above = np.mean(values < 3.0)
        print(f"{kind:10} n = {len(values):3d}, median {np.median(values):.2f}, below 3: {100 * above:.0f} %")


if __name__ == "__main__":
    main()
