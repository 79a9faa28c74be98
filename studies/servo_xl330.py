"""Dynamixel XL330 on a pendulum bench: fit all gains but one, simulate the one that was left out in closed loop.

Data: `servo_xl330_bam`, from github.com/Rhoban/bam (Apache-2.0).

Every gain of 100, 400 and 800 is left out in turn, then all are fitted, and once more with the weight's mass free and
the winding held. Simulations start from the first sample at rest and know nothing but target, gain, supply, temperature
and whether there was torque.

Run: python studies/servo_xl330.py --data FOLDER [--out FOLDER]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import study

from shadowfit import place, read_model, simulate
from shadowfit.recordings import read_recording

GAINS = ("100", "400", "800")
# The built-in model holds what this study found: its fits start away from that.
WINDING = {"horn.servo.torque_constant": 0.35, "horn.servo.resistance": 3.5}
OTHERS = {
    "horn.servo.heating": 0.004,
    "horn.servo.shaft_inertia": 1.7e-3,
    "horn.viscous": 5e-3,
    "horn.coulomb": 0.01,
    "horn.load_loss": 0.1,
}
START = [f"{name}={value}" for name, value in (WINDING | OTHERS).items()]
TIMESTEP = 0.005


def fitted(model: Path | str, recordings: Sequence[Path], free: Sequence[str], out: Path) -> dict[str, Any]:
    """``shadowfit fit`` with plain defaults unless its result is there; the contents of ``result.json``."""
    if not (out / "result.json").exists():
        gains = ",".join(gain_of(path) for path in recordings)
        names = [part for name in free for part in ("--free", name)]
        command = ["fit", model, *recordings, "--channel", f"kp={gains}", *names, "--out", out, "--quiet"]
        print("shadowfit", *command, flush=True)
        subprocess.run([sys.executable, "-m", "shadowfit", *map(str, command)], check=False, stdout=subprocess.DEVNULL)
    return json.loads((out / "result.json").read_text())


def gain_of(path: Path) -> str:
    """The gain that a recording's name tells."""
    return path.stem.rpartition("kp")[2]


def closed_loop_error(model: Path, path: Path) -> float:
    """Mean error of a simulation of a whole recording [rad]."""
    mechanism, measured = read_model(model), read_recording(path)
    times = np.arange(measured.time[0], measured.time[-1], TIMESTEP)
    last = np.searchsorted(measured.time, times, side="right") - 1
    told = {
        name: np.interp(times, measured.time, measured.channels[name])
        if part.hold == "linear"
        else measured.channels[name][last]
        for name, part in mechanism.inputs.items()
        if name != "kp"
    }
    start = place(mechanism, {"horn": float(measured.channels["q"][0]) - mechanism.get("q.offset")})
    run = simulate(mechanism, start, told | {"kp": float(gain_of(path))}, timestep=TIMESTEP, steps=len(times))
    simulated = np.ravel(run.readings["q"])[: len(times)]
    return float(np.mean(np.abs(np.interp(times, measured.time, measured.channels["q"]) - simulated)))


def main() -> None:
    data, out = study.folders("servo_xl330_bam")
    files = {gain: sorted(data.glob(f"*_kp{gain}.csv")) for gain in GAINS}
    results = {}
    for left_out in GAINS:
        train = [path for gain in GAINS if gain != left_out for path in files[gain]]
        results[f"without {left_out}"] = fitted("xl330", train, START, out / f"without-{left_out}")
        errors = [1e3 * closed_loop_error(out / f"without-{left_out}" / "model.toml", path) for path in files[left_out]]
        each = ", ".join(f"{path.stem} {error:.1f}" for path, error in zip(files[left_out], errors, strict=True))
        print(f"gain {left_out} left out: mean error {np.mean(errors):.1f} mrad ({each})", flush=True)
    every = [path for gain in GAINS for path in files[gain]]
    results["all"] = fitted("xl330", every, START, out / "all")
    results["all, mass free"] = fitted(out / "all" / "model.toml", every, [*OTHERS, "weight.mass"], out / "mass")
    for label, result in results.items():
        told = {**result["parameters"], **result["derived"]}
        print(f"{label}: {result['verdict']}")
        for name in [*WINDING, *result["derived"], "weight.mass"]:
            if name in told:
                print(f"  {name} = {told[name]['value']:.4g} ± {told[name]['std']:.2g} {told[name]['unit']}")


if __name__ == "__main__":
    main()
