"""Robots with plain defaults: one small model file beside each robot file, the same settings for all.

Arms (Stäubli TX40, Universal Robots UR10, Franka Panda) are fitted on the first 70 % of a recording, with all inertial
numbers, friction, rotor inertias and torque offsets free; the error is that of the torques along the motion of the
rest, beside least squares on filtered derivatives (`benchmarks/arm.py`; needs Pinocchio). The legs of a Unitree Go2, of
which only targets of their position loops were recorded, are fitted on both halves of a recording, and compared.

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
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

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
    "panda": Robot("arm_panda/panda_nohand.xml", "arm_panda/panda_exciting.csv", "16.94", reference="panda"),
    "tx40": Robot(
        "arm_tx40/tx40.urdf",
        "arm_tx40/tx40_exciting.csv",
        "6.3",
        COUPLED,
        channels=TX40_COLUMNS,
        reference="tx40",
        published="arm_tx40/published_base_parameters.txt",
    ),
    "ur10": Robot("arm_ur10/ur10.urdf", "arm_ur10/ur10_exciting.csv", "19.25", reference="ur10"),
    "ur10-bag": Robot("arm_ur10/ur10.urdf", "arm_ur10/ur10_exciting_trajectory.db3", "19.25", reference="ur10"),
    "go2": Robot("legs_go2/go2.xml", "legs_go2/go2_in_air.csv", "11.745", LEGS, LEGS_FREE),
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
    model.write_text(f'robot = "{(data / robot.file).resolve()}"\n{robot.overlay}')
    if not (folder / "result.json").exists():
        free = [part for pattern in robot.free for part in ("--free", pattern)]
        columns = [part for column in robot.channels for part in ("--channel", column)]
        recording = str(data / robot.recording)
        command("fit", str(model), recording, *window, *free, *columns, "--out", str(folder), "--quiet")
    return json.loads((folder / "result.json").read_text())


def arm(name: str, robot: Robot, data: Path, out: Path) -> None:
    """Torque errors of the rest of a recording, beside those of least squares, and a figure."""
    from shadowfit.evaluation import load_result, validate  # noqa: PLC0415
    from shadowfit.evaluation.torques import whole_share  # noqa: PLC0415
    from shadowfit.recordings import read_recording  # noqa: PLC0415

    result = fitted(robot, data, out / "fit", "--to", robot.split)
    columns = dict(column.split("=") for column in robot.channels)
    recording = read_recording(data / robot.recording, channels=columns).between(float(robot.split), np.inf)
    torques = validate(load_result(out / "fit"), recording)[0].torques
    seconds = result["seconds"]["total"]
    print(f"{name}: {result['status']} after {result['iterations']} iterations, {seconds:.0f} s")
    print("joint |", " | ".join(torques))
    print("fit, rest [N m] |", " | ".join(f"{own.rmse:.3g}" for own in torques.values()))
    print("of its rms [%] |", " | ".join(f"{100.0 * own.share:.1f}" for own in torques.values()))
    print(f"all together: {100.0 * whole_share(torques):.2f} %", flush=True)
    if robot.reference is not None:
        call = [sys.executable, str(HERE.parent / "benchmarks" / "arm.py"), "--data", str(data), robot.reference]
        subprocess.run(call, check=False)
    if robot.published is not None:
        published_bases(data / robot.published, out / "fit")
    draw(out.parent / f"robots-{name}.png", torques)


def published_bases(file: Path, folder: Path) -> None:
    """Published base parameters beside the same combinations of a fit, with its error bars.

    A line of the file is ``combination, value, relative sd [%], …`` in inertias about the joints (Ixx1), first moments
    (mx1), masses (m1), rotor inertias (Ia1), friction (fv1, fs1) and offsets (off1; on the other side of the equation).
    """
    from shadowfit.evaluation import load_result  # noqa: PLC0415

    saved = load_result(folder)
    start = np.array([saved.summary["parameters"][label]["value"] for label in saved.labels])
    # The authors' numbers are those of the data alone; so are these, without what the file says about bodies.
    known, away = saved.covariance_of_data, saved.values_of_data - start
    distances = []
    print("published combination | published | found | difference in our bars")
    for line in file.read_text().splitlines():
        text, value, spread, *_ = (cell.strip() for cell in line.split(","))
        if not set(re.findall(r"[A-Za-z]+\d", text)) <= set(symbols(dict(zip(saved.labels, start, strict=True)))):
            print(text, "|", value, "| not part of the model |")
            continue

        def combination(numbers: np.ndarray, text: str = text) -> float:
            own = symbols(dict(zip(saved.labels, numbers, strict=True)))
            return sum(
                float(factor.replace(" ", "") or 1) * own[symbol]
                for factor, symbol in re.findall(r"([+-]?\s*[\d.]*)\*?([A-Za-z]+\d)", text)
            )

        steps = 1e-6 * np.maximum(np.abs(start), 1e-3)
        slope = np.array(
            [
                (combination(start + step) - combination(start - step)) / (2.0 * size)
                for size, step in zip(steps, np.diag(steps), strict=True)
            ]
        )
        found, own = combination(start) + float(slope @ away), float(np.sqrt(slope @ known @ slope))
        given = abs(float(value)) * float(spread) / 100.0
        distances.append(abs(found - float(value)) / own)
        print(f"{text} | {value} ± {given:.2g} | {found:.4g} ± {own:.2g} | {distances[-1]:.1f}")
    share = np.mean(np.array(distances) < 3.0)
    print(f"{len(distances)} compared: within 3 of our bars {share:.0%}, median {np.median(distances):.1f}")


def symbols(numbers: dict[str, float]) -> dict[str, float]:
    """Numbers of a TX40 by the symbols of robot identification."""
    found = {}
    for i in range(1, 7):
        mass, com = numbers[f"link_{i}.mass"], np.array([numbers[f"link_{i}.com.{axis}"] for axis in "xyz"])
        about = mass * (com @ com * np.eye(3) - np.outer(com, com))
        for row, column in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            entry = "xyz"[row] + "xyz"[column]
            found[f"I{entry}{i}"] = numbers[f"link_{i}.inertia.{entry}"] + about[row, column]
        found |= {f"m{axis}{i}": mass * own for axis, own in zip("xyz", com, strict=True)}
        found |= {f"m{i}": mass, f"Ia{i}": numbers[f"joint_{i}.motor.shaft_inertia"]}
        found |= {f"fv{i}": numbers[f"joint_{i}.viscous"], f"fs{i}": numbers[f"joint_{i}.coulomb"]}
        found[f"off{i}"] = -numbers[f"joint_{i}_effort.offset"]
    # The published model counts what both joints feel of motor 6 with each of them.
    turned = {name: numbers[f"motor_6.{name}"] for name in ("shaft_inertia", "viscous", "coulomb")}
    for i in (5, 6):
        found[f"Ia{i}"] += turned["shaft_inertia"]
        found[f"fv{i}"] += turned["viscous"]
    return found | {"Iam6": turned["shaft_inertia"], "fvm6": turned["viscous"], "fsm6": turned["coulomb"]}


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


def bar(parameter: dict[str, Any]) -> float:
    """Standard deviation; of a parameter on its bound the half of its one-sided interval."""
    if parameter["std"]:
        return float(parameter["std"])
    return float(np.max(np.abs(np.array(parameter["interval"]) - parameter["value"]))) / 1.96


def legs(robot: Robot, data: Path, out: Path) -> None:
    """Both halves of a recording: values, bars, and their differences in bars."""
    halves = [
        fitted(robot, data, out / part / "fit", *window)["parameters"]
        for part, window in (("first", ("--to", robot.split)), ("second", ("--from", robot.split)))
    ]
    distances = []
    print("parameter | first | second | difference in bars")
    for name, first in halves[0].items():
        second = halves[1][name]
        text = [f"{own['value']:.3g} ± {bar(own):.2g}{' (bound)' * own['at_bound']}" for own in (first, second)]
        distance, sure = abs(first["value"] - second["value"]), np.hypot(bar(first), bar(second))
        distances.append(distance / sure if distance > 0.0 else 0.0)
        print(name, "|", " | ".join(text), f"| {distances[-1]:.1f}")
    found = np.array(distances)
    print(
        f"{len(found)} compared: median {np.median(found):.2f} bars, "
        f"within 1 {np.mean(found < 1):.0%}, within 3 {np.mean(found < 3):.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SHADOWFIT_DATA"), help="default: $SHADOWFIT_DATA")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for results")
    parser.add_argument("robots", nargs="*", default=list(ROBOTS), help=f"of {', '.join(ROBOTS)}")
    chosen = parser.parse_args()
    if not chosen.data:
        parser.error("give --data, or set SHADOWFIT_DATA")
    for name in chosen.robots:
        folder = chosen.out.resolve() / name
        (folder / "first").mkdir(parents=True, exist_ok=True)
        (folder / "second").mkdir(exist_ok=True)
        if ROBOTS[name].overlay == LEGS:
            legs(ROBOTS[name], Path(chosen.data), folder)
        else:
            arm(name, ROBOTS[name], Path(chosen.data), folder)


if __name__ == "__main__":
    main()
