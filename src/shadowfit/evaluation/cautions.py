"""Reasons not to take Gauss–Newton error bars at their word, in sentences."""

from __future__ import annotations

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.compliance import giving_joints

# Robust standard deviations this many times larger are worth a word.
DISAGREEMENT = 2.0
# Noise this many times larger than stated is, too.
LOUD = 2.0


def cautions(estimate: Estimate) -> list[str]:
    """What a reader of the error bars should know; empty where nothing speaks against them."""
    if not estimate.parameters:
        return []
    plain, robust = estimate.uncertainty().std, estimate.uncertainty("robust").std
    found = []
    known = np.array([row.identifiable and not row.at_bound for row in estimate.parameters])
    ratio = np.where(known, robust / np.where(plain > 0.0, plain, np.nan), np.nan)
    if np.any(ratio > DISAGREEMENT):
        worst = int(np.nanargmax(ratio))
        found.append(
            f"residuals are strongly correlated in time or larger than assumed: the standard deviation of "
            f"{estimate.parameters[worst].name} is {ratio[worst]:.1f} times the stated one if that is heeded. "
            "Use robust intervals, and look for what the model lacks"
        )
    for noise, std in zip(estimate.evidence.noise[1:], estimate.weights.std, strict=True):
        level = noise.level() / estimate.weights.reference
        if level > LOUD:
            found.append(
                f"{noise.name} is {level:.1f} times noisier than its stated standard deviation of "
                f"{std * estimate.weights.reference:.2g}: raise it, or state_weight is too large for this model"
            )
    found += [f"not identifiable: {finding.text}" for finding in estimate.findings if len(finding.names) > 1]
    return found + giving_joints(estimate)
