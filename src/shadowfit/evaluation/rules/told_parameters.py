"""What is known of single parameters: on bounds, not told by the data, the other way round, hardly told apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.notices import MOST_UNKNOWN, Notice, it_or_them, listed
from shadowfit.evaluation.rules.friction import FRICTION, is_one_of, joints_without_friction
from shadowfit.evaluation.verdict import STRONG, correlation

# Correlation of two parameters beyond which neither should be used by itself.
INSEPARABLE = 0.99
# Part of a parameter below which a standard deviation is not told from rounding.
ROUNDING = 1e-13
# Names of numbers that are zero in machines without what they stand for, besides friction.
ABSENT_AT_ZERO = (
    *("offset", "delay", "asymmetry", "gear_loss", "load_loss", "quadratic", "stribeck_coulomb", "stribeck_rate"),
    *("eccentric_sin", "eccentric_cos"),
)
# Names of numbers whose sign is a direction: which way an input drives, or a sensor counts.
DIRECTED = ("gain", "torque_constant", "ratio", "scale")


def parameters(estimate: Estimate) -> Iterator[Notice]:
    """Parameters on a bound, or not told by the data."""
    idle = joints_without_friction(estimate)
    by_noise = estimate.uncertainty("gauss-newton").std
    for row, noise in zip(estimate.parameters, by_noise, strict=True):
        joint = row.name.partition(".")[0]
        unit = "" if row.unit == "1" else f" {row.unit}"
        if row.at_bound and row.value == 0.0 and is_one_of(row.name, FRICTION):
            yield Notice(
                "amber" if joint in idle else "info",
                f"{row.name} ended at zero",
                "All friction of this joint that is free went to zero, which no machine has: check directions and "
                "signs, and what is held"
                if joint in idle
                else "The data see no such friction beside the others of the joint",
            )
        elif row.at_bound:
            yield Notice(
                "amber",
                f"{row.name} sits on its bound {row.value:.4g}{unit}",
                "Widen the bound if it was a guess; else the model lacks something that the parameter tries to make up",
            )
        # What the data do not tell is named as such, whatever rounding leaves of its variance.
        elif row.identifiable and not row.from_prior and row.value != 0.0 and noise <= ROUNDING * abs(row.value):
            yield Notice(
                "red",
                f"the standard deviation of {row.name} by noise alone, {noise:.2g}{unit}, is below the "
                "rounding of its value",
                "The equations of motion outweigh the readings so far that these drown in rounding: leave "
                "`--state-weight` to the data, and check the stated noise of the sensors",
            )
    kept = [row.name for row in estimate.parameters if row.from_prior]
    if kept:
        parts = list(dict.fromkeys(name.partition(".")[0] for name in kept))
        which = listed(kept) if len(kept) <= MOST_UNKNOWN else f"of {listed(parts)}"
        yield Notice(
            "info",
            f"{len(kept)} of {len(estimate.parameters)} parameters stay near the model file's values: {which}",
            "The data tell less about them than is known beforehand (priors of `result.json`)",
        )
    yield from _untold(estimate)


def _untold(estimate: Estimate) -> Iterator[Notice]:
    """What the data do not tell: small friction and offsets apart from what a machine cannot be without."""
    unseen = {name for finding in estimate.findings for name in finding.names}
    unknown = [row for row in estimate.parameters if not row.at_bound and not row.identifiable]
    absent = [
        row.name for row in unknown if row.name not in unseen and is_one_of(row.name, (*FRICTION, *ABSENT_AT_ZERO))
    ]
    names = [row.name for row in unknown if row.name not in absent]
    groups = [finding for finding in estimate.findings if len(finding.names) > 1]
    if absent:
        yield Notice(
            "info",
            f"{listed(absent)} cannot be told from zero: the interval says how large "
            f"{'it' if len(absent) == 1 else 'they'} may be",
            f"Leave {it_or_them(absent)} out where that is enough",
        )
    if len(names) + len(groups) > MOST_UNKNOWN and np.isfinite(estimate.cost):
        base = estimate.base_parameters
        if base.grouped or base.unseen:
            yield _combined(estimate, len(names))
            return
    if names:
        one = len(names) == 1
        yield Notice(
            "amber",
            f"{listed(names)} {'is' if one else 'are'} not identifiable: {'its' if one else 'their'} standard "
            f"deviation{' exceeds its size' if one else 's exceed their sizes'}",
            f"Fix {it_or_them(names)} (no `--free`), or record a motion that depends on {it_or_them(names)}",
        )
    for finding in groups:
        yield Notice("amber", f"not identifiable: {finding.text.rstrip('.')}", "Fix one of them")


def _combined(estimate: Estimate, unknown: int) -> Notice:
    """Many parameters that are not told by themselves, in one sentence."""
    base = estimate.base_parameters
    return Notice(
        "amber",
        f"{unknown} of {len(estimate.parameters)} parameters are not identifiable by themselves: the motion determines "
        f"{len(base.combinations)} base parameters, {len(base.grouped)} of them combinations, and does not see "
        f"{len(base.unseen)} parameters at all",
        "The table of base parameters says which; the rest stays near the file's values, or where priors (`--prior`) "
        "have it",
    )


def directions(estimate: Estimate) -> Iterator[Notice]:
    """Inputs and sensors that came out the other way round: a mirrored channel is explained exactly by that."""
    given = {p.name: p.start for p in estimate.problem.parameters.parameters if not p.is_rotation}
    for row in estimate.parameters:
        name = row.name.partition("@")[0]
        if name.rpartition(".")[2] in DIRECTED and row.identifiable and row.value * float(given[name]) < 0.0:
            unit = "" if row.unit == "1" else f" {row.unit}"
            yield Notice(
                "amber",
                f"{row.name} came out as {row.value:.4g}{unit}, with the opposite sign of the model's "
                f"{float(given[name]):.4g}",
                "Check the sign of the channel and the direction of the axis; if the machine is that way round, say so "
                f"in the model (`--set {name}=…`)",
            )


def pairs(estimate: Estimate) -> Iterator[Notice]:
    """Parameters that are hardly told apart."""
    rows = estimate.parameters
    table = np.nan_to_num(correlation(estimate.covariance))
    for i, j in zip(*np.nonzero(np.abs(np.triu(table, 1)) > STRONG), strict=True):
        if rows[i].identifiable and rows[j].identifiable:
            yield Notice(
                "amber" if abs(table[i, j]) > INSEPARABLE else "info",
                f"{rows[i].name} and {rows[j].name} are hardly told apart (correlation {table[i, j]:.3f})",
                "Only a combination of the two is well known: fix one, or record another kind of motion",
            )
