"""A machine beside its fit, from a saved result: the picture of the README.

shadowfit demo --out demo
python -m tools.machine_picture demo docs/figures/machine.png
"""

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from shadowfit import load_result
from shadowfit.evaluation.animation import skeleton

# Part of the recording that is drawn [s], when in it the machine is [s], in how many poses; inches of the picture.
SPAN, SWING, POSES, SIZE = 4.0, (0.05, 0.6), 9, (9.0, 3.4)


def draw_machine(axes: Any, scene: dict[str, Any]) -> None:
    """Bodies as lines between their joints, fainter the longer ago; with one joint, to as far beyond their centre."""
    time, frames = np.array(scene["time"]), np.array(scene["frames"])
    chosen = frames[np.searchsorted(time, np.linspace(*SWING, POSES))]
    bounds = list(pairwise(np.cumsum([0, *scene["spokes"]])))
    for age, frame in enumerate(chosen, start=1):
        for body, (first, last) in enumerate(bounds):
            joints = frame[first + 1 : last]
            line = np.vstack([joints, 2.0 * frame[first] - joints]) if len(joints) == 1 else joints
            axes.plot(*line.T, color=f"C{body}", linewidth=5, alpha=(age / POSES) ** 2, solid_capstyle="round")
    low, high = chosen.min(axis=(0, 1)), chosen.max(axis=(0, 1))
    middle, reach = (low + high) / 2.0, np.ptp(chosen, axis=(0, 1)).max() / 2.0
    axes.set(**{f"{axis}lim": (at - reach, at + reach) for axis, at in zip("xyz", middle, strict=True)})
    axes.set_box_aspect((1, 1, 1), zoom=1.45)
    axes.view_init(elev=25, azim=-70)
    axes.set_axis_off()


def draw_fit(axes: Any, table: Any, sensor: str, unit: str) -> None:
    """Every fourth sample of a sensor, and the estimated motion."""
    shown = table["time [s]"] <= SPAN
    time, measured, fitted = (
        table[key][shown] for key in ("time [s]", f"{sensor}.measured [{unit}]", f"{sensor}.estimated [{unit}]")
    )
    axes.plot(time[::4], measured[::4], "o", color="0.65", markersize=4, label="measured")
    axes.plot(time, fitted, color="black", linewidth=1.2, label="fitted")
    axes.set_ylabel(f"{sensor} [{unit}]")
    axes.spines[["top", "right"]].set_visible(False)


def picture(folder: Path, out: Path) -> None:
    """Write the picture of the first recording of a result."""
    mpl.use("agg")
    saved = load_result(folder)
    (time, states), table = next(iter(saved.states.values())), next(iter(saved.tables.values()))
    sensors = [key.removesuffix("]").split(".measured [") for key in table if ".measured [" in key]
    figure = plt.figure(figsize=SIZE, layout="constrained")
    grid = figure.add_gridspec(len(sensors), 2, width_ratios=(1, 1.7))
    draw_machine(figure.add_subplot(grid[:, 0], projection="3d"), skeleton(saved.mechanism(), time, states))
    for row, (sensor, unit) in enumerate(sensors):
        axes = figure.add_subplot(grid[row, 1])
        draw_fit(axes, table, sensor, unit)
        if row == 0:
            axes.legend(frameon=False, ncols=2, loc="lower right")
    axes.set_xlabel("time [s]")
    figure.savefig(out, dpi=110)


def main() -> None:
    """Parse and call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    picture(arguments.result, arguments.out)


if __name__ == "__main__":
    main()
