"""Which coordinates of a tree with loops a fit takes as independent, from the motion that it starts with.

At each time the motions that loops leave free are spanned by the columns of an orthonormal matrix N, ``C N = 0``.
Coordinates decide all others where their rows of N are far from dependent: from dead centres, where a rocker stands
still while the crank turns. They are chosen one after another, each as the one whose row is furthest from those before
it, at the time when it is nearest; of those that are almost as far, the first that people would name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.errors import MechanismError
from shadowfit.records import record

# Rows of the loops that count for less than this, relative to the largest, are redundant.
REDUNDANT = 1e-7
# A loop is near a singular configuration where a row that counts elsewhere counts for less than this.
SINGULAR = 1e-4
# A coordinate that is this fraction as good as the best is taken where it comes first.
ALMOST = 0.3
# A gap larger than this part of the mechanism (m for lengths of a metre, rad) is not closed.
CLOSED = 1e-3
# The same for compliant joints, which may carry a load wherever the machine is.
ASSEMBLED = 0.02
# A parameter pulls redundant loops apart if this part of what it does to the gaps cannot be closed.
PULLS = 1e-5
# Effects of parameters below this, relative to those of coordinates, are rounding: centres of mass have none on gaps.
NOTHING = 1e-9


@record(frozen=True)
class Closings:
    """Loops along a motion."""

    gap: Float[np.ndarray, "n m"]
    rows: Float[np.ndarray, "n m d"]
    by_parameters: Float[np.ndarray, "n m p"]
    time: Float[np.ndarray, " n"]
    """[s]."""
    joints: tuple[str, ...]
    """Joint of each row."""

    def part(self, chosen: Bool[np.ndarray, " m"]) -> Closings:
        """Some of the rows."""
        joints = tuple(joint for joint, one in zip(self.joints, chosen, strict=True) if one)
        parts = self.gap[:, chosen], self.rows[:, chosen], self.by_parameters[:, chosen]
        return Closings(*parts, self.time, joints)


def independent_coordinates(closings: Sequence[Closings], preferred: Sequence[int]) -> tuple[int, ...]:
    """Places of the independent coordinates, in order; ``preferred`` are all coordinates, those with a name first."""
    for one in closings:
        _check_closed(one, CLOSED)
    values = [np.linalg.svd(one.rows, compute_uv=False) for one in closings]
    largest = max(float(singular.max()) for singular in values)
    rank = max(int(np.sum(singular > REDUNDANT * largest, axis=1).max()) for singular in values)
    for one, singular in zip(closings, values, strict=True):
        _check_regular(one, singular, rank)
    rows = np.concatenate([one.rows for one in closings])
    free = np.linalg.svd(rows, full_matrices=True)[2][:, rank:].swapaxes(1, 2)
    chosen: list[int] = []
    for _ in range(free.shape[2]):
        distance = np.min(np.linalg.norm(free, axis=2), axis=0)
        best = distance.max()
        chosen.append(next(place for place in preferred if place not in chosen and distance[place] >= ALMOST * best))
        row = free[:, chosen[-1]]
        along = row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), np.finfo(float).tiny)
        free = free - np.einsum("nd,ne->nde", np.einsum("nde,ne->nd", free, along), along)
    return tuple(sorted(chosen))


def check_parameters(closings: Closings, names: Sequence[str]) -> None:
    """Raise where a free parameter would open a loop that other joints hold: redundant loops fit one size only."""
    inverse = np.linalg.pinv(closings.rows, rcond=REDUNDANT)
    left = closings.by_parameters - closings.rows @ (inverse @ closings.by_parameters)
    size = np.max(np.linalg.norm(closings.by_parameters, axis=1), axis=0)
    least = NOTHING * float(np.max(np.abs(closings.rows), initial=np.finfo(float).tiny))
    bad = np.max(np.linalg.norm(left, axis=1), axis=0) > np.maximum(PULLS * size, least)
    if bad.any():
        worst = int(np.flatnonzero(bad)[0])
        row = int(np.argmax(np.max(np.abs(left[:, :, worst]), axis=0)))
        raise MechanismError(
            f"the loops are redundant: {names[worst]!r} cannot change without opening joint {closings.joints[row]!r}, "
            "since other joints hold the same motion; do not free it, or leave out a joint that holds nothing"
        )


def check_assembled(closings: Closings) -> None:
    """Raise where compliant joints would have to be far open for the readings to be what they are."""
    if closings.joints:
        _check_closed(closings, ASSEMBLED)


def _check_closed(closings: Closings, most: float) -> None:
    size = max(1.0, float(np.max(np.abs(closings.rows))))
    worst = np.max(np.abs(closings.gap), axis=1)
    if not np.all(worst <= most * size):
        at = int(np.nanargmax(worst)) if np.isfinite(worst).any() else 0
        row = int(np.nanargmax(np.abs(closings.gap[at]))) if np.isfinite(closings.gap[at]).any() else 0
        raise MechanismError(
            f"joint {closings.joints[row]!r} cannot be closed: {abs(closings.gap[at, row]):.3g} m or rad remain at "
            f"{closings.time[at]:.4g} s, with the readings there; check lengths, offsets of sensors, and start values"
        )


def _check_regular(closings: Closings, values: Float[np.ndarray, "n k"], rank: int) -> None:
    if rank == 0:
        return
    weakest = values[:, rank - 1] / values[:, 0]
    at = int(np.argmin(weakest))
    if weakest[at] < SINGULAR:
        vectors = np.linalg.svd(closings.rows[at])[0]
        row = int(np.argmax(np.abs(vectors[:, rank - 1])))
        raise MechanismError(
            f"the loop of joint {closings.joints[row]!r} is in a singular configuration at {closings.time[at]:.4g} s: "
            "it can go on in more than one way there; use a part of the recording without it, or let the joint give "
            "(compliant = true in the model file)"
        )
