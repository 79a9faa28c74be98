"""Fits of real recordings with plain defaults: do the models predict, and do the error bars hold?

One command for all rigs, and no option that depends on the rig: model files of ``studies/``, ``Options.physical``. Two
tables:

* open-loop simulations over whole recordings, fitted and held out, beside the fit of the output error (the same model
  with next to all weight on the equations of motion, started from the result);
* |difference| / combined standard deviation of fits that should agree: first and second half, repeats, opposite signs,
  and time-steps of 10 ms (or the next that the sampling allows) and a fifth of it; over all parameters that are told.

Run ``python benchmarks/real_machines.py --data FOLDER [--rigs qube single ...]`` (or set SHADOWFIT_DATA): some minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.series import compare
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_recording
from shadowfit.runtime import start_jax

STUDIES = Path(__file__).resolve().parents[1] / "studies"
# Weight of the output-error fit, relative to that of the result (in κ).
OUTPUT_ERROR = 1e8


@dataclasses.dataclass(frozen=True)
class Rig:
    """A machine: its model file, what is free, and its recordings."""

    model: str
    free: tuple[str, ...]
    fitted: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    """Kind and two recordings whose fits should agree."""
    begin: float = -np.inf
    end: float = np.inf
    channels: tuple[tuple[str, str], ...] = ()
    halves: bool = True

    def read(self, folder: Path, name: str, begin: float | None = None, end: float | None = None) -> Recording:
        recording = read_recording(folder / name, channels=dict(self.channels))
        first, last = self.begin if begin is None else begin, self.end if end is None else end
        return recording.between(first, last) if np.isfinite(first) or np.isfinite(last) else recording


def _qube(sign: str, number: int) -> str:
    return f"furuta_qube2/qq_chirp_10to0Hz_{sign}1.5V_250Hz_10s_{number}.csv"


def _cart(sign: str, number: int) -> str:
    return f"cartpole_quanser/qcp_chirp_3to0Hz_{sign}3.5V_250Hz_{number}.csv"


def _pairs(name: Callable[[str, int], str]) -> tuple[tuple[str, str, str], ...]:
    repeats = [("repeats", name(sign, 1), name(sign, 2)) for sign in ("pos", "neg")]
    return (*repeats, ("signs", name("pos", 0), name("neg", 0)), ("signs", name("pos", 3), name("neg", 3)))


def rigs() -> dict[str, Rig]:
    """The rigs of the shared recordings; which numbers are free is that of the studies."""
    sys.path.insert(0, str(STUDIES))
    import cartpole  # noqa: PLC0415
    import double_pendulum_dfki  # noqa: PLC0415
    import double_pendulum_uw  # noqa: PLC0415
    import qube  # noqa: PLC0415
    import single_pendulum  # noqa: PLC0415

    signs, later = ("pos", "neg"), (1, 2, 3, 4)
    swing, double = "pendulum_single_uw/single_free_swing_500Hz.csv", "pendulum_double_uw/double_free_swing_500Hz.csv"
    plain = tuple(name for name in single_pendulum.FREE if "stribeck" not in name)
    driven = tuple(f"double_pendulum_dfki/A0_traj{i}.csv" for i in ("00", "04"))
    return {
        "qube": Rig(
            "qube.toml",
            tuple(qube.FREE),
            (_qube("pos", 0), _qube("neg", 0)),
            tuple(_qube(sign, i) for i in later for sign in signs),
            _pairs(_qube),
        ),
        "cartpole": Rig(
            "cartpole.toml",
            tuple(cartpole.FREE),
            (_cart("pos", 0), _cart("neg", 0)),
            tuple(_cart(sign, i) for i in later for sign in signs),
            _pairs(_cart),
            begin=cartpole.BEGIN,
            end=cartpole.END,
        ),
        "single": Rig("single_pendulum.toml", tuple(single_pendulum.FREE), (swing,)),
        "single, no Stribeck": Rig("single_pendulum.toml", plain, (swing,)),
        "double": Rig("double_pendulum_uw.toml", tuple(double_pendulum_uw.FREE), (double,), end=20.0),
        "double, calm": Rig("double_pendulum_uw.toml", tuple(double_pendulum_uw.FREE), (double,), begin=40.0),
        "dfki": Rig(
            "double_pendulum_dfki.toml",
            tuple(double_pendulum_dfki.FREE),
            driven,
            channels=tuple(double_pendulum_dfki.TORQUES.items()),
            pairs=(("repeats", *driven),),
        ),
    }


def fitted(rig: Rig, recordings: Sequence[Recording], timestep: float | None = None) -> Estimate:
    """A fit with plain defaults."""
    mechanism = load_model(str(STUDIES / rig.model)).mechanism
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


def study(name: str, rig: Rig, folder: Path) -> list[tuple[str, str, float]]:
    """Print the rig's rollouts, and give (comparison, parameter, difference)."""
    recordings = [rig.read(folder, path) for path in rig.fitted]
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
        print(f"held out {Path(path).stem}: {_milli(held_out(rig, estimate, rig.read(folder, path)))}", flush=True)
    rows = [
        ("time-step", *row) for row in differences(estimate, fitted(rig, recordings, estimate.problem.timestep / 5))
    ]
    for kind, *paths in rig.pairs:
        pair = [fitted(rig, [rig.read(folder, path)]) for path in paths]
        rows += [(kind, *row) for row in differences(*pair)]
    if rig.halves:
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
    if not arguments.data:
        parser.error("there are no recordings; give --data, or set SHADOWFIT_DATA")
    start_jax()
    rows: list[tuple[str, str, float]] = []
    for name, rig in rigs().items():
        if not arguments.rigs or name in arguments.rigs:
            rows += study(name, rig, Path(arguments.data))
    print("\n## |difference| / combined standard deviation")
    for kind in (*sorted({row[0] for row in rows}), "all"):
        values = np.array([value for own, _, value in rows if kind in (own, "all")])
        above = np.mean(values < 3.0)
        print(f"{kind:10} n = {len(values):3d}, median {np.median(values):.2f}, below 3: {100 * above:.0f} %")


if __name__ == "__main__":
    main()
