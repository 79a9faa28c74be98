"""Fit on one recording, judge on another: the paper's table of fits × recordings.

The cost of a recording with a fit's parameters fixed and only the states estimated says how much the model has to be
helped along there. Numbers of one column are comparable; those on the diagonal are of the fits' own data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.estimation.problem.parameters import FreeParameters
from shadowfit.estimation.refits.many import many
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording
from shadowfit.records import record


@record(frozen=True)
class CrossValidation:
    """Costs per time step of each recording under each recording's fit."""

    recordings: tuple[str, ...]
    fits: tuple[Estimate, ...]
    """Of each recording (after Ctrl-C: of those whose row is done)."""
    cost: Float[np.ndarray, "fit recording"]
    """NaN where a state estimation was not made."""

    @property
    def average(self) -> Float[np.ndarray, " fit"]:
        """Mean cost of each fit over the recordings that it has not seen."""
        others = np.where(np.eye(len(self.recordings), dtype=bool), np.nan, self.cost)
        return np.array([np.mean(row[np.isfinite(row)]) if np.isfinite(row).any() else np.nan for row in others])

    def markdown(self) -> str:
        """The table."""
        lines = ["| fit of | " + " | ".join(self.recordings) + " | unseen, mean |"]
        lines.append("|---|" + "---|" * (len(self.recordings) + 1))
        for name, row, mean in zip(self.recordings, self.cost, self.average, strict=True):
            lines.append(f"| {name} | " + " | ".join(f"{value:.4g}" for value in row) + f" | {mean:.4g} |")
        return "\n".join(lines) + "\n"


def cross_validate(
    mechanism: Mechanism,
    recordings: Sequence[Recording],
    free: FreeParameters,
    options: Options | None = None,
    optimiser: LevenbergMarquardt | None = None,
    progress: Callable[[int, int], None] | None = None,
    n_jobs: int | None = -1,
) -> CrossValidation:
    """Fit each recording by itself and estimate the states of all with it; ``progress(done, all)`` after each row.

    A κ that is estimated (``auto``) is estimated by each fit on its own data and kept for the others; columns then mix
    weights, so give a number for a fair table. Rows are made in ``n_jobs`` threads (−1: one for each processor), or
    on a cluster. Ctrl-C keeps the rows that are done.
    """
    shared = (mechanism, tuple(recordings), free, options or Options(), optimiser)
    rows, _ = many(_row, range(len(recordings)), shared, n_jobs, progress)
    names = tuple(recording.name for recording in recordings)
    cost = np.full((len(names), len(names)), np.nan)
    for row in rows:
        cost[row.place] = row.cost
    return CrossValidation(names, tuple(row.fit for row in rows), cost)


@record(frozen=True)
class _Row:
    place: int
    fit: Estimate
    cost: Float[np.ndarray, " recording"]


def _row(
    place: int,
    mechanism: Mechanism,
    recordings: tuple[Recording, ...],
    free: FreeParameters,
    options: Options,
    optimiser: LevenbergMarquardt | None,
) -> _Row:
    estimate = fit(mechanism, recordings[place], free, options=options, optimiser=optimiser).unless_interrupted()
    fixed = dataclasses.replace(options, state_weight=estimate.state_weight)
    # Own data too: impulses are weighed by the mass that a fit starts from, here that of the result.
    states = (fit(estimate.mechanism(), other, (), options=fixed, optimiser=optimiser) for other in recordings)
    return _Row(place, estimate, np.array([one.unless_interrupted().cost for one in states]))
