"""Cube tosses: estimate the motion through contact, fit friction and damping of the table, predict other tosses.

The first eight tosses are fitted together, with one step a sample: their motion, the friction coefficient, and the
relaxation time of the contact, which decides how much it bounces. The others are simulated from their second sample to
the end, with the published constants and with the fitted ones. Data: `cube_tosses`, from
github.com/DAIRLab/contact-nets (BSD-3-Clause), 40 tosses.

Run: python studies/cube.py --data FOLDER [--out FOLDER]
"""

import json

import numpy as np
import polars
import study
from matplotlib.figure import Figure
from scipy.spatial.transform import Rotation

from shadowfit.dynamics import place, simulate
from shadowfit.estimation import Estimate, Options, fit
from shadowfit.evaluation import save_estimate
from shadowfit.mechanism import Mechanism
from shadowfit.models import read_model
from shadowfit.recordings import Recording

RATE = 148.0  # Hz; time stamps have five digits
TIMESTEP = 1.0 / RATE
CORNERS = 0.0524 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
# A corner this close to the table has touched it [m].
TOUCH = 2e-3
FITTED = 8
START = {"table.friction": 0.18, "table.damping": 4e-3}
# Impacts are sharp: the first trajectory must not smooth them away. Sticking is regularised less than usual, because
# cubes that come to rest are half of the data.
OPTIONS = Options(timestep=TIMESTEP, correction="none", state_weight=100.0, cutoff=60.0, stick_time=1e-4)


def main() -> None:
    data, out = study.folders("cube_tosses")
    cube = read_model(study.HERE / "cube.toml")
    tosses = [frame for _, frame in polars.read_csv(data / "tosses_0_39.csv").group_by("toss", maintain_order=True)]
    estimate = fit(cube, [recording(toss) for toss in tosses[:FITTED]], START, options=OPTIONS)
    save_estimate(estimate, out / "fit")
    print(estimate.status.value)
    for parameter in estimate.parameters:
        print(f"{parameter.name}: {parameter.value:.4g} ± {parameter.std:.1g} {parameter.unit}")
    print_states(estimate, tosses[:FITTED])
    errors = {}
    for name, mechanism in (("published", cube), ("fitted", estimate.mechanism())):
        found = [toss_errors(mechanism, toss) for toss in tosses[FITTED:]]
        errors[name] = {key: [one[key] for one in found] for key in found[0]}
        for key, values in errors[name].items():
            print(f"{name}, {key}: median {np.nanmedian(values):.4g}, 90 % below {np.nanquantile(values, 0.9):.4g}")
    (out / "errors.json").write_text(json.dumps(errors))
    figure(out / "real-cube.png", estimate.mechanism(), tosses[FITTED : FITTED + 3])


def recording(toss: polars.DataFrame) -> Recording:
    """A toss as the sensors of the model see it."""
    channels = {f"position.{c}": toss[f"{c}_m"].to_numpy() for c in "xyz"}
    channels |= {f"orientation.{c}": toss[f"q{c}"].to_numpy() for c in "wxyz"}
    return Recording(np.arange(len(toss)) * TIMESTEP, channels, name=f"toss {toss['toss'][0]}")


def print_states(estimate: Estimate, tosses: list[polars.DataFrame]) -> None:
    """How far the estimated motion is from the samples."""
    away, turned = [], []
    for index, toss in enumerate(tosses):
        readings = estimate.trajectory(index).readings
        away.append(np.asarray(readings["position"]) - toss.select("x_m", "y_m", "z_m").to_numpy())
        seen = Rotation.from_quat(toss.select("qx", "qy", "qz", "qw").to_numpy().copy())
        found = Rotation.from_quat(np.roll(np.asarray(readings["orientation"]), -1, axis=1))
        turned.append((found * seen.inv()).magnitude())
    print(f"estimated motion: {1e3 * _rms(np.concatenate(away)):.3g} mm and {_rms(np.concatenate(turned)):.2g} rad rms")
    missing = np.sqrt(estimate.cost_dynamics / estimate.state_weight)
    print(f"impulses that the model lacks: {missing:.2g} N s rms a step")


