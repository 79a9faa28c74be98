"""Steps in which a joint with dry friction rests: its equation of motion tells nothing there.

Friction of a joint at rest is whatever balances the other forces, up to its level L, and depends on how the joint came
to rest; a law that is a function of the speed has none. A torque that was measured at rest is therefore known to ± L
only, the whole pause long: of n steps of a pause none tells more than the first, and beside L that is next to nothing.
Counted like those of a motion, such equations make bodies fit what friction held (rotors of an arm that moves from
point to point ended at zero).

A joint rests where its readings stay within their noise for many steps. At a turn of a motion they do not: an axis with
the acceleration a leaves its turning point by ``a (8 h)²/2`` within half of the least rest, 0.3 mm or mrad for 0.1 m/s²
or rad/s² in steps of 10 ms.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.track import Track
from shadowfit.mechanism.sensors import JointPosition

# Steps that a rest takes at least, and how far apart its readings are at most, in standard deviations of their noise:
# that of so many readings hardly ever spans more.
LEAST_STEPS, APART = 16, 6.0
# Numbers of a joint's dry friction that may hold it at rest.
HOLDING = ("coulomb", "stribeck_coulomb", "dry", "stribeck", "gear_loss", "load_loss")


def resting(problem: Problem) -> tuple[Bool[np.ndarray, "n d"], ...] | None:
    """In which steps of each recording which coordinates rest; None where none does.

    A joint that never moves is left as it is: nothing else would tell the level of its errors. First and last steps
    count in any case: only they see the states before and behind all samples, which follow whatever is missing there.
    """
    names = problem.level_names or ()
    found = tuple(np.zeros((track.steps, len(names)), bool) for track in problem.tracks)
    for place, sensor in enumerate(problem.mechanism.sensors.values):
        if not (isinstance(sensor, JointPosition) and sensor.joint in names and _may_hold(problem, sensor.joint)):
            continue
        within, column = APART * float(problem.noise_floors[place]), names.index(sensor.joint)
        for track, rests in zip(problem.tracks, found, strict=True):
            rests[1:-1, column] = _still(_means(track, place), within)[1:-1]
    moves = ~np.all(np.concatenate([rests[1:-1] for rests in found]), axis=0)
    return tuple(rests & moves for rests in found) if np.any(np.concatenate(found) & moves) else None


def _may_hold(problem: Problem, name: str) -> bool:
    """Whether a joint has dry friction, or it is to be estimated."""
    law, free = problem.mechanism.joints[name].friction, set(problem.plan.layout.numbers)
    return any(f"{name}.{number}" in free or float(getattr(law, number, 0.0)) > 0.0 for number in HOLDING)


def _means(track: Track, sensor: int) -> Float[np.ndarray, " n"]:
    """Mean reading of each step; infinite where there is none, which is no rest."""
    present, measured = track.present[sensor], track.measured[sensor][..., 0]
    count = present.sum(axis=1)
    total = np.sum(np.where(present, measured, 0.0), axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def _still(reading: Float[np.ndarray, " n"], within: float) -> Bool[np.ndarray, " n"]:
    """Which steps lie in a stretch of the least length whose readings are no further apart than that."""
    if len(reading) < LEAST_STEPS or not np.isfinite(within):
        return np.zeros(len(reading), bool)
    stretches = np.lib.stride_tricks.sliding_window_view(reading, LEAST_STEPS)
    with np.errstate(invalid="ignore"):
        still = stretches.max(axis=1) - stretches.min(axis=1) <= within
    return np.convolve(still, np.ones(LEAST_STEPS)) > 0.5
