"""The page of a design: what will be known, the motion within its limits, and how to record it."""

from __future__ import annotations

import importlib
from html import escape

import numpy as np

from shadowfit.designs.criteria import in_words
from shadowfit.designs.design import Design
from shadowfit.designs.drives import JointMotion, Release
from shadowfit.designs.ending import RESTING, braking_time
from shadowfit.designs.motions import rotary, single_axes
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


def percent(share: float) -> str:
    """A relative error bar with two digits, also where it is large; in words where nothing is known."""
    return f"{float(f'{100.0 * share:.2g}'):,g} %" if np.isfinite(share) else "no motion tells it"


def sentence(designed: Design) -> str:
    """What the design comes to, in words."""
    names = {"worst": "the worst error bar", "A": "the mean error bar", "D": "the mean error bar along the axes"}
    usual, best = min(designed.usual.items(), key=lambda item: item[1])
    return (
        f"After {designed.settings.duration:g} s of this motion {names[designed.settings.criterion]} is "
        f"{percent(designed.criterion)}; the best usual motion within the same limits ({usual}) leaves "
        f"{percent(best)}."
    )


def ending(designed: Design) -> str:
    """What rests when the recording ends and what still moves, in words."""
    if isinstance(designed.setup.drive, JointMotion):
        return "All joints end at rest, where they started."
    limits, units = designed.setup.limits.joints, dict(zip(designed.end_speeds, _speed_units(designed), strict=True))
    resting = {name: limit for name, joint in limits.items() if (limit := joint.end_speed) is not None}
    moving = [
        f"{name} at {speed:.2g} {units[name]}" for name, speed in designed.end_speeds.items() if name not in resting
    ]
    held = ", ".join(f"{name} (below {limit:.2g} {units[name]})" for name, limit in resting.items())
    seconds = f"{RESTING * braking_time(designed.experiment):.2g} s"
    parts = [f"in the last {seconds} the inputs hold at rest: {held}"] if held else []
    parts += [f"still moving when the recording ends, since nothing drives them: {', '.join(moving)}"] if moving else []
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _speed_units(designed: Design) -> list[str]:
    axes = single_axes(designed.experiment.tree)
    return ["m/s" if direction < 3 else "rad/s" for _, _, direction in axes]


def notices(designed: Design) -> list[Notice]:
    """What a reader should know."""
    listed = [
        Notice("amber", in_words(finding), "No motion within the limits changes that") for finding in designed.unknown
    ]
    for label, bar in zip(designed.labels, designed.relative.tolist(), strict=True):
        if bar > POOR:
            listed.append(Notice("amber", f"{label} will be known to {percent(bar)} only", "Record longer, or wider"))
    listed += _shifted(designed)
    if designed.late:
        listed.append(
            Notice(
                "amber",
                f"the search was broken off after {designed.settings.seconds:g} s, and may end elsewhere next time",
                "Give it more time (--seconds), or less to look at (--evaluations)",
            )
        )
    if designed.setup.assumed:
        listed.append(
            Notice("amber", f"limits that were assumed: {'; '.join(designed.setup.assumed)}", "Give --limits")
        )
    return listed


def _shifted(designed: Design) -> list[Notice]:
    """Parameters that a fit will be off by more than their error bars, whatever the noise."""
    bars = np.divide(designed.shift, designed.std, out=np.zeros(len(designed.std)), where=designed.std > 0.0)
    off = [
        f"{label} by {bar:+.2g}"
        for label, bar in zip(designed.labels, bars.tolist(), strict=True)
        if abs(bar) > SHIFTED
    ]
    if not off:
        return []
    what = "what happens between samples, and dry friction near rest, will shift estimates, in error bars"
    advice = "Record faster (--interval), fit in shorter steps, or choose a lower --band"
    return [Notice("amber", f"{what}: {', '.join(off)}", advice)]


