"""Six- and seven-axis arms by inverse-dynamics least squares: an independent check of what fits of real arms reach.

Angles are low-pass filtered without lag, differentiated twice, and the torques regressed on Pinocchio's regressor of
the inertial parameters with viscous and Coulomb friction, an offset and the rotor's inertia of each joint. Fitted on
the first 70 % of a recording; the error of the torque, low-pass filtered alike, is that of the rest. It shares no code
with the estimator.

    python benchmarks/arm.py [--data FOLDER] [--without-repeats] [tx40 ur10 panda]
    python benchmarks/arm.py [--data FOLDER] --wrist

Messages that a logger wrote twice stay in unless `--without-repeats` is given; the others then get even times.
`--wrist` regresses the torques of the TX40 with motor 6 turning with axes 5 and 6, on the whole recording and on its
halves, without samples below 0.1 rad/s, and prints what is found of the wrist with its standard deviations.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.signal import butter, sosfiltfilt

# Robot file, recording, columns of angles and torques, cut-off [Hz].
ARMS = {
    "tx40": ("arm_tx40/tx40.urdf", "arm_tx40/tx40_exciting.csv", ("q", "_rad"), ("tau", "_Nm"), 10.0),
    "ur10": ("arm_ur10/ur10.urdf", "arm_ur10/ur10_exciting.csv", (".position", ""), (".effort", ""), 10.0),
    "panda": ("arm_panda/panda_nohand.xml", "arm_panda/panda_exciting.csv", (".position", ""), (".effort", ""), 4.0),
}
FITTED = 0.7
# Directions of the regressor below this part of the strongest are not told by the motion.
UNTOLD = 1e-4
INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
# What is printed of a wrist whose last motor turns with two axes; cut-off [Hz]; speeds [rad/s] that are left out.
WRIST, WRIST_CUTOFF, SLOW = ("Iam6", "fvm6", "fsm6", "Ia5", "Ia6"), 30.0, 0.1


def columns(path: Path, first: str, last: str) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] and the columns whose heading holds two pieces of text."""
    with path.open() as file:
        lines = csv.reader(file)
        names = next(lines)
        table = np.array([[float(cell) for cell in line] for line in lines])
    chosen = [i for i, name in enumerate(names) if first in name and name.endswith(last) and i > 0]
    return table[:, 0], table[:, chosen]


def smoothed(time: np.ndarray, values: np.ndarray, cutoff: float) -> np.ndarray:
    """On an even grid, low-pass filtered forwards and backwards."""
    grid = np.linspace(time[0], time[-1], len(time))
    even = np.stack([np.interp(grid, time, column) for column in values.T], axis=1)
    return sosfiltfilt(butter(2, cutoff, fs=1.0 / (grid[1] - grid[0]), output="sos"), even, axis=0)


