"""Figures of the results."""

from __future__ import annotations

import math
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.peers.measures import Key, errors, median, middle, warm
from benchmarks.peers.methods import METHODS
from benchmarks.peers.results import SUCCESS, Result
from benchmarks.peers.tasks import TASKS

# A method has its colour in every figure.
COLOURS = {method: f"C{i}" for i, method in enumerate(METHODS)}


def draw_errors(groups: dict[Key, list[Result]], folder: Path) -> list[str]:
    """For each machine a figure: error of each unknown, one dot for each seed, all methods beside each other."""
    names = []
    for task in ("furuta-pulse-far", "furuta-swing-up-dry-far", "pendulum", "cartpole", "arm"):
        methods = [method for method in METHODS if groups.get((task, method))]
        if not methods:
            continue
        unknowns = list(TASKS[task].starts)
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        axes = figure.subplots()
        for i, method in enumerate(methods):
            shift = 0.8 * ((i + 0.5) / len(methods) - 0.5)
            points = [(j + shift, 100.0 * e) for j, n in enumerate(unknowns) for e in errors(groups[task, method], n)]
            shown = [(x, min(max(y, 1e-4), 1e3)) for x, y in points if math.isfinite(y)]
            if shown:
                axes.plot(
                    *zip(*shown, strict=True), ".", color=COLOURS[method], label=METHODS[method].label, markersize=7
                )
        axes.axhline(100.0 * SUCCESS, color="0.6", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_ylim(8e-5, 1.5e3)
        axes.set_ylabel("error [%], one dot per seed")
        axes.set_xticks(range(len(unknowns)), [name.replace(".", "\n", 1) for name in unknowns], fontsize=8)
        axes.set_title(task)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        name = f"bench-{task}.png"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / name, dpi=110)
        names.append(name)
    return names


def draw_times(groups: dict[Key, list[Result]], folder: Path) -> list[str]:
    """Warm time of a fit against the error of the rollout, one dot for each method and task."""
    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for method in METHODS.values():
        points = []
        for (_, own), group in groups.items():
            if own == method.name and warm(group):
                points.append((median(r.seconds for r in warm(group)), 1e3 * middle([r.rollout for r in group])))
        shown = [(x, min(y, 1e4)) for x, y in points if math.isfinite(x)]
        if shown:
            axes.plot(*zip(*shown, strict=True), "o", color=COLOURS[method.name], label=method.label, alpha=0.8)
    if not axes.lines:
        return []
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("warm time of a fit [s], median of a task's seeds")
    axes.set_ylabel("error of the held-out rollout [mrad]")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "bench-times.png", dpi=110)
    return ["bench-times.png"]
