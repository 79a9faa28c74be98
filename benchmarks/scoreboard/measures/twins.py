"""Do the bars of twins hold, and are they as wide as the estimates scatter?"""

from __future__ import annotations

import numpy as np

from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered
from benchmarks.scoreboard.measures.fits import LARGEST_Z, RED, SECONDS, TOLD, coverage, holds, median, rows, share

SAYS = (
    "Twins: machines whose truth is known, simulated by equations of their own; everything that the model says is true "
    "of them. Do the 95 % intervals hold the truth, and are the bars as wide as estimates scatter over the seeds?"
)


def scatter(outcomes: Outcomes) -> dict[str, float]:
    """Parameter → standard deviation of its estimates over the seeds, where it is not zero."""
    values: dict[str, list[float]] = {}
    for name, row in rows(outcomes):
        values.setdefault(name, []).append(row["value"])
    spreads = {name: float(np.std(own, ddof=1)) for name, own in values.items() if len(own) > 1}
    return {name: spread for name, spread in spreads.items() if spread > 0.0}


def bars_over_scatter(outcomes: Outcomes) -> dict[str, list[float]]:
    """Parameter → its bar of each seed over the scatter of its estimates."""
    spreads, found = scatter(outcomes), {}
    for name, row in rows(outcomes):
        if row["std"] and name in spreads:
            found.setdefault(name, []).append(row["std"] / spreads[name])
    return found


def _ratios(outcomes: Outcomes) -> list[float]:
    return [ratio for own in bars_over_scatter(outcomes).values() for ratio in own]


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
            "pairs",
            "part of the 95 % regions of two parameters, as draws fill them, that hold the truth",
            "%",
            "target",
            (93.0, 97.0),
            Tolerance(3.0),
            Tolerance(9.0),
        ),
        lambda outcomes: share([held for found in answered(outcomes).values() for held in found.get("regions", ())]),
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
        lambda outcomes: median(_ratios(outcomes)),
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
    LARGEST_Z,
    TOLD,
    RED,
    SECONDS,
)


def details(outcomes: Outcomes) -> str:
    """Each parameter: truth, mean of estimates, their scatter and error, bars over scatter."""
    ratios, spreads, texts = bars_over_scatter(outcomes), scatter(outcomes), []
    for name in dict.fromkeys(name for name, _ in rows(outcomes)):
        own = [row for parameter, row in rows(outcomes) if parameter == name]
        off = np.mean([row["value"] for row in own]) - own[0]["truth"]
        held = sum(holds(row["interval"], row["truth"]) for row in own)
        wide = ", ".join(f"{ratio:.2f}" for ratio in ratios.get(name, []))
        spread = spreads.get(name, 0.0)
        texts.append(
            f"  {name:28} truth {own[0]['truth']:.4g}, mean off {off:+.2g}, scatter {spread:.2g}, "
            f"held {held}/{len(own)}, bar/scatter {wide}"
        )
    for variant, found in outcomes.items():
        said = found.get("error") or (
            f"{found['verdict']}, {found['status']}, {found['iterations']} iterations, {found['seconds']:.2f} s"
        )
        texts.append(f"  {variant}: {said}")
        texts += [f"    {severity}: {text}" for severity, text in found.get("notices", []) if severity != "info"]
        texts += [f"    {name}: {kind} {size:.2g}" for name, kind, size in found.get("errors", [])]
    return "\n".join(texts)
