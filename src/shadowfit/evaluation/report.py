"""The report: one self-contained HTML page that says what a fit found and how far to trust it.

Python writes the sentences and tables, which need no script. Charts and the animation are drawn in the reader's
browser by ``page/report.js`` from numbers that the page holds; nothing is loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.evaluation import force_figure, forest_figure, torque_page, verdict
from shadowfit.evaluation.animation import skeleton
from shadowfit.evaluation.diagnostics import ResidualDiagnostics, diagnose
from shadowfit.evaluation.html_page import banner, frame, rounded, split, stage
from shadowfit.evaluation.intervals import interval
from shadowfit.evaluation.store import SavedResult
from shadowfit.evaluation.summary import worth_a_table
from shadowfit.models.atomic import write_text

# Samples of a recording that the page holds; more are thinned out.
MOST_SAMPLES = 6000
MOTION = (
    "The estimated motion of the first recording: dots are centres of mass, rings joints, boxes run on rails. Drag to "
    "turn."
)


def write_report(saved: SavedResult) -> Path:
    """Write ``report.html`` into the folder of a result, and return its path."""
    path = saved.folder / "report.html"
    write_text(path, page(saved))
    return path


def page(saved: SavedResult) -> str:
    """The page of a result."""
    summary = saved.summary
    title = f"{summary['model']['name']}: {', '.join(r['name'] for r in summary['recordings'])}"
    diagnostics, animation = _diagnostics(saved), _animation(saved)
    sections: list[tuple[str, Callable[[SavedResult], str]]] = [
        ("Parameters", _parameters),
        ("Base parameters", _base_parameters),
        ("Measured, estimated and simulated", _recordings),
        ("Torques along the measured motion", torque_page.section),
        ("Motion", lambda _: "" if animation is None else stage(MOTION)),
        ("Do pieces of the data agree?", forest_figure.section),
        ("Unexplained forces", force_figure.section),
        ("Convergence", _convergence),
        ("Correlation", _correlation),
        ("Residuals", lambda _: _residuals(diagnostics)),
        ("What was chosen, and why", _choices),
        ("Settings and data", _settings),
    ]
    head = banner(verdict.colour(summary), verdict.sentence(summary), verdict.notices(summary))
    written = [(name, write(saved)) for name, write in sections]
    return frame(
        "Fit of a mechanism to recordings",
        title,
        head,
        written,
        {
            "recordings": [
                *(_recording(saved, index, name) for index, name in enumerate(saved.tables)),
                *torque_page.curves(saved),
            ],
            "forest": forest_figure.numbers(saved),
            "forces": force_figure.numbers(saved),
            "log": _log(saved),
            "diagnostics": [_diagnostic(index, diagnosis) for index, diagnosis in enumerate(diagnostics.values())],
            "animation": animation,
        },
    )


# ---- sections

# What error bars of a kind heed.
BARS = {
    "robust": "as large as the residuals and their correlations, wider where pieces of the data disagree",
    "gauss-newton": "those of the noise alone",
    "residual": "as large as the residuals",
    "paper": "the paper's",
}


def _parameters(saved: SavedResult) -> str:
    rows = saved.summary["parameters"]
    if not rows:
        return "<p>No parameter was free: the states alone were estimated.</p>"
    known = any("truth" in row for row in rows.values())
    head = ["start", "value", "± std", "95 % interval", *(["truth"] if known else []), "unit", "bounds", ""]
    lines = [f"<tr><th>name</th>{''.join(_th(text) for text in head)}</tr>"]
    for name, row in rows.items():
        std = "" if row["std"] is None else f"{row['std']:.2g}"
        numbers = [_number(row["start"]), _number(row["value"]), std, interval(row)]
        numbers += [_number(row.get("truth"))] if known else []
        cells = "".join(f'<td class="n">{text}</td>' for text in numbers)
        unit = "" if row["unit"] == "1" else escape(row["unit"])
        box = f"{_bound(row['lower'], '−∞')} … {_bound(row['upper'], '∞')}"
        weak = "" if row["identifiable"] else ' class="weak"'
        lines.append(
            f'<tr{weak}><td class="name">{escape(name)}</td>{cells}<td>{unit}</td><td class="soft">{box}</td>'
            f"<td>{_tag(row)}</td></tr>"
        )
    kind = saved.summary["uncertainty"]["kind"]
    text = (
        f"Error bars are {BARS.get(kind, kind)} (<code>--intervals {kind}</code>). They hold as far as the model does."
    )
    table = f'<div class="scroll"><table id="parameters">{"".join(lines)}</table></div>'
    return f'{table}{_derived(saved)}<p class="soft">{text}</p>'


def _derived(saved: SavedResult) -> str:
    """Quantities that follow from the parameters."""
    rows = saved.summary.get("derived") or {}
    if not rows:
        return ""
    head = "".join(_th(text) for text in ("value", "± std", "95 % interval", "unit", "expression"))
    lines = [f"<tr><th>derived</th>{head}</tr>"]
    for name, row in rows.items():
        std = "" if row["std"] is None else f"{row['std']:.2g}"
        cells = "".join(f'<td class="n">{text}</td>' for text in (_number(row["value"]), std, interval(row)))
        unit = "" if row.get("unit") in (None, "1") else escape(row["unit"])
        note = escape(row["problem"] or row["expression"])
        lines.append(f'<tr><td class="name">{escape(name)}</td>{cells}<td>{unit}</td><td class="soft">{note}</td></tr>')
    return f'<div class="scroll"><table id="derived">{"".join(lines)}</table></div>'


def _base_parameters(saved: SavedResult) -> str:
    """What the motion determines, where that is not every parameter by itself."""
    base = saved.summary.get("base_parameters")
    if not base or not worth_a_table(base):
        return ""
    lines = [f"<tr><th>combination</th>{_th('value')}{_th('± std')}<th>unit</th></tr>"]
    for one in base["combinations"]:
        std = "" if one["std"] is None else f"{one['std']:.2g}"
        numbers = "".join(f'<td class="n">{text}</td>' for text in (_number(one["value"]), std))
        unit = "" if one["unit"] == "1" else escape(one["unit"])
        lines.append(f'<tr><td class="name">{escape(one["text"])}</td>{numbers}<td>{unit}</td></tr>')
    text = (
        "The motion determines these combinations of parameters; terms that matter by less than a hundredth are left "
        "out of the words, and are in result.json."
    )
    if base["unseen"]:
        text += f" It does not see {escape(', '.join(base['unseen']))}."
    return f'<div class="scroll"><table id="base">{"".join(lines)}</table></div><p class="soft">{text}</p>'


def _th(text: str) -> str:
    numeric = text in ("start", "value", "± std", "95 % interval", "truth")
    return f'<th class="n">{text}</th>' if numeric else f"<th>{text}</th>"


def _tag(row: Mapping[str, Any]) -> str:
    if row["at_bound"]:
        return '<span class="tag warn">at bound</span>'
    if not row["identifiable"]:
        return '<span class="tag bad">not identifiable</span>'
    return '<span class="tag good">identified</span>'


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _bound(value: float | None, none: str) -> str:
    return none if value is None else f"{value:.4g}"


def _recordings(saved: SavedResult) -> str:
    legend = (
        '<p class="legend"><span><i class="key measured"></i>measured</span><span><i class="key estimated"></i>'
        'estimated</span><span><i class="key rollout"></i>simulated from the first state, recorded inputs only</span>'
        '<span class="hint">drag to zoom, double-click for all</span></p>'
    )
    legend += (
        '<p class="soft">The simulation has seen nothing but the first state. One that stays on the measurement shows '
        "a model that predicts; unstable and chaotic motion leaves every simulation behind after a while.</p>"
    )
    blocks = []
    for index, recording in enumerate(saved.summary["recordings"]):
        heading = f"<h3>{escape(recording['name'])}</h3>" if len(saved.tables) > 1 else ""
        blocks.append(f'{heading}<div id="recording-{index}"></div>')
    return legend + "".join(blocks)


def _convergence(saved: SavedResult) -> str:
    count = len(saved.log["number"])
    if count < 2:
        return "<p>There was no iteration.</p>"
    return (
        '<p class="legend"><span><i class="key estimated"></i>cost</span>'
        '<span><i class="key rollout"></i>of the dynamics</span>'
        '<span><i class="key measured"></i>of the observations</span></p><div id="convergence" class="row"></div>'
    )


def _correlation(saved: SavedResult) -> str:
    if not saved.labels:
        return ""
    table = verdict.correlation(saved.covariance)
    shown = [i for i in range(len(saved.labels)) if np.isfinite(table[i, i])]
    top = "".join(f'<th class="top">{escape(saved.labels[i])}</th>' for i in shown)
    lines = [f"<tr><th></th>{top}</tr>"]
    for i in shown:
        cells = "".join(_heat(table[i, j]) for j in shown)
        lines.append(f"<tr><th>{escape(saved.labels[i])}</th>{cells}</tr>")
    return f'<div class="scroll"><table class="heat" id="correlation">{"".join(lines)}</table></div>' if shown else ""


def _heat(value: float) -> str:
    colour = "--plus" if value >= 0.0 else "--minus"
    shown = f"{value:.2f}".replace("-0.00", "0.00")
    return f'<td style="background: rgba(var({colour}), {0.75 * abs(value):.2f})">{shown}</td>'


def _residuals(diagnostics: Mapping[str, ResidualDiagnostics]) -> str:
    blocks: list[str] = []
    for key, diagnosis in diagnostics.items():
        texts = [f"mean {diagnosis.mean:+.2f}, standard deviation {diagnosis.std:.2f} of the assumed one"]
        beyond = int(np.sum(np.abs(diagnosis.autocorrelation[1:]) > diagnosis.white))
        share = beyond / max(len(diagnosis.autocorrelation) - 1, 1)
        texts.append("like white noise" if share < 0.15 else "correlated in time: the model misses something")
        texts.append(f"probability of such correlations in white noise {diagnosis.whiteness:.2g} (Ljung–Box)")
        texts.append(f"of such skewness and tails in normal noise {diagnosis.normality:.2g} (Jarque–Bera)")
        if len(diagnosis.outliers):
            texts.append(f"{len(diagnosis.outliers)} samples further than four standard deviations from the rest")
        if diagnosis.std > 2.0:
            texts.append("the sensor's standard deviation is set too small, or the model cannot follow")
        blocks.append(
            f'<h3>{escape(key)}</h3><p class="soft">{escape("; ".join(texts))}.</p><div class="row" '
            f'id="diagnostics-{len(blocks)}"></div>'
        )
    return "".join(blocks)


def _choices(saved: SavedResult) -> str:
    """Decisions that nobody asked for."""
    rows = saved.summary.get("choices") or []
    cells = ((row["what"], row["chosen"], row["reason"]) for row in rows)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in cells)
    head = "<tr><th>decision</th><th>chosen</th><th>because</th></tr>"
    return f'<div class="scroll"><table id="choices">{head}{lines}</table></div>' if rows else ""


def _settings(saved: SavedResult) -> str:
    summary = saved.summary
    rows: list[tuple[str, str]] = []
    for recording in summary["recordings"]:
        samples = f"{recording['samples']} samples over {recording['duration']:.4g} s, {recording['steps']} steps"
        rows.append((recording["name"], f"{samples}; {recording['source']}"))
        rows.append(("fingerprint", f"sha256 {recording['fingerprint']}"))
    for key, value in summary["settings"].items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [(f"{key} {name}".strip().replace("_", " "), _setting(part)) for name, part in inner]
    seconds = ", ".join(f"{key} {value:.2f} s" for key, value in summary["seconds"].items() if value is not None)
    rows.append(("time", seconds))
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in summary["versions"].items())))
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in rows)}</dl>"


def _setting(value: Any) -> str:
    if value is None:
        return "default"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ---- numbers for the script


def _recording(saved: SavedResult, index: int, name: str) -> dict[str, Any]:
    table = saved.tables[name]
    stride = -(-len(table["time [s]"]) // MOST_SAMPLES)
    columns = {heading: rounded(values[::stride]) for heading, values in table.items()}
    channels, residuals = [], []
    for heading, values in columns.items():
        key, unit = split(heading)
        if key.endswith(".measured"):
            channel = key.removesuffix(".measured")
            drawn = {kind: columns[f"{channel}.{kind} [{unit}]"] for kind in ("estimated", "rollout")}
            channels.append({"name": channel, "unit": unit, "measured": values, **drawn})
        elif key.endswith(".residual"):
            residuals.append({"name": key.removesuffix(".residual"), "unit": unit, "values": values})
    inputs = []
    for key, part in saved.summary["model"]["inputs"].items():
        values = columns[f"{key} [{part['unit']}]"]
        inputs.append({"kind": "input", "name": key, "unit": part["unit"], "values": values})
    return {
        "id": index,
        "time": columns["time [s]"],
        "channels": channels,
        "residuals": residuals,
        "inputs": inputs,
    }


def _log(saved: SavedResult) -> dict[str, Any]:
    parameters = []
    for label in saved.labels:
        values = saved.log[label]
        if len(values) and values[-1] != 0.0:
            distance = np.abs(values - values[-1]) / abs(values[-1])
            parameters.append({"name": label, "distance": rounded(np.where(distance > 0.0, distance, np.nan))})
    costs = {key: rounded(saved.log[key]) for key in ("number", "cost", "dynamics", "observation")}
    return {**costs, "parameters": parameters}


def _diagnostics(saved: SavedResult) -> dict[str, ResidualDiagnostics]:
    diagnoses = {}
    for name, table in saved.tables.items():
        for heading, values in table.items():
            key, _ = split(heading)
            if not key.endswith(".residual"):
                continue
            channel = key.removesuffix(".residual")
            sensor = saved.summary["model"]["sensors"][channel.split(".")[0]]
            diagnosis = diagnose(values, sensor["std"])
            if diagnosis is not None:
                diagnoses[f"{name}: {channel}" if len(saved.tables) > 1 else channel] = diagnosis
    return diagnoses


def _diagnostic(index: int, diagnosis: ResidualDiagnostics) -> dict[str, Any]:
    centres = 0.5 * (diagnosis.edges[1:] + diagnosis.edges[:-1])
    return {
        "id": index,
        "low": float(diagnosis.edges[0]),
        "high": float(diagnosis.edges[-1]),
        "width": float(diagnosis.edges[1] - diagnosis.edges[0]),
        "centres": rounded(centres),
        "density": rounded(diagnosis.density),
        "normal": rounded(diagnosis.normal),
        "quantiles": rounded(diagnosis.quantiles),
        "autocorrelation": rounded(diagnosis.autocorrelation),
        "white": diagnosis.white,
    }


def _animation(saved: SavedResult) -> dict[str, Any] | None:
    """Frames of the first recording; None for a mechanism that has no model file."""
    try:
        mechanism = saved.mechanism()
    except ShadowfitError:
        return None
    time, states = next(iter(saved.states.values()))
    if not np.all(np.isfinite(np.asarray(states.pose.position))):
        return None
    return skeleton(mechanism, time, states)
