"""Pages inside the page: a machine that can be turned, a recording's channels. Self-contained, as reports are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from shadowfit.dynamics import State
from shadowfit.evaluation.animation import skeleton
from shadowfit.evaluation.html_page import document, rounded, stage
from shadowfit.geometry import Pose
from shadowfit.projects.project import Part
from shadowfit.recordings import Recording
from shadowfit.web.desk import Machine

MOST_SAMPLES = 6000
# Fills what holds it; a machine at rest has no time to choose.
STILL = (
    "<style>body { background: var(--panel); } .bar-row { display: none !important; } .chart { border: 0; margin: 0; } "
    ".stage canvas { height: calc(100vh - 3.5rem) !important; } p { margin: .4rem 1rem; } "
    "@media (max-width: 30rem) { .stage canvas { height: calc(100vh - 5rem) !important; } }</style>"
)


def machine_page(machine: Machine) -> str:
    """The machine where its simulations start."""
    state = machine.file.start.state(machine.mechanism)
    once = State(Pose(state.pose.position[None], state.pose.orientation[None]), state.velocity[None])
    scene = skeleton(machine.mechanism, np.zeros(1), once)
    caption = "Dots are centres of mass, rings joints, boxes run on rails. Drag to turn."
    return document(machine.mechanism.name, f"{STILL}{stage(caption)}", {"animation": scene})


def recording_page(recording: Recording, used: Sequence[Part] = ()) -> str:
    """All channels of a recording over time, what no part of the project uses in grey.

    A stretch that is chosen by dragging is told to the page around this one.
    """
    stride = -(-len(recording.time) // MOST_SAMPLES)
    time = rounded(recording.time[::stride])
    nothing = [None] * len(time)
    channels = [
        {
            "name": key,
            "unit": recording.units.get(key, "?"),
            "estimated": rounded(values[::stride]),
            "measured": nothing,
            "rollout": nothing,
        }
        for key, values in recording.channels.items()
    ]
    drawn = {"id": 0, "time": time, "channels": channels, "residuals": [], "inputs": []}
    drawn |= {"tells": True, "unused": unused(used)}
    notes = "".join(f'<p class="soft">{escape(text)}.</p>' for text in recording.warnings)
    return document(recording.name, f'{notes}<div id="recording-0"></div>', {"recordings": [drawn]})


def unused(parts: Sequence[Part]) -> list[tuple[float | None, float | None]]:
    """Stretches of time [s] that lie in none of the windows; None: from the first or to the last sample."""
    windows = sorted(
        (-math.inf if part.begin is None else part.begin, math.inf if part.end is None else part.end) for part in parts
    )
    gaps, reached = [], -math.inf
    for begin, end in windows:
        if begin > reached:
            gaps.append((reached, begin))
        reached = max(reached, end)
    if windows and reached < math.inf:
        gaps.append((reached, math.inf))
    return [tuple(None if math.isinf(end) else end for end in gap) for gap in gaps]  # type: ignore[misc]


def message_page(text: str) -> str:
    """A sentence in place of a page that cannot be drawn."""
    return document("", f'<p class="verdict amber">{escape(text)}</p>', {})
