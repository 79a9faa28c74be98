"""What the studies of real recordings share: calls of the command line that are kept, and figures of rollouts.

Everything that a study finds goes to a folder of its own; what is already there is not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from shadowfit import fit
from shadowfit.evaluation import load_result
from shadowfit.evaluation.rollout import roll_out, start_states
from shadowfit.evaluation.series import SensorSeries, compare
from shadowfit.evaluation.validation import saved_options
from shadowfit.recordings import Recording, read_recording

HERE = Path(__file__).parent
# The impulse that a step may lack is to be about 1e-4 of the typical impulse of a step: this κ for rigs of some 0.1 kg
# and encoders of some 0.1 mrad. docs/record/real-data.md has the measurements behind it.
STATE_WEIGHTS = ("1e4",)
# The studies were made with poses of the bodies and the stepper's own equations.
STEPPER = ("--unknowns", "configuration", "--correction", "none")
# The first state of a rollout in a figure is estimated from this much of the recording [s].
START = 1.0


def folders(name: str) -> tuple[Path, Path]:
    """The folder of a data set, and the one for the study's results, from the command line and SHADOWFIT_DATA."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--data", default=os.environ.get("SHADOWFIT_DATA"), help="default: $SHADOWFIT_DATA")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for results")
    chosen = parser.parse_args()
    if not chosen.data or not (Path(chosen.data) / name).is_dir():
        parser.error(f"there is no folder {name!r} with recordings; give --data, or set SHADOWFIT_DATA")
    (chosen.out / name).mkdir(parents=True, exist_ok=True)
    return Path(chosen.data) / name, chosen.out / name


def run_fit(
    model: str,
    recordings: Sequence[Path],
    free: Sequence[str],
    out: Path,
    *options: str,
    state_weights: Sequence[str] = STATE_WEIGHTS,
) -> dict[str, Any]:
    """``shadowfit fit`` unless its result is there; the contents of ``result.json``.

    Several state weights are taken in turn, each fit from the model that the one before found.
    """
    names = [part for name in free for part in ("--free", name)]
    start = HERE / model
    for place, weight in enumerate(state_weights):
        last = place == len(state_weights) - 1
        folder = out if last else out / f"state-weight-{weight}"
        if not (folder / "result.json").exists():
            _call(
                "fit",
                start,
                *recordings,
                *names,
                *STEPPER,
                "--state-weight",
                weight,
                *options,
                "--out",
                folder,
                "--quiet",
            )
        start = folder / "model.toml"
    return json.loads((out / "result.json").read_text())


def run_validate(result: Path, recordings: Sequence[Path], *options: str) -> list[dict[str, Any]]:
    """``shadowfit validate`` on recordings, kept beside the result; its entries."""
    kept = result / "validations.json"
    if not kept.exists():
        printed = _call("validate", result, *recordings, *options, "--json", "--quiet")
        partial = kept.with_suffix(".part")
        partial.write_text(printed)
        partial.replace(kept)
    return json.loads(kept.read_text())["validations"]


def _call(*arguments: object) -> str:
    command = [str(argument) for argument in arguments]
    print("shadowfit", shlex.join(command), flush=True)
    done = subprocess.run([sys.executable, "-m", "shadowfit", *command], stdout=subprocess.PIPE, text=True, check=False)
    # 1: a fit that did not converge is a result too.
    if done.returncode not in (0, 1):
        raise SystemExit(f"shadowfit {command[0]} failed with status {done.returncode}")
    return done.stdout


def print_validations(entries: Sequence[dict[str, Any]]) -> None:
    """Rollout errors of each recording, and their mean and largest."""
    sensors = list(entries[0]["sensors"])
    errors = np.array([[entry["sensors"][name]["rollout_rmse"] for name in sensors] for entry in entries])
    for entry, row in zip(entries, errors, strict=True):
        print(f"{entry['recording']:50s}", *(f"{name} {error:.4f}" for name, error in zip(sensors, row, strict=True)))
    for label, row in (("mean", errors.mean(axis=0)), ("largest", errors.max(axis=0))):
        print(f"{label:50s}", *(f"{name} {error:.4f}" for name, error in zip(sensors, row, strict=True)))


