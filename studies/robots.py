"""Robots with plain defaults: one small model file beside each robot file, the same settings for all.

Arms (Stäubli TX40, Universal Robots UR10, Franka Panda) are fitted on the first 70 % of a recording, with all inertial
numbers, friction, rotor inertias and torque offsets free; the error is that of the torques along the motion of the
rest. The legs of a Unitree Go2, of which only targets of their position loops were recorded, are fitted on both halves
of a recording. Base parameters, bars of the halves and least squares beside them: docs/scoreboard.md.

Data: `arm_tx40` from github.com/thanhndv212/figaroh-plus (Apache-2.0), `arm_ur10` and `arm_panda` from
github.com/unisa-acg/inverse-dynamics-solver (BSD-3-Clause), `legs_go2` from
github.com/iit-DLSLab/sim2real-robot-identification (BSD-3-Clause).

Run: python studies/robots.py [--data FOLDER] [--out FOLDER] [panda tx40 ur10 ur10-bag go2]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.files import FOLDERS_VARIABLE

HERE = Path(__file__).parent
# Inputs of an arm are its measured torques, which go on between samples.
ARM = 'drive = "torque"\n\n[inputs."*_effort"]\nhold = "linear"\n\n[sensors."*_position"]\n'
# Encoders are good to some 0.1 mrad.
ENCODERS = f"{ARM}std = 1e-4\n"
ARM_FREE = ("*.inertial", "*.friction", "*.armature", "*_effort.offset")
# Motor 6 of the TX40 also turns with axis 5: its friction and rotor act on both.
COUPLED = f"{ENCODERS}\n[shafts.motor_6]\njoint_5.ratio = 1.0\njoint_6.ratio = 1.0\n"
# The motors' position loops, with the gains that PROVENANCE states.
LEGS = 'weld = "base"\ndrive = "position"\n\n[joints."*".motor]\nkp = 20.0\nkd = 1.5\n'
LEGS_FREE = ("*.friction", "*.armature", "*_target.delay", "*_position.offset")


@dataclasses.dataclass(frozen=True)
class Robot:
    """Files of a robot within the folder of the data, and where its recording is cut [s]."""

    says: str
    file: str
    recording: str
    split: str
    overlay: str = ENCODERS
    free: tuple[str, ...] = ARM_FREE
    channels: tuple[str, ...] = ()
    """Columns that are not called like the joints."""
    reference: str | None = None
    """Name in ``benchmarks/arm.py``."""
    published: str | None = None
    """Published base parameters."""


TX40_COLUMNS = tuple(
    f"joint_{i}_{kind}={column}{i}" for i in range(1, 7) for kind, column in (("position", "q"), ("effort", "tau"))
)
ROBOTS = {
    "panda": Robot(
        "Franka Panda, seven axes, torques read",
        "arm_panda/panda_nohand.xml",
        "arm_panda/panda_exciting.csv",
        "16.94",
        reference="panda",
    ),
    "tx40": Robot(
        "Stäubli TX40, six axes, a motor that turns with two of them",
        "arm_tx40/tx40.urdf",
        "arm_tx40/tx40_exciting.csv",
        "6.3",
        COUPLED,
        channels=TX40_COLUMNS,
        reference="tx40",
        published="arm_tx40/published_base_parameters.txt",
    ),
    "ur10": Robot(
        "Universal Robots UR10, six axes, torques read",
        "arm_ur10/ur10.urdf",
        "arm_ur10/ur10_exciting.csv",
        "19.25",
        reference="ur10",
    ),
    "ur10-bag": Robot(
        "Universal Robots UR10, read from its bag",
        "arm_ur10/ur10.urdf",
        "arm_ur10/ur10_exciting_trajectory.db3",
        "19.25",
        reference="ur10",
    ),
    "go2": Robot(
        "legs of a Unitree Go2, targets read", "legs_go2/go2.xml", "legs_go2/go2_in_air.csv", "11.745", LEGS, LEGS_FREE
    ),
}


def command(*arguments: str) -> str:
    """Run ``shadowfit`` and return what it prints; a fit that did not converge is a result, too."""
    print("shadowfit", shlex.join(arguments), flush=True)
    call = [sys.executable, "-m", "shadowfit", *arguments]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"shadowfit {arguments[0]} failed with status {done.returncode}")
    return done.stdout


def fitted(robot: Robot, data: Path, folder: Path, *window: str) -> dict[str, Any]:
    """``shadowfit fit`` unless its result is there; the contents of ``result.json``."""
    model = folder.parent / "robot.toml"
    os.environ[FOLDERS_VARIABLE] = str(data.resolve())
    model.write_text(f'robot = "{(data / robot.file).resolve()}"\n{robot.overlay}')
    if not (folder / "result.json").exists():
        free = [part for pattern in robot.free for part in ("--free", pattern)]
        columns = [part for column in robot.channels for part in ("--channel", column)]
        recording = str(data / robot.recording)
        command("fit", str(model), recording, *window, *free, *columns, "--out", str(folder), "--quiet")
    return json.loads((folder / "result.json").read_text())


def arm(name: str, robot: Robot, data: Path, out: Path) -> None:
    """Torque error of the rest of a recording, and a figure."""
    from shadowfit.evaluation import load_result, validate  # noqa: PLC0415
    from shadowfit.evaluation.torques import whole_share  # noqa: PLC0415
    from shadowfit.recordings import read_recording  # noqa: PLC0415

    result = fitted(robot, data, out / "fit", "--to", robot.split)
    columns = dict(column.split("=") for column in robot.channels)
    recording = read_recording(data / robot.recording, channels=columns).between(float(robot.split), np.inf)
    torques = validate(load_result(out / "fit"), recording)[0].torques
    print(f"{name}: {result['status']}, torques of the rest to {100.0 * whole_share(torques):.2f} %", flush=True)
    draw(out.parent / f"robots-{name}.png", torques)


def draw(path: Path, torques: dict[str, Any]) -> None:
    """Measured and predicted torque of each joint."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9.0, 1.3 * len(torques)), layout="constrained")
    axes = figure.subplots(len(torques), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (name, own) in zip(axes, torques.items(), strict=True):
        axis.plot(own.time, own.measured, color="0.6", linewidth=2.0, label="measured")
        axis.plot(own.time, own.predicted, color="C0", linewidth=0.9, label="predicted")
        axis.set_ylabel(own.unit)
        axis.set_title(f"{name}: {own.rmse:.2g} {own.unit}, {100.0 * own.share:.1f} %", fontsize="small", loc="left")
    axes[0].legend(loc="upper right", fontsize="small", ncols=2)
    axes[-1].set_xlabel("time [s]")
    figure.savefig(path, dpi=100)
    print("figure", path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SHADOWFIT_DATA"), help="default: $SHADOWFIT_DATA")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for results")
    parser.add_argument("robots", nargs="*", default=list(ROBOTS), help=f"of {', '.join(ROBOTS)}")
    chosen = parser.parse_args()
    if not chosen.data:
        parser.error("give --data, or set SHADOWFIT_DATA")
    # Model files name robot files that lie beside the recordings.
    os.environ["SHADOWFIT_FOLDERS"] = chosen.data
    for name in chosen.robots:
        folder = chosen.out.resolve() / name
        (folder / "first").mkdir(parents=True, exist_ok=True)
        (folder / "second").mkdir(exist_ok=True)
        if ROBOTS[name].overlay == LEGS:
            for part, end in (("first", "--to"), ("second", "--from")):
                fitted(ROBOTS[name], Path(chosen.data), folder / part / "fit", end, ROBOTS[name].split)
        else:
            arm(name, ROBOTS[name], Path(chosen.data), folder)


if __name__ == "__main__":
    main()
