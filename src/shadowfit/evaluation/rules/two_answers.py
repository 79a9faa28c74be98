"""What simulates best and what is most likely: two answers where the model lacks something."""

from __future__ import annotations

from collections.abc import Iterator

from shadowfit.estimation import Estimate
from shadowfit.evaluation.notices import MOST_UNKNOWN, Notice


def answers(estimate: Estimate) -> Iterator[Notice]:
    """Parameters whose most likely values are off those of the fit by more than an error bar.

    Where the model is right both are the same within what noise does (Hausman, Econometrica 1978).
    """
    likely = estimate.most_likely
    off = {
        row.name: (abs(row.value - likely[row.name]) / row.std, row)
        for row in estimate.parameters
        if row.name in likely and row.identifiable and not row.at_bound and row.std > 0.0
    }
    far = sorted((found for found in off.values() if found[0] > 1.0), key=lambda found: -found[0])[:MOST_UNKNOWN]
    if not far:
        return
    parts = [f"{row.name} {row.value:.4g} ({likely[row.name]:.4g}, {bars:.2g} bars)" for bars, row in far]
    yield Notice(
        "info",
        "the parameters that simulate best are not the most likely ones, in parentheses, since the model lacks "
        f"something: {', '.join(parts)}",
        "Simulate with the former; the latter are nearer to what single parts would be measured to be "
        "(`--criterion parameters`). `shadowfit advise` names what may be missing",
    )
