"""How far estimates, bars and choices move under changes that should not matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.scoreboard.case import Outcome
from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered

SAYS = (
    "Stability: the same fit under changes that should not matter (rounding: readings times 1 + 1e-10, degrees, "
    "another clock, order of columns, BLAS kernels, threads; noise: a hundredth of the stated noise added) or hardly "
    "(the first or last 1 and 2 % left out). A choice is a word of the verdict, a named error, a bound, or a setting "
    "that was chosen."
)
NUMBER = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?")
# Numbers within a choice that differ by more than this factor are another choice.
ANOTHER = 2.0


def _pairs(outcomes: Outcomes, family: str) -> Iterator[tuple[Outcome, Outcome]]:
    """The fit as it is, and each of a family."""
    found = answered(outcomes)
    reference = next((one for one in found.values() if one["family"] == "reference"), None)
    if reference is not None:
        yield from ((reference, one) for one in found.values() if one["family"] == family)


def moves(outcomes: Outcomes, family: str) -> list[float]:
    """Moves of all estimates, in bars of the fit as it is."""
    return [
        abs(other["parameters"][name]["value"] - row["value"]) / row["std"]
        for first, other in _pairs(outcomes, family)
        for name, row in first["parameters"].items()
        if row["std"] and row["identifiable"]
    ]


def factors(outcomes: Outcomes, family: str) -> list[float]:
    """Bars over those of the fit as it is, or the other way round: which of two fits is the reference is chance."""
    pairs = (
        (other["parameters"][name]["std"], row["std"])
        for first, other in _pairs(outcomes, family)
        for name, row in first["parameters"].items()
        if row["std"] and row["identifiable"] and other["parameters"][name]["std"]
    )
    return [max(pair) / min(pair) for pair in pairs]


def chosen(found: Outcome) -> dict[str, Any]:
    """Everything that was decided: verdict, ending, named errors, and other choices with their words."""
    errors = {f"{name}: {kind}": "" for name, kind, _ in found["errors"]}
    # Errors in words are the named ones again.
    own = {what: text for what, text in found["choices"].items() if what != "errors that are not white"}
    notices = {NUMBER.sub("#", text): severity for severity, text in found["notices"] if severity != "info"}
    bounds = {name: "on its bound" for name, row in found["parameters"].items() if row["at_bound"]}
    return {"verdict": found["verdict"], "converged": str(found["converged"]), **errors, **own, **notices, **bounds}


def changed(first: Mapping[str, str], other: Mapping[str, str]) -> int:
    """Number of choices that differ: there or not, in words, or in a number by more than a factor of two."""
    return sum(not _same(first.get(what), other.get(what)) for what in {*first, *other})


def _same(first: str | None, other: str | None) -> bool:
    if first is None or other is None or NUMBER.sub("#", first) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(first), NUMBER.findall(other), strict=True)
    sizes = [(abs(float(a)), abs(float(b))) for a, b in pairs]
    return all(max(pair) <= ANOTHER * min(pair) for pair in sizes)


def changes(outcomes: Outcomes, family: str) -> float | None:
    """Most changed choices of any fit of a family."""
    found = [changed(chosen(first), chosen(other)) for first, other in _pairs(outcomes, family)]
    return max(found, default=None)


def _of(
    summarised: Callable[[list[float]], float], values: Callable[..., list[float]], family: str
) -> Callable[..., Any]:
    return lambda outcomes: summarised(found) if (found := values(outcomes, family)) else None


def _family(family: str, move: float, factor: float, within: str) -> Iterator[Measure]:
    """The three measures of a family, with the goals of the largest move in bars and of the largest factor.

    On another processor a machine that jumps does so elsewhere, hence the tolerances of the quick form.
    """
    yield Measure(
        Metric(
            f"{family}: move",
            f"largest move of an estimate in bars, {within}",
            "bars",
            "target",
            (None, move),
            Tolerance(move, 0.5),
            Tolerance(move, 1.0),
        ),
        _of(max, moves, family),
    )
    yield Measure(
        Metric(
            f"{family}: bars",
            f"largest factor between a bar and that of the fit as it is, {within}",
            "",
            "target",
            (None, factor),
            Tolerance(relative=0.2),
            Tolerance(relative=0.5),
        ),
        _of(max, factors, family),
    )
    yield Measure(
        Metric(
            f"{family}: choices",
            f"most changed choices of any fit, {within}",
            "",
            "target",
            (None, 0.0),
            Tolerance(1.0),
            Tolerance(3.0),
        ),
        lambda outcomes: changes(outcomes, family),
    )


MEASURES = (
    *_family("rounding", 0.02, 1.02, "under rounding, other units, clock, columns, BLAS and threads"),
    *_family("noise", 0.2, 1.05, "with 1 % of the noise added"),
    *_family("left out", 1.0, 1.4, "with 1 or 2 % of the recording left out"),
)


def details(outcomes: Outcomes) -> str:
    """Each change: largest move, largest factor of bars, changed choices by name."""
    fits, texts = answered(outcomes), []
    reference = next((one for one in fits.values() if one["family"] == "reference"), None)
    for variant, own in outcomes.items():
        if reference is None or "error" in own:
            texts.append(f"  {variant}: {own.get('error', 'there is no fit as it is')}")
            continue
        pair = {"reference": reference, variant: {**own, "family": "own"}}
        move, factor = (max(found(pair, "own"), default=default) for found, default in ((moves, 0.0), (factors, 1.0)))
        texts.append(f"  {variant}: {move:.2g} bars, bars by {factor:.3g}, {own['verdict']}, {own['seconds']:.1f} s")
        first, other = chosen(reference), chosen(own)
        texts += [
            f"    {what}: {first.get(what, 'not there') or 'there'} -> {other.get(what, 'not there') or 'there'}"
            for what in sorted({*first, *other})
            if not _same(first.get(what), other.get(what))
        ]
    return "\n".join(texts)
