"""A page with the torques that a model predicts along measured motions, beside the measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from shadowfit.evaluation.html_page import frame, rounded
from shadowfit.evaluation.store import SavedResult
from shadowfit.evaluation.torques import TorquePrediction, torques_of, whole_share
from shadowfit.evaluation.validation import Validation

MOST_SAMPLES = 6000
LEGEND = (
    '<p class="legend"><span><i class="key measured"></i>measured</span>'
    '<span><i class="key estimated"></i>predicted along the measured motion</span>'
    '<span class="hint">drag to zoom, double-click for all</span></p>'
)


def torque_page(model: str, validations: Sequence[Validation]) -> str:
    """The page as HTML; recordings without torques are left out."""
    shown = [one for one in validations if one.torques]
    title = f"{model}: {', '.join(one.recording for one in validations)}"
    blocks = [
        f"<h3>{escape(one.recording)}</h3>{torque_table(one.torques)}" + f'<div id="recording-{index}"></div>'
        for index, one in enumerate(shown)
    ]
    text = LEGEND + "".join(blocks) if shown else "<p>No joint of this model has a measured torque or force.</p>"
    numbers = {"recordings": [_curves(one.torques, index) for index, one in enumerate(shown)]}
    return frame("Torques of a model on recordings", title, "", [("Torques along the measured motion", text)], numbers)


def section(saved: SavedResult) -> str:
    """The section of a fit's report, behind the charts of its recordings; empty without measured torques."""
    if not saved.torques:
        return ""
    text = (
        "What the calibrated model asks of the drives along the measured motion (filtered, not simulated) beside what "
        "was measured, on the recordings of the fit; <code>shadowfit validate</code> gives the same for others."
    )
    blocks = []
    for index, (name, columns) in enumerate(saved.torques.items()):
        heading = f"<h3>{escape(name)}</h3>" if len(saved.torques) > 1 else ""
        place = f'<div id="recording-{len(saved.tables) + index}"></div>'
        blocks.append(f"{heading}{torque_table(torques_of(columns))}{place}")
    return f'<p class="soft">{text}</p>{LEGEND}{"".join(blocks)}'


def curves(saved: SavedResult) -> list[dict[str, Any]]:
    """What the script draws in that section."""
    return [
        _curves(torques_of(columns), len(saved.tables) + index) for index, columns in enumerate(saved.torques.values())
    ]


def torque_table(torques: dict[str, TorquePrediction]) -> str:
    """Errors of each joint as HTML."""
    rows = "".join(
        f'<tr><td class="name">{escape(name)}</td><td class="n">{prediction.rmse:.3g} {prediction.unit}</td>'
        f'<td class="n">{100.0 * prediction.share:.1f} %</td></tr>'
        for name, prediction in torques.items()
    )
    if len(torques) > 1 and len({prediction.unit for prediction in torques.values()}) == 1:
        rows += f'<tr><td>all together</td><td></td><td class="n">{100.0 * whole_share(torques):.1f} %</td></tr>'
    head = '<tr><th>joint</th><th class="n">error (rms)</th><th class="n">of the torque</th></tr>'
    return f"<table>{head}{rows}</table>"


def _curves(torques: dict[str, TorquePrediction], index: int) -> dict[str, Any]:
    """Numbers for the script."""
    first = next(iter(torques.values()))
    stride = -(-len(first.time) // MOST_SAMPLES)
    channels = [
        {
            "name": f"{name}: torque" if prediction.unit == "N m" else f"{name}: force",
            "unit": prediction.unit,
            "measured": rounded(prediction.measured[::stride]),
            "estimated": rounded(prediction.predicted[::stride]),
            "rollout": [None] * len(prediction.time[::stride]),
        }
        for name, prediction in torques.items()
    ]
    return {"id": index, "time": rounded(first.time[::stride]), "channels": channels, "residuals": [], "inputs": []}
