"""What parameters that are held would gain if they were free, from one linearisation.

A held parameter with projected column T_c, and the present parameters with T_p (states are projected out of both,
:mod:`shadowfit.estimation.linear.projection`): with ``k = (−H_pp⁻¹ H_pc, 1)`` its score conditional on the present
parameters is ``s = kᵀTᵀr`` and its information ``h = kᵀHk``. It would move by ``−s/h``. Errors of the residuals give s
the variance ``kᵀMk``, M the variance of ``Tᵀe`` by the levels of the noise that the fit believes, so that the step has
the standard deviation ``√(kᵀMk)/h`` and gains ``s²/(kᵀMk)``: the drop of χ², ``s²/h``, where the weights are those of
the noise.

What a model lacks is part of the noise that its fit believes. A parameter that explains a share ρ of the objective
leaves ``1 − ρ`` of it; by the noise that is left its gain is ``1/(1 − ρ)`` times as large, and its variance ``1 − ρ``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.uncertainty.evidence import Evidence
from shadowfit.estimation.uncertainty.identifiability import THRESHOLD
from shadowfit.records import record

# Information of a parameter, or of a direction of several, that the present ones leave of its own: below this fraction
# it cannot be told from them.
REDUNDANT = 1e-8
# Least part of the objective that is left: of recordings without noise nothing would be.
LEAST = 1e-6


@record(frozen=True)
class Release:
    """What freeing a group of held parameters is predicted to do."""

    step: Float[np.ndarray, " m"]
    """How far each would move, in its unit."""
    std: Float[np.ndarray, " m"]
    """Standard deviation of the step, by the noise that would be left."""
    gain: float
    """Drop of χ² by the noise that would be left; zero where the group cannot be told from the present parameters."""
    share: float
    """ρ: part of the objective that it would explain."""
    degrees: int
    """Directions of the group that the data tell."""


def releases(
    evidence: Evidence, cost: float, present: Bool[np.ndarray, " p"], groups: Sequence[Sequence[int]]
) -> tuple[Release, ...]:
    """The prediction for each group of held parameters, given by their places; ``cost`` is the objective."""
    inverse = evidence.bread(present)
    spread = evidence.by_levels()
    predictions = []
    for group in groups:
        release = _release(evidence, inverse, spread, list(group))
        left = max(1.0 - release.share / cost, LEAST) if cost > 0.0 else 1.0
        predictions.append(
            dataclasses.replace(release, std=release.std * np.sqrt(left), gain=release.gain / left, share=1.0 - left)
        )
    return tuple(predictions)


def _release(
    evidence: Evidence, inverse: Float[np.ndarray, "p p"], spread: Float[np.ndarray, "p p"], group: list[int]
) -> Release:
    """By the present noise; the share is still in the units of the objective."""
    combined = -inverse @ evidence.matrix[:, group]
    combined[group] += np.eye(len(group))
    alone = np.sqrt(np.diagonal(evidence.matrix)[group])
    unit = combined / np.where(alone > 0.0, alone, 1.0)
    values, vectors = np.linalg.eigh(unit.T @ evidence.matrix @ unit)
    moves = unit[group] @ (vectors / np.sqrt(np.maximum(values, REDUNDANT**2)))
    sizes = evidence.reference * np.linalg.norm(moves / evidence.scale[group, None], axis=0)
    seen = (values > REDUNDANT) & (sizes < THRESHOLD)
    if not np.any(seen):
        return Release(np.zeros(len(group)), np.full(len(group), np.inf), 0.0, 0.0, 0)
    along = unit @ (vectors[:, seen] / np.sqrt(values[seen]))
    score, variance = along.T @ evidence.gradient, along.T @ spread @ along
    steps = moves[:, seen]
    gain = float(score @ np.linalg.solve(variance, score))
    std = np.sqrt(np.diagonal(steps @ variance @ steps.T))
    return Release(-steps @ score, std, gain, float(score @ score), int(np.count_nonzero(seen)))