def design_page(designed: Design) -> str:
    """The page as HTML."""
    experiment = designed.experiment
    listed = notices(designed)
    bodies = experiment.bodies(Pose(designed.motion.pose.position[0], designed.motion.pose.orientation[0]))
    states = State(bodies, np.zeros((*bodies.position.shape[:-1], 6)))
    numbers = {"animation": skeleton(experiment.mechanism, designed.motion.time, states)}
    sections = [
        ("Error bars to expect", _bars(designed)),
        ("The motion", _motion(designed)),
        ("What another second is worth", _growth(designed)),
        ("Noise that was assumed", _noise(designed)),
    ]
    head = banner(colour(listed), sentence(designed), listed)
    return frame("Design of an experiment", experiment.mechanism.name, head, sections, numbers)


def _bars(designed: Design) -> str:
    rows = []
    for i, label in enumerate(designed.labels):
        known = np.isfinite(designed.relative[i])
        cells = (f"{designed.values[i]:.4g}", f"{designed.std[i]:.2g}" if known else "", percent(designed.relative[i]))
        rows.append(
            f'<tr><td class="name">{escape(label)}</td>'
            + "".join(f'<td class="n">{cell}</td>' for cell in cells)
            + f"<td>{escape(designed.units[i])}</td></tr>"
        )
    columns = "".join(f'<th class="n">{text}</th>' for text in ("value", "± std", "relative"))
    head = f"<tr><th>parameter</th>{columns}<th>unit</th></tr>"
    usual = ", ".join(f"{escape(name)} {percent(bar)}" for name, bar in designed.usual.items())
    return (
        f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'
        f'<p class="soft">Usual motions as large as the limits allow: {usual}.</p>{_drawn("bars_figure", designed)}'
    )


def _motion(designed: Design) -> str:
    if isinstance(designed.setup.drive, Release):
        names = coordinate_names(designed.experiment.tree, designed.experiment.mechanism)
        held = ", ".join(f"{n} at {x:.4g}" for n, x in zip(names, designed.motion.coordinates[0, 0], strict=True))
        words = f"Hold {escape(held)}, and let go."
    elif isinstance(designed.setup.drive, JointMotion):
        words = "A controller follows these joint motions; inputs are those it will need."
    else:
        words = "Play these inputs."
    moving = stage("Dots are centres of mass, rings joints, boxes run on rails. Drag to turn.")
    return f"<p>{words} {escape(ending(designed))} Limits are dashed.</p>{_drawn('motion_figure', designed)}{moving}"


def _growth(designed: Design) -> str:
    return (
        f"<p>At its end, one more second of such a motion lowers the worst error bar "
        f"by {percent(designed.worth)}. "
        f"Recording it n times lowers all of them by √n.</p>{_drawn('growth_figure', designed)}"
    )


def _noise(designed: Design) -> str:
    mechanism, tree = designed.experiment.mechanism, designed.experiment.tree
    sensors = [(name, float(sensor.std), sensor.unit()) for name, sensor in mechanism.sensors.items()]
    forces = [
        (f"force of {name}", designed.force_noise[name], "N m" if angle else "N")
        for name, angle in zip(coordinate_names(tree, mechanism), rotary(tree), strict=True)
    ]
    rows = "".join(
        f'<tr><td class="name">{escape(name)}</td><td class="n">{std:.3g}</td><td>{escape(unit)}</td></tr>'
        for name, std, unit in (*sensors, *forces)
    )
    return (
        '<table><tr><th>of</th><th class="n">standard deviation</th><th>unit</th></tr>'
        f'{rows}</table><p class="soft">White at the sampling rate. Forces that are not given are taken to be known to '
        "a hundredth of what the motion needs; a fit of an earlier recording says what they are (unexplained).</p>"
    )


def _drawn(name: str, designed: Design) -> str:
    """A figure, where the package that draws it is installed; else what to install."""
    try:
        figures = importlib.import_module("shadowfit.designs.figures")
    except ShadowfitError as error:
        return f'<p class="soft">{escape(str(error))}</p>'
    return figures.svg(getattr(figures, name)(designed))
