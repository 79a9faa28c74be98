"""The report's figure of unexplained forces: of each joint over its speed, its position and time."""

from __future__ import annotations

from html import escape
from typing import Any, Literal

import numpy as np

from shadowfit.arrays import Float
from shadowfit.evaluation.axis_forces import AxisForce
from shadowfit.evaluation.error_kinds import error_kinds
from shadowfit.evaluation.html_page import part_of, rounded, split
from shadowfit.evaluation.store import SavedResult
from shadowfit.records import record

# Steps of a joint that are drawn as single dots, and means of equally many steps.
MOST_DOTS, BINS = 400, 24

Over = Literal["speed", "position", "time"]


def section(saved: SavedResult) -> str:
    """The text of the section, with a place for each joint's charts."""
    forces = _by_joint(saved)
    if not forces:
        return ""
    # Where the weights were given they say nothing about the data.
    levels = saved.summary["unexplained"] if saved.summary.get("noise_choice") else {}
    shares = saved.summary.get("unexplained_share") or {}
    blocks = [
        '<p class="soft">What the equations of motion lack along the most likely motion, and would have to be added to '
        "the model. Dots are single time steps, the others means of many with twice their standard error. A curve over "
        "speed is friction that the model does not have, one over position a spring, a cable or an eccentric gear, one "
        "over time a drift; <code>shadowfit advise</code> says what would explain it.</p>"
    ]
    for index, (joint, forces_of_joint) in enumerate(forces.items()):
        unit = forces_of_joint.units["force"]
        level = levels.get(joint, float(np.sqrt(np.mean(forces_of_joint.joined.force**2))))
        text = f"{level:.2g} {unit} rms"
        if shares.get(joint) is not None:
            text += f", {part_of(shares[joint])} the strongest force there"
        kinds = error_kinds(forces_of_joint.each)
        if kinds is not None:
            text += (
                f"; {kinds.state:.0%} of its variance is a function of the joint's speed and position, "
                f"{kinds.slow:.0%} varies slowly, {kinds.neither:.0%} neither"
            )
        blocks.append(
            f'<h3>{escape(joint)}</h3><p class="soft">{escape(text)}.</p><div class="row" id="force-{index}"></div>'
        )
    return "".join(blocks)


def numbers(saved: SavedResult) -> list[dict[str, Any]]:
    """What the script draws: for each joint three charts."""
    return [
        {
            "id": index,
            "unit": forces.units["force"],
            "charts": [
                _chart(forces, "speed", [forces.joined]),
                _chart(forces, "position", [forces.joined]),
                _chart(forces, "time", forces.each),
            ],
        }
        for index, forces in enumerate(_by_joint(saved).values())
    ]


@record(frozen=True)
class _Joint:
    """A joint's forces in all recordings."""

    units: dict[str, str]
    each: list[AxisForce]

    @property
    def joined(self) -> AxisForce:
        """All recordings in a row."""
        return AxisForce(
            *(
                np.concatenate([getattr(part, key) for part in self.each])
                for key in ("time", "position", "speed", "force")
            )
        )


def _by_joint(saved: SavedResult) -> dict[str, _Joint]:
    joints: dict[str, _Joint] = {}
    for table in saved.forces.values():
        columns = {split(heading)[0]: (values, split(heading)[1]) for heading, values in table.items()}
        for joint in (key.removesuffix(".unexplained") for key in columns if key.endswith(".unexplained")):
            names = ("time", f"{joint}.position", f"{joint}.speed", f"{joint}.unexplained")
            force = AxisForce(*(columns[name][0] for name in names))
            units = dict(zip(("time", "position", "speed", "force"), (columns[name][1] for name in names), strict=True))
            if len(force.force) and np.all(np.isfinite(force.force)):
                joints.setdefault(joint, _Joint(units, [])).each.append(force)
    return joints


def _chart(joint: _Joint, over: Over, parts: list[AxisForce]) -> dict[str, Any]:
    stride = -(-sum(len(part.force) for part in parts) // MOST_DOTS)
    dots = [(getattr(part, over)[::stride], part.force[::stride]) for part in parts]
    bins = [part.binned(over, BINS) for part in parts]
    along = np.concatenate([x for x, _ in dots])
    return {
        "over": f"{over} [{joint.units[over]}]",
        "explains": _explained(parts, over),
        "low": float(along.min()),
        "high": float(along.max()),
        "x": rounded(along),
        "y": rounded(np.concatenate([y for _, y in dots])),
        "means": [
            {"x": rounded(mean.over), "y": rounded(mean.force), "error": rounded(2.0 * mean.error)} for mean in bins
        ],
    }


def _explained(parts: list[AxisForce], over: Over) -> float:
    """Part of the force's variance that its means over bins explain, less what they would of noise; 0 to 1."""
    inside, count = 0.0, 0
    for part in parts:
        order = np.argsort(getattr(part, over), kind="stable")
        groups = [part.force[group] for group in np.array_split(order, BINS) if len(group)]
        inside += sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
        count += len(groups)
    force: Float[np.ndarray, " n"] = np.concatenate([part.force for part in parts])
    total, free = float(np.sum((force - force.mean()) ** 2)), len(force) - count
    if free <= 0 or total == 0.0:
        return 0.0
    return max(0.0, 1.0 - (inside / free) / (total / (len(force) - 1)))
