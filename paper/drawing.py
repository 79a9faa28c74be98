"""Figures of studies: one look, written as PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.models.atomic import write_bytes

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
except ImportError as error:  # said before the first fit, not after the last
    raise ShadowfitError('figures need the package matplotlib; pip install "shadowfit[plots]"') from error

COLOURS = ("#1f5fa8", "#d1702b", "#2f8f5b", "#8c4fa3", "#7a7a7a")
RESOLUTION = 110  # dots an inch
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
}


def panels(rows: int, columns: int, width: float = 9.0, height: float = 2.4) -> tuple[Figure, Any]:
    """A figure with a grid of axes, shape (rows, columns)."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, axes


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write ``reproduction-<name>.png`` into the folder, and return the file's name."""
    content = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(content, format="png", dpi=RESOLUTION)
    file = f"reproduction-{name}.png"
    write_bytes(folder / file, content.getvalue())
    return file


def curve(axes: Any, x: Sequence[float], y: Sequence[Any], index: int, label: str, dashed: bool = False) -> None:
    """A line with points at the values that exist."""
    values = np.array([np.nan if value is None else value for value in y], float)
    marker = "osd^v"[index % 5]
    style = "--" if dashed else "-"
    axes.plot(x, values, style, marker=marker, color=COLOURS[index % len(COLOURS)], label=label)


def mark_truth(axes: Any, value: float) -> None:
    """A line at the true value."""
    axes.axhline(value, color="black", linewidth=0.9, linestyle=":", label="truth")


def legend(axes: Any, **options: Any) -> None:
    """A legend, where anything has a name: fits may be missing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**options)