def rollout(result: Path, recording: Recording, start: float = START) -> dict[str, SensorSeries]:
    """A rollout over a whole recording, from a state that was estimated from its first ``start`` seconds."""
    saved = load_result(result)
    mechanism, options = saved.mechanism(), saved_options(saved)
    beginning = recording.between(recording.time[0], recording.time[0] + start)
    estimate = fit(mechanism, beginning, (), options=options)
    timestep = estimate.problem.timestep
    steps = int(recording.duration / timestep)
    run = roll_out(
        mechanism,
        start_states(estimate)[0],
        recording,
        timestep=timestep,
        steps=steps,
        discretization="spook" if options.discretization == "spook" else "exact",
    )
    readings = {name: np.asarray(values) for name, values in run.readings.items()}
    return compare(mechanism, recording, recording.time[0] + np.asarray(run.time), readings)


def rollout_figure(path: Path, result: Path, recordings: Sequence[Recording], start: float = START) -> None:
    """Measured and simulated readings of some recordings, a column each, with their difference below."""
    series = [rollout(result, recording, start) for recording in recordings]
    sensors = list(series[0])
    read_by = load_result(result).mechanism().sensors
    figure = Figure(figsize=(5.0 * len(recordings), 2.2 * 2 * len(sensors)), layout="constrained")
    axes = figure.subplots(2 * len(sensors), len(recordings), sharex="col", squeeze=False)
    for column, (recording, found) in enumerate(zip(recordings, series, strict=True)):
        for place, name in enumerate(sensors):
            unit = "rad" if getattr(read_by[name], "rotary", True) else "m"
            above, below = axes[2 * place, column], axes[2 * place + 1, column]
            above.plot(recording.time, found[name].measured, color="0.6", linewidth=2.5, label="measured")
            above.plot(recording.time, found[name].predicted, color="C0", linewidth=0.9, label="rollout")
            above.set_ylabel(f"{name} [{unit}]")
            below.plot(recording.time, 1e3 * found[name].residual, color="C3", linewidth=0.8)
            below.axhline(0.0, color="0.5", linewidth=0.5)
            below.set_ylabel(f"error [m{unit}]")
            below.set_title(f"rms {1e3 * found[name].rmse():.1f} m{unit}", fontsize="small")
        axes[0, column].set_title(recording.name, fontsize="small")
        axes[0, column].legend(loc="upper left", fontsize="small")
        axes[-1, column].set_xlabel("time [s]")
    figure.savefig(path, dpi=110)
    print("figure", path)


def read(path: Path, begin: float = -np.inf, end: float = np.inf, **channels: str) -> Recording:
    """A recording between two times [s]."""
    return read_recording(path, channels=channels).between(begin, end)


def consistency(results: Sequence[dict[str, Any]]) -> list[tuple[str, float, float, float]]:
    """For each parameter of several fits: mean, standard deviation over the fits, and the median stated error bar."""
    rows = []
    for name in results[0]["parameters"]:
        values = np.array([result["parameters"][name]["value"] for result in results], float)
        stated = np.array([result["parameters"][name]["std"] for result in results], float)
        known = stated[np.isfinite(stated)]
        rows.append((name, values.mean(), values.std(ddof=1), float(np.median(known)) if known.size else np.nan))
    return rows


def print_consistency(rows: Sequence[tuple[str, float, float, float]]) -> None:
    """The rows as a table for the documentation."""
    print("| parameter | mean | spread | stated | spread/stated |\n|---|---|---|---|---|")
    for name, mean, spread, stated in rows:
        print(f"| `{name}` | {mean:.4g} | {spread:.2g} | {stated:.2g} | {spread / stated:.1f} |")
