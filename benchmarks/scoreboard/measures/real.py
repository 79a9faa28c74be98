"""Do models simulate as well as they can, and do fits agree that should?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.scoreboard.case import Outcome
from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered
from benchmarks.scoreboard.measures.fits import LARGEST_Z, RED, SECONDS, median, share

SAYS = (
    "Real machines, and stand-ins of machines whose models lack something. Simulations of whole recordings against the "
    "output error of the same model; and fits that should agree: halves of a "
    "recording, repeats, opposite signs, and a fifth of the time-step (z: difference over combined bars, which has the "
    "median 0.67 where bars are right; repeats and time-steps share what a model lacks)."
)
# The kinds of pairs, with the range of the median z that is to be reached.
KINDS = {"halves": (0.5, 0.8), "signs": (0.5, 0.8), "repeats": (None, 0.8), "time-step": (None, 0.1)}


def pairs(outcomes: Outcomes) -> Iterator[tuple[str, str, Outcome, Outcome]]:
    """Kind and name of a pair, and the fits that should agree."""
    waiting: dict[tuple[str, str], Outcome] = {}
    for found in answered(outcomes).values():
        for kind, name in found.get("pairs", []):
            other = waiting.pop((kind, name), None)
            if other is None:
                waiting[kind, name] = found
            else:
                yield kind, name, other, found


def differences(first: Outcome, second: Outcome) -> dict[str, float]:
    """Parameter → difference in combined bars, where both fits tell it."""
    rows = {name: (row, second["parameters"][name]) for name, row in first["parameters"].items()}
    return {
        name: abs(a["value"] - b["value"]) / float(np.hypot(a["std"], b["std"]))
        for name, (a, b) in rows.items()
        if all(row["identifiable"] and not row["at_bound"] and row["std"] for row in (a, b))
    }


def _all(outcomes: Outcomes, kind: str | None = None) -> list[float]:
    return [
        z for own, _, *pair in pairs(outcomes) if kind in (own, None) for z in differences(pair[0], pair[1]).values()
    ]


def ratios(outcomes: Outcomes, kind: str) -> dict[str, float | None]:
    """Recording → error of its simulation over that of the output error, in the sensors' noise; None if it got lost."""
    squares: dict[str, list[tuple[float, float]]] = {}
    lost = set()
    for found in answered(outcomes).values():
        for row in found.get("simulated", []):
            if row["kind"] == kind:
                own, noise = squares.setdefault(row["recording"], []), found["noise"][row["sensor"]]
                if row["error"] is None:
                    lost.add(row["recording"])
                else:
                    own.append(((row["error"] / noise) ** 2, (row["output error"] / noise) ** 2))
    sums = {name: np.sum(own, axis=0) for name, own in squares.items() if name not in lost}
    return {name: float(np.sqrt(sums[name][0] / sums[name][1])) if name in sums else None for name in squares}


def _ratio(outcomes: Outcomes, kind: str) -> float | None:
    found = ratios(outcomes, kind).values()
    return None if None in found else max((one for one in found if one is not None), default=None)


def _agreeing(kind: str, goal: tuple[float | None, float]) -> Measure:
    says = f"difference in combined bars, median of all parameters that are told: {kind}"
    metric = Metric(f"z, {kind}", says, "bars", "target", goal, Tolerance(0.3))
    return Measure(metric, lambda outcomes: median(_all(outcomes, kind)))


MEASURES = (
    *(
        Measure(
            Metric(
                f"{kind}/output error",
                f"error of simulations over the output error, sensors in units of noise, worst of recordings {says}",
                "",
                "target",
                (None, 1.05),
                Tolerance(0.05, 0.05),
            ),
            lambda outcomes, kind=kind: _ratio(outcomes, kind),
        )
        for kind, says in (("fitted", "that were fitted"), ("held out", "that were not seen"))
    ),
    *(_agreeing(kind, goal) for kind, goal in KINDS.items()),
    Measure(
        Metric("z below 3", "part of all differences below three bars", "%", "target", (97.0, None), Tolerance(5.0)),
        lambda outcomes: share([z < 3.0 for z in _all(outcomes)]),
    ),
    LARGEST_Z,
    RED,
    SECONDS,
)


def details(outcomes: Outcomes) -> str:
    """Each simulation beside the output error, each difference."""
    texts = []
    for found in answered(outcomes).values():
        for row in found.get("simulated", []):
            errors = " | ".join("lost" if row[key] is None else f"{row[key]:.4g}" for key in ("error", "output error"))
            texts.append(f"  {row['kind']} {row['recording']}, {row['sensor']}: {errors}")
    for kind, name, *pair in pairs(outcomes):
        texts.append(f"  {kind}: {name}")
        texts += [f"    {parameter}: {z:.2f}" for parameter, z in differences(pair[0], pair[1]).items()]
    texts += [f"  {variant}: {found['error']}" for variant, found in outcomes.items() if "error" in found]
    return "\n".join(texts)
