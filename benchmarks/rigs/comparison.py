"""Fits with plain defaults, printed, and compared with each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.estimation import Estimate, fit
from shadowfit.estimation.problem.options import Options
from shadowfit.evaluation.latent_words import described
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording

Differences = list[tuple[str, str, float]]
"""Kind of the comparison, parameter, |difference|/combined standard deviation."""


def differences(first: Estimate, second: Estimate) -> list[tuple[str, float]]:
    """|difference|/combined standard deviation of the parameters that both fits tell."""
    pairs = zip(first.parameters, second.parameters, strict=True)
    return [
        (a.name, abs(a.value - b.value) / float(np.hypot(a.std, b.std)))
        for a, b in pairs
        if not (a.at_bound or b.at_bound) and a.identifiable and b.identifiable
    ]


def halves(mechanism: Mechanism, recording: Recording, free: Sequence[str]) -> list[tuple[str, float]]:
    """The same of the first and the second half of a recording."""
    middle = recording.time[0] + 0.5 * recording.duration
    spans = ((-np.inf, middle), (middle, np.inf))
    return differences(*(fit(mechanism, recording.between(*span), list(free)) for span in spans))


def told(title: str, estimate: Estimate, seconds: float) -> None:
    """Print a fit."""
    choice = estimate.noise_choice
    added = 1.0 if choice is None else choice.added_weight
    ended = f"{estimate.status.name.lower()}, {estimate.iterations} iterations"
    print(f"{title}: {ended}, {seconds:.0f} s, weight {added:.0e}")
    for text in described(estimate):
        print(f"    {text}")
    for row in estimate.parameters:
        print(f"    {row.name:28} {row.value:.5g} ± {row.std:.2g} {row.unit}{' at its bound' if row.at_bound else ''}")


def timed(
    mechanism: Mechanism, recording: Recording, free: Sequence[str], step: float | None = None
) -> tuple[Estimate, float]:
    """A fit with plain defaults, and its processor time [s]."""
    began = time.process_time()
    estimate = fit(mechanism, recording, list(free), options=Options(timestep=step))
    return estimate, time.process_time() - began


def repeats_and_halves(
    title: str,
    mechanism: Mechanism,
    recorded: Callable[[int], Recording],
    free: Sequence[str],
    truth: Callable[[Estimate], str],
) -> Differences:
    """Two recordings fitted and printed with a line about the truth, and compared; and the halves of the first."""
    pair = []
    for seed in (0, 1):
        estimate, seconds = timed(mechanism, recorded(seed), free)
        told(f"{title} {seed}", estimate, seconds)
        print(f"    {truth(estimate)}")
        pair.append(estimate)
    rows = [("repeats", *row) for row in differences(*pair)]
    return rows + [("halves", *row) for row in halves(mechanism, recorded(0), free)]
