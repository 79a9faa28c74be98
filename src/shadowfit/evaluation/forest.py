"""What pieces of the data say about each parameter by themselves, beside what all of them say: a forest plot's numbers.

The data are cut into about two, four and eight pieces (:mod:`shadowfit.estimation.uncertainty.blocks`). Of each
parameter the cut is shown whose pieces disagree most, or the finest one where all agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation import Estimate
from shadowfit.estimation.uncertainty.blocks import Piece, random_effects
from shadowfit.estimation.uncertainty.distributions import normal_quantile
from shadowfit.records import record

# Half a 95 % interval in standard deviations.
HALF = float(normal_quantile(0.975))
# Pieces in order: the correlation of their values with their places from which on a parameter drifts, and so many.
STEADY, FEWEST = 0.9, 4
# Characters that names of recordings may have in common.
LONG_NAME = 12


@record(frozen=True)
class Compared:
    """One parameter in the pieces of one cut."""

    name: str
    unit: str
    value: float
    """Of all data."""
    partition: int
    """Which cut, from few pieces to many."""
    pieces: tuple[Piece, ...]
    values: Float[np.ndarray, " b"]
    """Estimates of the pieces by themselves."""
    std: Float[np.ndarray, " b"]
    """What noise makes of them."""
    spread: float
    """τ: how much the parameter differs from piece to piece beyond noise; zero where they agree."""
    wider: float
    """Factor on its standard deviation for it."""

    @property
    def of_recordings(self) -> bool:
        """Whether each piece is a recording of its own."""
        return len({piece.recording for piece in self.pieces}) == len(self.pieces)

    @property
    def drifts(self) -> bool:
        """Whether the parameter goes one way in time."""
        known = np.isfinite(self.std)
        if self.of_recordings or np.count_nonzero(known) < FEWEST or np.ptp(self.values[known]) == 0.0:
            return False
        order = np.arange(np.count_nonzero(known))
        return bool(abs(np.corrcoef(order, self.values[known])[0, 1]) > STEADY)

    def extremes(self) -> tuple[int, int]:
        """The pieces with the lowest and the highest estimate, as far as noise lets them be told."""
        known = np.where(np.isfinite(self.std), self.std, np.inf)
        return int(np.argmin(self.values + known)), int(np.argmax(self.values - known))


def compared(estimate: Estimate) -> list[Compared]:
    """All parameters that are not on a bound, where the data can be cut into pieces."""
    disagreement, plain = estimate.evidence.disagreement, estimate.uncertainty("gauss-newton").std
    if not disagreement.pieces:
        return []
    listed = []
    for i, row in enumerate(estimate.parameters):
        if row.at_bound:
            continue
        columns = [
            (np.array([p.difference[i] for p in cut]), np.array([p.std[i] for p in cut])) for cut in disagreement.pieces
        ]
        growth = [random_effects(*column).growth for column in columns]
        best = int(np.argmax(growth)) if max(growth) > 0.0 else len(columns) - 1
        difference, std = columns[best]
        listed.append(
            Compared(
                row.name,
                row.unit,
                row.value,
                best,
                disagreement.pieces[best],
                row.value + difference,
                std,
                float(disagreement.spread[i]),
                float(np.sqrt(1.0 + disagreement.added[i] / plain[i] ** 2)) if plain[i] > 0.0 else 1.0,
            )
        )
    return listed


def as_fields(estimate: Estimate) -> dict[str, Any] | None:
    """The field ``disagreement`` of ``result.json``; None where no parameter was free."""
    if not estimate.parameters:
        return None
    disagreement, labels = estimate.evidence.disagreement, estimate.evidence.labels
    pieces = [
        [
            {
                "recording": piece.recording,
                "from": piece.begin,
                "to": piece.end,
                "difference": dict(zip(labels, piece.difference.tolist(), strict=True)),
                "std": dict(zip(labels, piece.std.tolist(), strict=True)),
            }
            for piece in cut
        ]
        for cut in disagreement.pieces
    ]
    rows = compared(estimate)
    return {
        "spread": {row.name: row.spread for row in rows if row.spread > 0.0},
        "parameters": {
            row.name: {"partition": row.partition, "spread": row.spread, "wider": row.wider} for row in rows
        },
        "pieces": pieces,
    }


def short(names: Sequence[str]) -> list[str]:
    """Names without the beginning and the end that they all have in common, where that is long."""
    begin = _common(names)
    end = _common([name[begin:][::-1] for name in names])
    if len(names) < 2 or begin + end < LONG_NAME:
        return list(names)
    return [name[begin : len(name) - end] or name for name in names]


def _common(names: Sequence[str]) -> int:
    """Characters that all names begin with."""
    same = [len(set(column)) == 1 for column in zip(*names, strict=False)]
    return (*same, False).index(False)


def piece_label(names: Sequence[str], recording: int, begin: float, end: float, whole: bool) -> str:
    """A piece in words: its recording where there are several, and its times unless it is all of it."""
    digit = math.floor(math.log10((end - begin) / 20.0)) if end > begin else -3
    time = f"{round(begin, -digit):g}–{round(end, -digit):g} s"
    if len(names) < 2:
        return time
    return names[recording] if whole else f"{names[recording]} {time}"
