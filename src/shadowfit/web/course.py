"""The course of a fit, from what it keeps on disk: while it goes on, and after it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.evaluation.checkpoint import MOST_CURVES, largest_parts
from shadowfit.evaluation.columns import read_csv
from shadowfit.evaluation.html_page import rounded, split
from shadowfit.projects.runs import Run

COSTS = ("cost", "dynamics", "observation")
# Seen on light and on dark paper.
COLOURS = ["#4c8df5", "#e8832a", "#8a949e", "#2f9e58", "#b64fc8", "#c9a300", "#d14545", "#27a8a8"]


def course(run: Run) -> dict[str, Any]:
    """``number``, the costs, and ``parameters`` (name → values), each over the iterations; empty before the first.

    ``residuals`` are those of the newest iteration: curves over time.
    """
    if (run.result / "log.csv").exists():
        with contextlib.suppress(ShadowfitError):
            table = {heading: rounded(values) for heading, values in read_csv(run.result / "log.csv").items()}
            known = ("number", *COSTS, "damping", "gain", "step", "trials", "seconds")
            traces = {name: values for name, values in table.items() if name not in known}
            costs = {key: table[key] for key in ("number", *COSTS)}
            return {**costs, "parameters": traces, "residuals": _last_residuals(run)}
    live = run.unfinished()
    if live is None:
        return {}
    log = {key: [entry[key] for entry in live["log"]] for key in ("number", *COSTS)}
    return {**log, "parameters": live.get("traces", {}), "residuals": live.get("residuals", [])}


def _last_residuals(run: Run) -> list[dict[str, Any]]:
    """What a fit that has ended left of the readings, from its table of each recording."""
    summary = run.summary()
    tables = sorted(run.result.glob("trajectory_*.csv"))
    if summary is None:
        return []
    sensors = summary["model"]["sensors"]
    curves = [curve for path in tables[:MOST_CURVES] for curve in _curves(path, sensors, len(tables) > 1)]
    return curves[:MOST_CURVES]


def _curves(path: Path, sensors: Mapping[str, Any], several: bool) -> list[dict[str, Any]]:
    table = read_csv(path)
    where = f" in {path.stem.removeprefix('trajectory_')}" if several else ""
    curves = []
    for heading, values in table.items():
        name, ending, _ = split(heading)[0].rpartition(".residual")
        sensor = sensors.get(name) or sensors.get(name.rpartition(".")[0])
        if ending and sensor:
            time, left = largest_parts(np.asarray(table["time [s]"], float), np.asarray(values, float) / sensor["std"])
            curves.append({"name": f"{name}{where}", "time": rounded(time), "left": rounded(left)})
    return curves


def cost_chart(log: dict[str, Any]) -> dict[str, Any]:
    """The costs over the iterations, as options of a chart."""
    return _chart("cost", log, {key: log.get(key, []) for key in COSTS}, "log")


def parameter_chart(log: dict[str, Any]) -> dict[str, Any]:
    """Each parameter over the iterations, divided by its newest value."""
    traces = log.get("parameters", {})
    relative = {
        name: [None if value is None else value / values[-1] for value in values]
        for name, values in traces.items()
        if values and values[-1]
    }
    return _chart("parameters / newest value", log, relative, "value")


def residual_chart(log: dict[str, Any]) -> dict[str, Any]:
    """What is left of the readings over time, in stated standard deviations."""
    options = _chart("residuals / stated noise", {}, {}, "value")
    options["xAxis"]["name"] = "time [s]"
    options["series"] = [
        _line(curve["name"], list(zip(curve["time"], curve["left"], strict=False)))
        for curve in log.get("residuals", [])
    ]
    return options


def newest_values(log: dict[str, Any]) -> str:
    """Start and newest value of each parameter, as HTML."""
    cells = "".join(
        f'<span><span class="name">{escape(name)}</span> {_shown(values[0])} → <b>{_shown(values[-1])}</b></span>'
        for name, values in log.get("parameters", {}).items()
        if values
    )
    return f'<div class="newest-values">{cells}</div>'


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.5g}"


def _chart(title: str, log: dict[str, Any], series: dict[str, list[Any]], scale: str) -> dict[str, Any]:
    grey = {"color": "#8a929b"}
    axis = {"axisLabel": grey, "nameTextStyle": grey, "splitLine": {"lineStyle": {"color": "#8a929b", "opacity": 0.2}}}
    exponents = {
        "min": "dataMin",
        "axisLabel": {
            **grey,
            "hideOverlap": True,
            "showMinLabel": False,
            ":formatter": "(value) => value.toExponential(0)",
        },
    }
    powers = exponents if scale == "log" else {}
    return {
        "animation": False,
        "color": COLOURS,
        "title": {"text": title, "textStyle": {**grey, "fontSize": 13}},
        "tooltip": {"trigger": "axis", "order": "valueDesc", "confine": True},
        "legend": {"type": "scroll", "bottom": 0, "textStyle": grey, "pageTextStyle": grey},
        "grid": {"left": 60, "right": 16, "top": 36, "bottom": 62},
        "xAxis": {"type": "value", "name": "iteration", "nameLocation": "middle", "nameGap": 24, **axis},
        "yAxis": {"type": scale, "scale": True, **axis, **powers},
        "series": [
            _line(
                name,
                [
                    (number, value)
                    for number, value in zip(log.get("number", []), values, strict=False)
                    if value is not None and (scale != "log" or value > 0.0)
                ],
            )
            for name, values in series.items()
        ],
    }


def _line(name: str, points: list[tuple[Any, Any]]) -> dict[str, Any]:
    shape = {"showSymbol": len(points) < 2, "lineStyle": {"width": 1.5}}
    return {"name": name, "type": "line", **shape, "data": [list(point) for point in points]}
