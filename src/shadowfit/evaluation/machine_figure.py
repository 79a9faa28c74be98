"""The machine in matplotlib: where it is at a few moments of a motion, the last in full, and the ways of its masses."""

from __future__ import annotations

from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics import State
from shadowfit.evaluation.animation import skeleton
from shadowfit.frames import optional
from shadowfit.mechanism import Mechanism

# Moments before the last one, and how much is seen of the first of them.
MOMENTS, FAINTEST = 7, 0.15
# Part of the largest extent below which a direction has no room for numbers.
THIN = 0.2
# Degrees from the horizontal that one looks down.
ELEVATION = 15.0


def draw_machine(axes: Any, mechanism: Mechanism, time: Float[np.ndarray, " k"], states: State) -> None:
    """Draw a motion into three-dimensional axes, seen from the side towards which it reaches least."""
    scene = skeleton(mechanism, time, states)
    frames = np.array(scene["frames"])
    bodies = np.split(frames, np.cumsum(scene["spokes"])[:-1], axis=1)
    chosen = np.unique(np.linspace(0, len(frames) - 1, MOMENTS + 1).astype(int))
    shown = np.linspace(FAINTEST, 1.0, len(chosen))
    for number, points in enumerate(bodies):
        colour = f"C{number % 10}"
        for frame, alpha in zip(chosen, shown, strict=True):
            for line in _lines(points[frame]):
                axes.plot(*line.T, color=colour, alpha=alpha, linewidth=2.5)
        axes.plot(*points[:, 0].T, color=colour, alpha=0.4, linewidth=0.6)
        axes.plot(*points[-1, :1].T, "o", color=colour, label=scene["bodies"][number])
    for slider in scene["sliders"]:
        axes.plot(*np.array(slider["rail"][-1]).T, color="0.6")
    _view(axes, frames)


def _lines(points: Float[np.ndarray, "n 3"]) -> list[Float[np.ndarray, "2 3"]]:
    """From the centre of mass to each end; of a body that is held at one end only, as far again beyond."""
    centre, ends = points[0], points[1:]
    ends = np.vstack([ends, 2.0 * centre - ends]) if len(ends) == 1 else ends
    return [np.array([centre, end]) for end in ends]


def _view(axes: Any, frames: Float[np.ndarray, "t n 3"]) -> None:
    """Metres alike in all directions, and the horizontal direction of least extent towards the viewer."""
    points = frames.reshape(-1, 3)
    _, directions = np.linalg.eigh(np.cov(points[:, :2].T))
    axes.view_init(elev=ELEVATION, azim=np.degrees(np.arctan2(directions[1, 0], directions[0, 0])) + ELEVATION)
    axes.set_aspect("equal")
    ticker, extent = optional("matplotlib.ticker", "plots"), np.ptp(points, axis=0)
    for axis, name, own in zip((axes.xaxis, axes.yaxis, axes.zaxis), "xyz", extent, strict=True):
        axis.set_label_text(f"{name} [m]")
        axis.set_major_locator(ticker.MaxNLocator(4) if own > THIN * extent.max() else ticker.NullLocator())
    axes.legend(fontsize="small")
