"""Recordings, or pieces of them, that disagree about a parameter."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.forest import Compared, compared, piece_label
from shadowfit.evaluation.notices import Notice

# Error bars that disagreement makes this much wider are worth a word, and so many of them; beyond, a warning, unless
# they are still below this part of the value.
WIDER, MUCH_WIDER, MOST_PIECES, SMALL_BAR = 1.5, 3.0, 3, 0.01


def pieces(estimate: Estimate) -> Iterator[Notice]:
    """Recordings, or pieces of them, that disagree about a parameter."""
    if not estimate.parameters or not np.isfinite(estimate.cost):
        return
    # Pieces of a recording say anything about a parameter that the whole does not tell.
    identified = {row.name for row in estimate.parameters if row.identifiable}
    wide = [row for row in compared(estimate) if row.wider > WIDER and row.name in identified]
    bars = {row.name: row.std / abs(row.value) for row in estimate.parameters if row.value != 0.0}
    for row in sorted(wide, key=lambda one: -one.wider)[:MOST_PIECES]:
        unit = "" if row.unit == "1" else f" {row.unit}"
        low, high = row.extremes()
        # A machine may differ from recording to recording; of pieces of one, error bars say enough.
        matters = row.of_recordings and row.wider > MUCH_WIDER and bars.get(row.name, math.inf) > SMALL_BAR
        yield Notice(
            "amber" if matters else "info",
            f"{'recordings' if row.of_recordings else 'pieces of the data'} disagree about {row.name}: "
            f"{row.values[low]:.4g} in {_piece(estimate, row, low)}, {row.values[high]:.4g}{unit} in "
            f"{_piece(estimate, row, high)}; its error bar is {row.wider:.2g} times wider for it",
            _what_to_try(row),
        )


def _piece(estimate: Estimate, row: Compared, index: int) -> str:
    piece = row.pieces[index]
    names = [track.recording.name for track in estimate.problem.tracks]
    return piece_label(names, piece.recording, piece.begin, piece.end, row.of_recordings)


def _what_to_try(row: Compared) -> str:
    if row.of_recordings:
        return (
            f"If the machine was changed in between give it a value in each (`--each {row.name}`); else the model "
            "lacks something in which they differ (amplitude, direction, temperature): `shadowfit advise` names "
            "candidates"
        )
    if row.drifts:
        return (
            "It goes one way in time, as with a motion that decays or a machine that warms up: `shadowfit advise` "
            "names what the model may lack; `--from` and `--to` fit a part by itself"
        )
    return (
        "The model lacks something that changes between them (amplitude, direction, temperature): `shadowfit advise` "
        "names candidates"
    )
