"""Figures of a design: the motion within its limits, error bars as the recording grows, and those to expect."""

from __future__ import annotations

import io

import numpy as np

from shadowfit.designs.constraints import axis_torques
from shadowfit.designs.design import Design
from shadowfit.designs.motions import rotary
from shadowfit.designs.setup import driven_joints
from shadowfit.dynamics.tree import coordinate_names
from shadowfit.errors import ShadowfitError

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter
except ImportError as error:
    raise ShadowfitError('figures need the package matplotlib; pip install "shadowfit[plots]"') from error

BLUE, ORANGE = "#1f5fa8", "#d1702b"
# Error bars beyond this are not drawn: nothing is known.
UNKNOWN = 10.0
# Units of position, speed and torque.
ANGLE, LENGTH = ("rad", "rad/s", "N m"), ("m", "m/s", "N")
# Inches of a row of panels.
ROW = 1.5


def motion_figure(designed: Design) -> Figure:
    """Position, speed and torque of every joint and every input over time; limits are dashed."""
    mechanism, motion, limits = designed.experiment.mechanism, designed.motion, designed.setup.limits
    names = coordinate_names(designed.experiment.tree, mechanism)
    turning = rotary(designed.experiment.tree)
    driven = {name for name, _ in driven_joints(mechanism).values()}
    inputs = list(mechanism.inputs)
    rows = len(names) + -(-len(inputs) // 3)
    figure = Figure(figsize=(10.0, ROW * rows), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False, sharex=True)
    for place, name in enumerate(names):
        bounds = limits.joints.get(name)
        torque = axis_torques(designed.experiment, motion, name)[0] if name in driven else None
        curves = (
            ("position", motion.coordinates[0, :, place]),
            ("speed", motion.speeds[0, :, place]),
            ("torque", torque),
        )
        units = ANGLE if turning[place] else LENGTH
        for panel, unit, (kind, values) in zip(axes[place], units, curves, strict=True):
            if values is None:
                panel.set_axis_off()
                continue
            bound = None if bounds is None else getattr(bounds, kind)
            _panel(panel, motion.time, values, f"{name}: {kind} [{unit}]", bound)
    for i, panel in enumerate(axes[len(names) :].ravel()):
        if i >= len(inputs):
            panel.set_axis_off()
            continue
        input_bounds = limits.inputs.get(inputs[i])
        title = f"{inputs[i]} [{mechanism.inputs[inputs[i]].unit}]"
        _panel(panel, motion.time, motion.inputs[0, :, i], title, None if input_bounds is None else input_bounds.range)
    for column in axes.T:
        for panel in [panel for panel in column if panel.axison][-1:]:
            panel.tick_params(labelbottom=True)
    figure.supxlabel("time [s]", fontsize=8)
    return figure


def _panel(
    panel: object, time: np.ndarray, values: np.ndarray, title: str, bound: float | tuple[float, float] | None
) -> None:
    panel.plot(time, values, color=BLUE, linewidth=1.2)  # type: ignore[attr-defined]
    panel.set_title(title, fontsize=8)  # type: ignore[attr-defined]
    panel.tick_params(labelsize=7)  # type: ignore[attr-defined]
    panel.grid(alpha=0.3)  # type: ignore[attr-defined]
    if bound is not None:
        for level in bound if isinstance(bound, tuple) else (-bound, bound):
            panel.axhline(level, color=ORANGE, linewidth=0.9, linestyle="--")  # type: ignore[attr-defined]


def growth_figure(designed: Design) -> Figure:
    """Relative error bars of recordings that end earlier."""
    times, bars = designed.growth
    figure = Figure(figsize=(6.0, 3.4), layout="constrained")
    panel = figure.subplots()
    for label, column in zip(designed.labels, bars.T, strict=True):
        seen = np.isfinite(column) & (column < UNKNOWN)
        if seen.any():
            panel.plot(times[seen], 100.0 * column[seen], marker=".", linewidth=1.1, label=label)
    panel.set_yscale("log")
    panel.set_xlabel("length of the recording [s]")
    panel.set_ylabel("expected error bar [%]")
    panel.grid(alpha=0.3, which="both")
    panel.legend(fontsize=6, frameon=False, ncols=2)
    return figure


def bars_figure(designed: Design) -> Figure:
    """Expected relative error bars of all parameters that can be told."""
    known = np.flatnonzero(np.isfinite(designed.relative))
    order = known[np.argsort(designed.relative[known])]
    figure = Figure(figsize=(6.0, 0.6 + 0.25 * len(order)), layout="constrained")
    panel = figure.subplots()
    bars = panel.barh([designed.labels[i] for i in order], 100.0 * designed.relative[order], color=BLUE)
    panel.bar_label(bars, fmt="%.2g", fontsize=7, padding=3)
    panel.set_xscale("log")
    panel.margins(x=0.15)
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("expected standard deviation over size [%]")
    panel.tick_params(labelsize=7)
    panel.grid(alpha=0.3, axis="x")
    return figure


def svg(figure: Figure) -> str:
    """A figure as text that a page can hold."""
    content = io.StringIO()
    figure.savefig(content, format="svg", transparent=False)
    text = content.getvalue()
    return text[text.index("<svg") :]
