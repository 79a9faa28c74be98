"""Do the bars of twins hold, and are they as wide as the estimates scatter?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.scoreboard.case import Outcome
from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered

SAYS = (
    "Twins: machines whose truth is known, simulated by equations of their own; everything that the model says is true "
    "of them. Do the 95 % intervals hold the truth, and are the bars as wide as estimates scatter over the seeds?"
)


def _rows(outcomes: Outcomes) -> Iterator[tuple[str, Outcome]]:
    """Parameter and its row, of all seeds."""
    for found in answered(outcomes).values():
        yield from found["parameters"].items()


def scatter(outcomes: Outcomes) -> dict[str, float]:
    """Parameter → standard deviation of its estimates over the seeds, where it is not zero."""
    values: dict[str, list[float]] = {}
    for name, row in _rows(outcomes):
        values.setdefault(name, []).append(row["value"])
    spreads = {name: float(np.std(own, ddof=1)) for name, own in values.items() if len(own) > 1}
    return {name: spread for name, spread in spreads.items() if spread > 0.0}


def bars_over_scatter(outcomes: Outcomes) -> dict[str, list[float]]:
    """Parameter → its bar of each seed over the scatter of its estimates."""
    spreads, found = scatter(outcomes), {}
    for name, row in _rows(outcomes):
        if row["std"] and name in spreads:
            found.setdefault(name, []).append(row["std"] / spreads[name])
    return found


def _ratios(outcomes: Outcomes) -> list[float]:
    return [ratio for own in bars_over_scatter(outcomes).values() for ratio in own]


def coverage(outcomes: Outcomes) -> float | None:
    """Part of the intervals that hold the truth [%]; a parameter without an interval holds nothing."""
    inside = [_holds(row["interval"], row["truth"]) for _, row in _rows(outcomes)]
    return 100.0 * float(np.mean(inside)) if inside else None


def _holds(interval: tuple[float | None, float | None], truth: float) -> bool:
    low, high = (-np.inf if interval[0] is None else interval[0]), (np.inf if interval[1] is None else interval[1])
    return bool(np.isfinite(high - low) and low <= truth <= high)


def largest_z(outcomes: Outcomes) -> float | None:
    """Largest error in bars."""
    found = [abs(row["value"] - row["truth"]) / row["std"] for _, row in _rows(outcomes) if row["std"]]
    return max(found, default=None)


def told(outcomes: Outcomes) -> float | None:
    """Part of the parameters that are said to be identified [%]."""
    found = [row["identifiable"] for _, row in _rows(outcomes)]
    return 100.0 * float(np.mean(found)) if found else None


def red(outcomes: Outcomes) -> float | None:
    """Part of the fits that end red [%]."""
    found = [one["verdict"] == "red" for one in answered(outcomes).values()]
    return 100.0 * float(np.mean(found)) if found else None


def seconds(outcomes: Outcomes) -> float | None:
    """Median processor time of a fit [s]."""
    found = [one["seconds"] for one in answered(outcomes).values()]
    return float(np.median(found)) if found else None


MEASURES = (
    Measure(
        Metric(
            "coverage",
            "part of the 95 % intervals that hold the truth",
            "%",
            "target",
            (93.0, 97.0),
            Tolerance(3.0),
            Tolerance(9.0),
        ),
        coverage,
    ),
    Measure(
        Metric(
            "bar/scatter",
            "bar over the scatter of estimates over the seeds, median of all parameters and recordings",
            "",
            "target",
            (0.85, 1.2),
            Tolerance(relative=0.1),
            Tolerance(relative=0.2),
        ),
        lambda outcomes: float(np.median(found)) if (found := _ratios(outcomes)) else None,
    ),
    Measure(
        Metric(
            "widest bar",
            "largest bar over scatter of any parameter of any recording",
            "",
            "target",
            (None, 2.0),
            Tolerance(relative=0.2),
            Tolerance(relative=0.3),
        ),
        lambda outcomes: max(_ratios(outcomes), default=None),
    ),
    Measure(
        Metric(
            "narrowest bar",
            "smallest bar over scatter of any parameter of any recording",
            "",
            "target",
            (0.5, None),
            Tolerance(relative=0.2),
            Tolerance(relative=0.3),
        ),
        lambda outcomes: min(_ratios(outcomes), default=None),
    ),
    Measure(
        Metric("largest z", "largest error of an estimate in its bars", "", "target", (None, 4.0), Tolerance(0.5)),
        largest_z,
    ),
    Measure(
        Metric(
            "told", "part of the parameters that are called identified", "%", "higher", (100.0, None), Tolerance(3.0)
        ),
        told,
    ),
    Measure(Metric("red", "part of the fits that end red", "%", "lower", (None, 0.0), Tolerance(3.0)), red),
    Measure(Metric("seconds", "processor time of a fit, median", "s", "report"), seconds),
)


def details(outcomes: Outcomes) -> str:
    """Each parameter: truth, mean of estimates, their scatter and error, bars over scatter."""
    ratios, spreads, texts = bars_over_scatter(outcomes), scatter(outcomes), []
    for name in dict.fromkeys(name for name, _ in _rows(outcomes)):
        rows = [row for own, row in _rows(outcomes) if own == name]
        off = np.mean([row["value"] for row in rows]) - rows[0]["truth"]
        held = sum(_holds(row["interval"], row["truth"]) for row in rows)
        own = ", ".join(f"{ratio:.2f}" for ratio in ratios.get(name, []))
        spread = spreads.get(name, 0.0)
        texts.append(
            f"  {name:28} truth {rows[0]['truth']:.4g}, mean off {off:+.2g}, scatter {spread:.2g}, "
            f"held {held}/{len(rows)}, bar/scatter {own}"
        )
    for variant, found in outcomes.items():
        said = found.get("error") or (
            f"{found['verdict']}, {found['status']}, {found['iterations']} iterations, {found['seconds']:.2f} s"
        )
        texts.append(f"  {variant}: {said}")
        texts += [f"    {severity}: {text}" for severity, text in found.get("notices", []) if severity != "info"]
        texts += [f"    {name}: {kind} {size:.2g}" for name, kind, size in found.get("errors", [])]
    return "\n".join(texts)