def simulated(cube: Mechanism, toss: polars.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions and orientations (x y z w) at the samples, from the toss's second row on."""
    time = toss["t_s"].to_numpy()[1:]
    pose = toss.select("x_m", "y_m", "z_m", "qw", "qx", "qy", "qz").to_numpy()[1]
    velocity = toss.select("vx_m_s", "vy_m_s", "vz_m_s", "wx_rad_s", "wy_rad_s", "wz_rad_s").to_numpy()[1]
    spin = Rotation.from_quat(np.roll(pose[3:], -1)).apply(velocity[3:].copy())
    state = place(
        cube,
        poses={"cube": (pose[:3], pose[3:])},
        velocities={"cube": np.concatenate([velocity[:3], spin])},
    )
    run = simulate(
        cube, state, timestep=TIMESTEP, steps=len(time) - 1, discretization="exact", joints="compliant", substeps=1
    )
    turns = np.roll(np.asarray(run.readings["orientation"]), -1, axis=1)
    return time, np.asarray(run.readings["position"]), turns


def measured(toss: polars.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Positions and orientations (x y z w) from the second row on."""
    positions = toss.select("x_m", "y_m", "z_m").to_numpy()[1:]
    return positions, toss.select("qx", "qy", "qz", "qw").to_numpy()[1:].copy()


def toss_errors(cube: Mechanism, toss: polars.DataFrame) -> dict[str, float]:
    """Errors before the first touch, over the whole toss and at its end."""
    _, position, turn = simulated(cube, toss)
    true_position, true_turn = measured(toss)
    corners = np.stack([Rotation.from_quat(true_turn).apply(corner) for corner in CORNERS], axis=1)
    lowest = (corners[:, :, 2] + true_position[:, None, 2]).min(axis=1)
    before = np.arange(len(lowest)) < np.argmax(lowest < TOUCH)
    away = np.linalg.norm(position - true_position, axis=1)
    turned = (Rotation.from_quat(turn) * Rotation.from_quat(true_turn).inv()).magnitude()
    return {
        "flight_mm": 1e3 * _rms(away[before]),
        "whole_mm": 1e3 * _rms(away),
        "final_mm": 1e3 * float(away[-1]),
        "flight_rad": _rms(turned[before]),
        "whole_rad": _rms(turned),
        "final_rad": float(turned[-1]),
    }


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")


def figure(path: study.Path, cube: Mechanism, tosses: list[polars.DataFrame]) -> None:
    """Position of some tosses, measured and simulated."""
    drawing = Figure(figsize=(4.0 * len(tosses), 5.0), layout="constrained")
    axes = drawing.subplots(2, len(tosses), sharex=True, squeeze=False)
    for column, toss in enumerate(tosses):
        time, position, turn = simulated(cube, toss)
        true_position, true_turn = measured(toss)
        for component, name in enumerate("xyz"):
            axes[0, column].plot(time, true_position[:, component], color=f"C{component}", alpha=0.4, linewidth=3)
            axes[0, column].plot(time, position[:, component], color=f"C{component}", linewidth=1, label=name)
        turned = (Rotation.from_quat(turn) * Rotation.from_quat(true_turn).inv()).magnitude()
        axes[1, column].plot(time, turned, color="C3")
        axes[0, column].set_title(f"toss {toss['toss'][0]}: measured (wide), simulated (thin)", fontsize="small")
        axes[1, column].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("position [m]")
    axes[0, 0].legend(fontsize="small")
    axes[1, 0].set_ylabel("orientation error [rad]")
    drawing.savefig(path, dpi=110)
    print("figure", path)


if __name__ == "__main__":
    main()
