"""What the equations of motion leave unexplained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.notices import Notice, Severity
from shadowfit.evaluation.rules.friction import FRICTION, is_one_of, joints_without_friction
from shadowfit.evaluation.unexplained import Unexplained, unexplained

# Part of a joint's forces that the model does not explain: worth a word, a twentieth of the variance, a tenth of it.
NOTED, MUCH, TOO_MUCH = 0.1, math.sqrt(0.05), math.sqrt(0.1)
# The same of a joint whose drive's force is known: half of its variance. Gears of small joints lose 30 or 40 % of their
# torque in ways that no rigid model has, and all methods leave that; of a wrong channel nothing is explained.
HALF = math.sqrt(0.5)
# Correlation of the missing force with the speed from which on it drives the motion.
DRIVING = 0.3


def forces(estimate: Estimate) -> Iterator[Notice]:
    """What the equations of motion leave unexplained, against the strongest force there is."""
    if not np.isfinite(estimate.cost):
        return
    idle = joints_without_friction(estimate)
    for force in unexplained(estimate):
        if force.gain > DRIVING and force.name in idle:
            yield _driven(force, _held_friction(estimate, force.name))
        if force.share > NOTED:
            red = force.share > (HALF if force.driven else TOO_MUCH)
            severity: Severity = "red" if red else "amber" if force.share > MUCH else "info"
            yield Notice(
                severity,
                f"at {force.name} a force of {force.level:.2g} {force.unit} is unexplained, {_times(force.share)} "
                f"the strongest one there ({force.typical:.2g} {force.unit})",
                _what_to_check(force, severity),
            )


def _what_to_check(force: Unexplained, severity: Severity) -> str:
    if severity == "info":
        return "Error bars include it; `shadowfit advise` names what the model may lack"
    if force.driven == "loop" and severity != "red":
        return (
            "Losses of gears, cables and flexibility are what rigid models lack, and wrong gains of the loop look so: "
            "`shadowfit advise` names candidates, and free gains (`--free '*.kp'`) say whether they are right"
        )
    if force.driven and severity != "red":
        return (
            "Compare measured and predicted torque in the report: losses of gears, cables and flexibility are what "
            "rigid models lack, and `shadowfit validate` says what they cost"
        )
    return (
        "Run `shadowfit check`: signs and units of channels and inputs, and what drives or brakes this joint that "
        "the model does not have"
    )


def _driven(force: Unexplained, held: Sequence[str]) -> Notice:
    if held:
        return Notice(
            "red",
            f"{force.name} has less friction than the model holds it at ({', '.join(held)}), and what is free of it "
            "went to zero",
            f"Free what is held (`--free {held[0].partition(' = ')[0]}`), or measure it; else look for a recording "
            "that runs backwards, or an input with the wrong sign",
        )
    return Notice(
        "red",
        f"the motion of {force.name} gains energy that nothing in the model gives, and its friction went to zero",
        "Look for a recording that runs backwards, an input with the wrong sign, or a drive that is not modelled",
    )


def _held_friction(estimate: Estimate, joint: str) -> list[str]:
    """Numbers of a joint's friction that are not free and not zero, with their values."""
    mechanism, free = estimate.problem.given, {row.name for row in estimate.parameters}
    return [
        f"{name} = {value:.4g}"
        for name, leaf in mechanism.leaves().items()
        if leaf.kind == "number" and name.partition(".")[0] == joint and is_one_of(name, FRICTION) and name not in free
        # The damping of a joint's constraint is a time, and takes nothing from its motion.
        if mechanism.unit(name) != "s"
        if (value := float(mechanism.get(name))) > 0.0
    ]


def _times(share: float) -> str:
    return f"{share:.0%} of" if share < 2.0 else f"{share:.0f} times"