def distinct(time: np.ndarray, angles: np.ndarray, torques: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that do not repeat the one before, at the even times that are nearest to theirs."""
    both = np.concatenate([angles, torques], axis=1)
    new = np.concatenate([[True], np.any(np.diff(both, axis=0) != 0.0, axis=1)])
    number = np.arange(new.sum())
    return np.polyval(np.polyfit(number, time[new], 1), number), angles[new], torques[new]


def torque_errors(
    robot: Path, recording: Path, angle: Sequence[str], torque: Sequence[str], cutoff: float, without_repeats: bool
) -> dict:
    """Root mean square error of each joint's torque on the rest [N m], and its part of the torque's own."""
    read = pin.buildModelFromMJCF if robot.suffix == ".xml" else pin.buildModelFromUrdf
    model = read(str(robot))
    data = model.createData()
    time, angles = columns(recording, *angle)
    _, torques = columns(recording, *torque)
    if without_repeats:
        time, angles, torques = distinct(time, angles, torques)
    step = (time[-1] - time[0]) / (len(time) - 1)
    q = smoothed(time, np.unwrap(angles, axis=0), cutoff)
    tau = smoothed(time, torques, cutoff)
    v = np.gradient(q, step, axis=0)
    a = np.gradient(v, step, axis=0)
    joints = q.shape[1]
    rows = []
    for k in range(len(q)):
        own = np.array(pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k]))
        friction = [np.diag(x) for x in (v[k], np.sign(v[k]), a[k], np.ones(joints))]
        rows.append(np.concatenate([own, *friction], axis=1))
    table = np.stack(rows)
    inner = slice(round(0.3 / step), len(q) - round(0.3 / step))
    table, tau = table[inner], tau[inner]
    count = round(FITTED * len(table))
    # Each joint counts by its own residuals: weights from a first round.
    weight = np.ones(joints)
    for _ in range(2):
        left = (table[:count] * weight[:, None]).reshape(-1, table.shape[2])
        scale = np.linalg.norm(left, axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        solution = np.linalg.lstsq(left / scale, (tau[:count] * weight).ravel(), rcond=UNTOLD)[0] / scale
        weight = 1.0 / np.std(tau[:count] - table[:count] @ solution, axis=0)
    errors = {}
    for name, part in (("fitted", slice(0, count)), ("rest", slice(count, None))):
        error = np.sqrt(np.mean((tau[part] - table[part] @ solution) ** 2, axis=0))
        size = np.sqrt(np.mean(tau[part] ** 2, axis=0))
        whole = np.sqrt(np.sum(error**2) / np.sum(size**2))
        errors[name] = {"rmse": error, "share": error / size, "whole": whole}
    return errors


def wrist(data: Path, begin: float, end: float) -> dict[str, tuple[float, float]]:
    """Numbers of the last axes of the TX40 and their standard deviations, between two times [s]."""
    robot, recording, angle, torque, _ = ARMS["tx40"]
    model = pin.buildModelFromUrdf(str(data / robot))
    tree = model.createData()
    time, angles = columns(data / recording, *angle)
    q, tau = smoothed(time, angles, WRIST_CUTOFF), smoothed(time, columns(data / recording, *torque)[1], WRIST_CUTOFF)
    step = (time[-1] - time[0]) / (len(time) - 1)
    v = np.gradient(q, step, axis=0)
    a = np.gradient(v, step, axis=0)
    names = [f"{kind}{i}" for i in range(1, 7) for kind in INERTIAL]
    names += [f"{kind}{i}" for kind in ("fv", "fs", "Ia", "off") for i in range(1, 7)] + ["Iam6", "fvm6", "fsm6"]
    rows = []
    for k in np.flatnonzero((time >= begin) & (time <= end))[::5]:
        own = np.array(pin.computeJointTorqueRegressor(model, tree, q[k], v[k], a[k]))
        both, coupled = v[k, 4] + v[k, 5], np.zeros((6, 3))
        coupled[4], coupled[5] = (a[k, 5], v[k, 5], np.sign(both)), (a[k, 4], v[k, 4], np.sign(both))
        diagonal = [np.diag(x) for x in (v[k], np.sign(v[k]), a[k], np.ones(6))]
        moving = np.abs(v[k]) > SLOW
        moving[4:] &= abs(both) > SLOW
        rows.append((np.concatenate([own, *diagonal, coupled], axis=1), tau[k], moving))
    table, target, used = (np.stack(each) for each in zip(*rows, strict=True))
    weight = np.ones(6)
    for _ in range(3):
        each = np.where(used, weight, 0.0)
        left, right = (table * each[:, :, None]).reshape(-1, len(names)), (target * each).ravel()
        scale = np.maximum(np.linalg.norm(left, axis=0), 1e-9)
        u, sizes, across = np.linalg.svd(left / scale, full_matrices=False)
        told = sizes > UNTOLD * sizes[0]
        inverse = across[told].T / sizes[told]
        solution = inverse @ (u.T @ right)[told] / scale
        residual = np.where(used, target - table @ solution, np.nan)
        weight = 1.0 / np.nanstd(residual, axis=0)
    spread = np.linalg.norm(inverse, axis=1) / scale
    return {name: (solution[names.index(name)], spread[names.index(name)]) for name in WRIST}


def main() -> None:
    """Print the errors of the chosen arms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SHADOWFIT_DATA"), help="default: $SHADOWFIT_DATA")
    parser.add_argument("--without-repeats", action="store_true", help="leave out messages that were written twice")
    parser.add_argument("arms", nargs="*", default=list(ARMS), help=f"of {', '.join(ARMS)}")
    parser.add_argument("--wrist", action="store_true", help="the coupled wrist of the TX40 instead")
    chosen = parser.parse_args()
    if not chosen.data:
        parser.error("give --data, or set SHADOWFIT_DATA")
    if chosen.wrist:
        for begin, end in ((0.1, 8.9), (0.1, 4.5), (4.5, 8.9), (0.1, 6.3)):
            found = wrist(Path(chosen.data), begin, end).items()
            print(f"{begin} to {end} s:", ", ".join(f"{name} {x:.4f} ± {s:.4f}" for name, (x, s) in found), flush=True)
        return
    for name in chosen.arms:
        robot, recording, angle, torque, cutoff = ARMS[name]
        for part, own in torque_errors(
            Path(chosen.data) / robot, Path(chosen.data) / recording, angle, torque, cutoff, chosen.without_repeats
        ).items():
            print(
                f"{name} {part}: {100.0 * own['whole']:.1f} % of the torque; N m",
                *(f"{x:.3g}" for x in own["rmse"]),
                "; %",
                *(f"{100.0 * x:.1f}" for x in own["share"]),
                flush=True,
            )


if __name__ == "__main__":
    main()
