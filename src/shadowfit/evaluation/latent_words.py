"""Errors that are not white, in words: what they are functions of, how large, and what they do to error bars."""

from __future__ import annotations

import itertools

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.estimation.uncertainty.latent import Latent, LatentKind
from shadowfit.evaluation.unexplained import coordinate_names

WORDS: dict[LatentKind, str] = {
    "speed": "a function of its speed",
    "turning": "a function of the way since it turned last",
    "position": "a function of its position",
    "drive": "a function of the force that drives it",
    "late": "a drive that is late or early",
    "slow": "a force that varies slowly",
    "scale": "a function of its reading",
    "drift": "a slow drift",
}


def described(estimate: Estimate) -> list[str]:
    """Errors that are not white, of each joint and sensor: ``hinge: a function of its speed (3.1e-04 N m rms)``."""
    if not np.isfinite(estimate.cost) or not estimate.parameters:
        return []
    errors = sorted(estimate.evidence.latent.errors, key=lambda one: one.name)
    return [
        f"{name}: {', '.join(_what(estimate, one) for one in of_name)}"
        for name, of_name in itertools.groupby(errors, key=lambda one: one.name)
    ]


def _what(estimate: Estimate, error: Latent) -> str:
    return f"{WORDS[error.kind]} ({error.size:.2g} {_unit(estimate, error)} rms)"


def _unit(estimate: Estimate, error: Latent) -> str:
    if error.kind in ("scale", "drift"):
        return estimate.problem.mechanism.sensors[error.name].unit()
    names = estimate.problem.level_names or ()
    return coordinate_names(estimate)[1][names.index(error.name)]


def wider(estimate: Estimate) -> dict[str, float]:
    """By how much errors that are not white make the error bar of each parameter wider than white ones do."""
    evidence = estimate.evidence
    bread = evidence.bread(~evidence.at_bound)
    added = np.diagonal(bread @ evidence.latent.variance @ bread)
    white = np.maximum(evidence.std**2, np.finfo(float).tiny)
    growth = np.sqrt(1.0 + added / white)
    told = zip(estimate.parameters, growth.tolist(), strict=True)
    return {row.name: factor for row, factor in told if row.identifiable and not row.at_bound}
