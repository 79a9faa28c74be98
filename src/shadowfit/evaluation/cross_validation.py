"""Fit on one recording, judge on another: the paper's table of fits × recordings.

The cost of a recording with a fit's parameters fixed and only the states estimated says how much the model has to be
helped along there. Numbers of one column are comparable; those on the diagonal are of the fits' own data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.estimation.problem.parameters import FreeParameters
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """Costs per time step of each recording under each recording's fit."""

    recordings: tuple[str, ...]
    fits: tuple[Estimate, ...]
    """Of each recording."""
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
) -> CrossValidation:
    """Fit each recording by itself and estimate the states of all others with it; ``progress(done, all)`` after each.

    A κ that is estimated (``auto``) is estimated by each fit on its own data and kept for the others; columns then mix
    weights, so give a number for a fair table. Ctrl-C keeps what is done.
    """
    settings = options or Options()
    count = len(recordings)
    cost, fits, done = np.full((count, count), np.nan), [], 0
    try:
        for i, own in enumerate(recordings):
            fits.append(fit(mechanism, own, free, options=settings, optimiser=optimiser))
            fixed = dataclasses.replace(settings, state_weight=fits[i].state_weight)
            for j, other in enumerate(recordings):
                # Own data too: impulses are weighed by the mass that a fit starts from, here that of the result.
                cost[i, j] = fit(fits[i].mechanism(), other, (), options=fixed, optimiser=optimiser).cost
                done += 1
                if progress is not None:
                    progress(done, count * count)
    except KeyboardInterrupt:
        pass
    return CrossValidation(tuple(recording.name for recording in recordings), tuple(fits), cost)
