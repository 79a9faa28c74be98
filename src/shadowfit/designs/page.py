"""The page of a design: what will be known, the motion within its limits, and how to record it."""

from __future__ import annotations

import importlib
from html import escape

import numpy as np

from shadowfit.designs.criteria import in_words
from shadowfit.designs.design import Design
from shadowfit.designs.drives import JointMotion, Release
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import coordinate_names
from shadowfit.errors import ShadowfitError
from shadowfit.evaluation.animation import skeleton
from shadowfit.evaluation.html_page import banner, frame, stage
from shadowfit.evaluation.notices import Notice, colour
from shadowfit.geometry import Pose

# A relative error bar beyond which a parameter counts as not known.
POOR = 0.3
# Error bars that a fit may be off by without noise, before it is said.
SHIFTED = 1.0


def sentence(found: Design) -> str:
    """What the design comes to, in words."""
    names = {"worst": "the worst error bar", "A": "the mean error bar", "D": "the mean error bar along the axes"}
    usual, best = min(found.usual.items(), key=lambda item: item[1])
    return (
        f"After {found.settings.duration:g} s of this motion {names[found.settings.criterion]} is "
        f"{100.0 * found.criterion:.2g} %; the best usual motion within the same limits ({usual}) leaves "
        f"{100.0 * best:.2g} %."
    )


def notices(found: Design) -> list[Notice]:
    """What a reader should know."""
    said = [Notice("amber", in_words(finding), "No motion within the limits changes that") for finding in found.unknown]
    for label, bar in zip(found.labels, found.relative.tolist(), strict=True):
        if bar > POOR:
            said.append(
                Notice("amber", f"{label} will be known to {100.0 * bar:.2g} % only", "Record longer, or wider")
            )
    said += _shifted(found)
    if found.late:
        said.append(
            Notice(
                "amber",
                f"the search was broken off after {found.settings.seconds:g} s, and may end elsewhere next time",
                "Give it more time (--seconds), or less to look at (--evaluations)",
            )
        )
    if found.setup.assumed:
        said.append(Notice("amber", f"limits that were assumed: {'; '.join(found.setup.assumed)}", "Give --limits"))
    return said


def _shifted(found: Design) -> list[Notice]:
    """Parameters that a fit will be off by more than their error bars, whatever the noise."""
    bars = np.divide(found.shift, found.std, out=np.zeros(len(found.std)), where=found.std > 0.0)
    off = [
        f"{label} by {own:+.2g}" for label, own in zip(found.labels, bars.tolist(), strict=True) if abs(own) > SHIFTED
    ]
    if not off:
        return []
    what = "what happens between samples, and dry friction near rest, will shift estimates, in error bars"
    advice = "Record faster (--interval), fit in shorter steps, or choose a lower --band"
    return [Notice("amber", f"{what}: {', '.join(off)}", advice)]


def design_page(found: Design) -> str:
    """The page as HTML."""
    own = found.experiment
    said = notices(found)
    bodies = own.bodies(Pose(found.motion.pose.position[0], found.motion.pose.orientation[0]))
    states = State(bodies, np.zeros((*bodies.position.shape[:-1], 6)))
    numbers = {"animation": skeleton(own.mechanism, found.motion.time, states)}
    sections = [
        ("Error bars to expect", _bars(found)),
        ("The motion", _motion(found)),
        ("What another second is worth", _growth(found)),
        ("Noise that was assumed", _noise(found)),
    ]
    head = banner(colour(said), sentence(found), said)
    return frame("Design of an experiment", own.mechanism.name, head, sections, numbers)


def _bars(found: Design) -> str:
    rows = []
    for i, label in enumerate(found.labels):
        known = np.isfinite(found.relative[i])
        cells = (f"{found.values[i]:.4g}", f"{found.std[i]:.2g}" if known else "", _percent(found.relative[i]))
        rows.append(
            f'<tr><td class="name">{escape(label)}</td>'
            + "".join(f'<td class="n">{cell}</td>' for cell in cells)
            + f"<td>{escape(found.units[i])}</td></tr>"
        )
    columns = "".join(f'<th class="n">{text}</th>' for text in ("value", "± std", "relative"))
    head = f"<tr><th>parameter</th>{columns}<th>unit</th></tr>"
    usual = ", ".join(f"{escape(name)} {100.0 * bar:.3g} %" for name, bar in found.usual.items())
    return (
        f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'
        f'<p class="soft">Usual motions as large as the limits allow: {usual}.</p>{_drawn("bars_figure", found)}'
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if np.isfinite(share) else "no motion tells it"


def _motion(found: Design) -> str:
    if isinstance(found.setup.drive, Release):
        names = coordinate_names(found.experiment.tree, found.experiment.mechanism)
        held = ", ".join(f"{n} at {x:.4g}" for n, x in zip(names, found.motion.coordinates[0, 0], strict=True))
        words = f"Hold {escape(held)}, and let go."
    elif isinstance(found.setup.drive, JointMotion):
        words = "A controller follows these joint motions, which begin and end at rest; inputs are those it will need."
    else:
        words = "Play these inputs; they begin and end at rest, and joints without a motor swing out."
    moving = stage("Dots are centres of mass, rings joints, boxes run on rails. Drag to turn.")
    return f"<p>{words} Limits are dashed.</p>{_drawn('motion_figure', found)}{moving}"


def _growth(found: Design) -> str:
    return (
        f"<p>At its end, one more second of such a motion lowers the worst error bar by {100.0 * found.worth:.2g} %. "
        f"Recording it n times lowers all of them by √n.</p>{_drawn('growth_figure', found)}"
    )


def _noise(found: Design) -> str:
    sensors = [(name, float(own.std), own.unit()) for name, own in found.experiment.mechanism.sensors.items()]
    forces = [(f"force of {name}", level, "N m, N") for name, level in found.force_noise.items()]
    rows = "".join(
        f'<tr><td class="name">{escape(name)}</td><td class="n">{std:.3g}</td><td>{escape(unit)}</td></tr>'
        for name, std, unit in (*sensors, *forces)
    )
    return (
        '<table><tr><th>of</th><th class="n">standard deviation</th><th>unit</th></tr>'
        f'{rows}</table><p class="soft">White at the sampling rate. Forces that are not given are taken to be known to '
        "a hundredth of what the motion needs; a fit of an earlier recording says what they are (unexplained).</p>"
    )


def _drawn(name: str, found: Design) -> str:
    """A figure, where the package that draws it is installed; else what to install."""
    try:
        figures = importlib.import_module("shadowfit.designs.figures")
    except ShadowfitError as error:
        return f'<p class="soft">{escape(str(error))}</p>'
    return figures.svg(getattr(figures, name)(found))
