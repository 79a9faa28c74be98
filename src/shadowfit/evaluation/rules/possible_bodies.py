"""Bodies on the edge of what is possible, and joints that give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.compliance import giving_joints
from shadowfit.evaluation.notices import Notice, it_or_them, listed

# χ² that bodies would gain beyond the edge of what they can have, from which on they are pulled there.
PULLED = 4.0
# Part of a body's largest moment of inertia by which held ones may give way without a warning.
GAVE_WAY = 0.2
# Inertias that a stated compliance puts off by less than this are of no concern.
SLIGHT = 0.01


def bodies(estimate: Estimate) -> Iterator[Notice]:
    """Bodies on the edge of what a body can have, and moments of inertia that gave way for a body to be possible."""
    if estimate.on_edge and np.isfinite(estimate.cost):
        evidence = estimate.evidence
        pull = evidence.gradient @ evidence.bread(~evidence.at_bound) @ evidence.gradient / evidence.reference**2
        yield Notice(
            "amber" if pull > PULLED else "info",
            f"{', '.join(estimate.on_edge)}: on the edge of what a body can have (flat, a second moment of zero)",
            "The data pull beyond it: free all six moments of inertia, or look for what the model lacks"
            if pull > PULLED
            else "The data do not mind",
        )
    changed = {name: value for name, value in estimate.followers().items() if value != _given(estimate, name)}
    hidden = {solid.body for solid in estimate.problem.parameters.solids if solid.hidden}
    for body in dict.fromkeys(name.partition(".")[0] for name in changed):
        names = [name for name in changed if name.startswith(f"{body}.")]
        values = listed([f"{name} = {changed[name]:.4g}" for name in names])
        if body in hidden:
            yield Notice("info", f"{values}: held, without effect on this motion, and as near as a body can have it")
            continue
        largest = max(abs(_given(estimate, f"{body}.inertia.{axis}")) for axis in ("xx", "yy", "zz"))
        moved = max(abs(changed[name] - _given(estimate, name)) for name in names)
        yield Notice(
            "amber" if moved > GAVE_WAY * largest else "info",
            f"{values}: moved from the model's {', '.join(f'{_given(estimate, name):.4g}' for name in names)}, with "
            "which no body has the estimated moments of inertia",
            f"Measure {it_or_them(names)}, or free {it_or_them(names)} as well if the motion tells {it_or_them(names)}",
        )


def _given(estimate: Estimate, name: str) -> float:
    """A number of the model as it was given."""
    return float(estimate.problem.given.get(name))


def joints(estimate: Estimate) -> Iterator[Notice]:
    """Joints that the fit took for rigid, and that give."""
    for effect, text in giving_joints(estimate) if estimate.parameters else ():
        yield Notice("amber" if effect > SLIGHT else "info", text.rstrip("."))
