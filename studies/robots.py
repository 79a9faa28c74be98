"""A robot arm in its position loop: fit the first 70 % of a recording, predict the torques of the rest.

Free are all inertial parameters, friction, rotor inertia and the offset of each joint's torque.

Data: `arm_ur10`, from github.com/unisa-acg/inverse-dynamics-solver (BSD-3-Clause).

Run: python studies/robots.py [--data FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import study

SPLIT = "19.25"  # s: 70 % of the recording
# Encoders behind the gears of a robot: some 0.01 mrad.
NOISE = '[sensors."*_position"]\nstd = 1e-5\n'
FREE = ("*.inertial", "*.friction", "*.armature", "*_effort.offset")


def command(*arguments: str) -> str:
    """Run ``shadowfit`` and return what it prints; a fit that did not converge is a result, too."""
    print("shadowfit", shlex.join(arguments), flush=True)
    call = [sys.executable, "-m", "shadowfit", *arguments]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"shadowfit {arguments[0]} failed with status {done.returncode}")
    return done.stdout


def main() -> None:
    data, out = study.folders("arm_ur10")
    model, result = out / "robot.toml", out / "result"
    model.write_text(f'robot = "{(data / "ur10.urdf").resolve()}"\n{NOISE}')
    recording = str(data / "ur10_exciting.csv")
    free = [part for pattern in FREE for part in ("--free", pattern)]
    if not (result / "result.json").exists():
        command("fit", str(model), recording, "--to", SPLIT, *free, "--out", str(result), "--no-report", "--quiet")
    page = str(out / "torques.html")
    printed = command("validate", str(result), recording, "--from", SPLIT, "--json", "--quiet", "--out", page)
    for joint, own in json.loads(printed)["validations"][0]["torques"].items():
        print(f"{joint}: {own['rmse']:.3g} {own['unit']}, {100.0 * own['share']:.1f} %")


if __name__ == "__main__":
    main()
