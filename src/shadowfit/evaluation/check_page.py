"""The page of ``shadowfit check``: forces that the motion needs beside those that the model gives, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from shadowfit.evaluation.html_page import banner, frame, rounded
from shadowfit.evaluation.notices import Colour, colour
from shadowfit.evaluation.precheck import Balance, Check
from shadowfit.evaluation.used_channels import unit_of, used_channels
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording

MOST_SAMPLES = 6000
SENTENCES: dict[Colour, str] = {
    "green": "Model and recordings belong together: nothing speaks against a fit.",
    "amber": "A fit is possible; read this first.",
    "red": "Something is wrong with model or recordings: a fit would find numbers, but not those of the machine.",
}
# Said below the table of what a fit could tell.
ORDER_OF_MAGNITUDE = (
    "Orders of magnitude, from one linearisation at the start values with forces known to a hundredth: a machine that "
    "follows its model better is known better."
)


def sentence(check: Check) -> str:
    """The verdict in words."""
    return SENTENCES[colour(check.notices)]


def check_page(mechanism: Mechanism, recordings: Sequence[Recording], check: Check) -> str:
    """The page as HTML."""
    title = f"{mechanism.name}: {', '.join(recording.name for recording in recordings)}"
    sections = [
        ("Forces along the joints", _forces(recordings, check)),
        ("What was measured", _channels(mechanism, recordings)),
        ("What a fit could tell", _precision(check)),
    ]
    numbers: dict[str, Any] = {
        "recordings": [_recording(mechanism, recording, i, check) for i, recording in enumerate(recordings)],
    }
    head = banner(colour(check.notices), sentence(check), check.notices)
    return frame("Check before a fit", title, head, sections, numbers)


def _forces(recordings: Sequence[Recording], check: Check) -> str:
    legend = (
        '<p class="legend"><span><i class="key measured"></i>needed: inertia less gravity of the measured motion</span>'
        '<span><i class="key estimated"></i>given by motors and friction with the start values</span>'
        '<span class="hint">drag to zoom, double-click for all</span></p>'
    )
    if not check.balances:
        legend = "<p>Loops, contacts and many joints are not looked at joint by joint. These are the channels.</p>"
    blocks = []
    for index, recording in enumerate(recordings):
        heading = f"<h3>{escape(recording.name)}</h3>" if len(recordings) > 1 else ""
        lines = "".join(_line(balance) for balance in check.balances[index]) if check.balances else ""
        blocks.append(f'{heading}{lines}<div id="recording-{index}"></div>')
    return legend + "".join(blocks)


def _line(balance: Balance) -> str:
    words = {"gravity": "gravity", "input": "inputs", "viscous": "viscous friction", "dry": "dry friction"}
    parts = ", ".join(f"{words[name]} × {value:.3g}" for name, value in balance.coefficients.items())
    explained = f"{max(balance.explained, 0.0):.0%} explained" + (f" by {parts}" if parts else "")
    return f'<p class="soft">{escape(balance.name)}: {escape(explained)}.</p>'


def _channels(mechanism: Mechanism, recordings: Sequence[Recording]) -> str:
    names = ("recording", "channel", "unit", "column")
    numbers = ("from", "to", "steps of", "samples", "interval [s]")
    head = "".join(f"<th>{name}</th>" for name in names) + "".join(f'<th class="n">{name}</th>' for name in numbers)
    lines = [f"<tr>{head}</tr>"]
    for one in used_channels(mechanism, recordings):
        words = (one.recording, one.name, one.unit, one.column)
        step = "" if one.step is None else f"{one.step:.3g}"
        cells = (f"{one.low:.4g}", f"{one.high:.4g}", step, str(one.samples), f"{one.interval:.4g}")
        lines.append(
            "<tr>"
            + "".join(f"<td>{escape(word)}</td>" for word in words)
            + "".join(f'<td class="n">{cell}</td>' for cell in cells)
            + "</tr>"
        )
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _precision(check: Check) -> str:
    if not check.relative_std:
        return "<p>No parameter is wished for (--free).</p>"
    numeric = ("start", "std", "of its size")
    head = "<th>parameter</th>" + "".join(f'<th class="n">{name}</th>' for name in numeric) + "<th>unit</th>"
    rows = "".join(
        f'<tr><td class="name">{escape(name)}</td>'
        + "".join(f'<td class="n">{number}</td>' for number in numbers)
        + f"<td>{escape(unit)}</td></tr>"
        for name, *numbers, unit in known_to(check)
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div><p class="soft">{ORDER_OF_MAGNITUDE}</p>'


def known_to(check: Check) -> list[tuple[str, str, str, str, str]]:
    """Name, start value, standard deviation, the same over the parameter's size, and unit; the best known first."""
    rows = []
    for one in sorted(check.told, key=lambda row: check.relative_std[row.name]):
        share = check.relative_std[one.name]
        part = f"{100.0 * share:.2g} %" if one.start else ""
        reached = (f"{one.std:.2g}", part) if share < 1.0 else ("", "not told")
        rows.append((one.name, f"{one.start:.6g}", *reached, "" if one.unit == "1" else one.unit))
    return rows


def _recording(mechanism: Mechanism, recording: Recording, index: int, check: Check) -> dict[str, Any]:
    """Numbers for the script: forces where there are any, channels below."""
    stride = -(-len(recording.time) // MOST_SAMPLES)
    time = recording.time[::stride]
    channels = []
    for balance in check.balances[index] if check.balances else ():
        needed, given = (np.interp(time, balance.time, values) for values in (balance.needed, balance.given))
        channels.append(
            {
                "name": f"{balance.name}: force",
                "unit": balance.unit,
                "measured": rounded(needed),
                "estimated": rounded(given),
                "rollout": [None] * len(time),
            }
        )
    sensors = {name.split(".")[0] for name in mechanism.sensors}
    plain = [
        {"kind": "sensor", "name": key, "unit": unit_of(mechanism, recording, key), "values": rounded(values[::stride])}
        for key, values in recording.channels.items()
        if key.split(".", maxsplit=1)[0] in sensors
    ]
    inputs = [
        {"kind": "input", "name": key, "unit": part.unit, "values": rounded(recording.channels[key][::stride])}
        for key, part in mechanism.inputs.items()
        if key in recording.channels
    ]
    return {
        "id": index,
        "time": rounded(time),
        "channels": channels,
        "residuals": [],
        "inputs": [*plain, *inputs],
    }
