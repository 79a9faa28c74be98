"""Do intervals of simulated robots hold, and are their torques predicted?"""

from __future__ import annotations

from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered
from benchmarks.scoreboard.measures.fits import (
    ITERATIONS,
    LARGEST_Z,
    RED,
    SECONDS,
    coverage,
    errors,
    holds,
    median,
)
from benchmarks.scoreboard.measures.robots import only

SAYS = (
    "Simulated robots whose file is off: masses by up to a quarter, joints without friction and with half the rotors. "
    "Torques are read, or targets of position loops; some have drives that the model lacks in part. Do the 95 % "
    "intervals of friction, rotors, masses, delays and gains hold the truth?"
)
MEASURES = (
    Measure(
        Metric(
            "coverage",
            "part of the 95 % intervals that hold the truth",
            "%",
            "target",
            (93.0, None),
            Tolerance(5.0),
            Tolerance(9.0),
        ),
        coverage,
    ),
    LARGEST_Z,
    Measure(
        Metric("z", "error of an estimate in its bars, median", "bars", "target", (0.4, 0.9), Tolerance(0.3)),
        lambda outcomes: median(errors(outcomes)),
    ),
    Measure(
        Metric("torque error", "of the part that was not fitted", "%", tolerance=Tolerance(0.2, 0.1)),
        lambda outcomes: only(outcomes, "torque error"),
    ),
    RED,
    ITERATIONS,
    SECONDS,
)


def details(outcomes: Outcomes) -> str:
    """Each number beside the truth."""
    texts = []
    for variant, found in outcomes.items():
        texts.append(f"  {variant}: {found.get('error') or found['verdict']}")
        for name, row in (answered({variant: found}).get(variant) or {"parameters": {}})["parameters"].items():
            if "truth" in row:
                held = "" if holds(row["interval"], row["truth"]) else " MISSED"
                bar = f"± {row['std']:.2g}" if row["std"] else "on its bound"
                texts.append(f"    {name}: {row['value']:.4g} {bar}, truth {row['truth']:.4g}{held}")
        texts += [f"    {severity}: {text[:160]}" for severity, text in found.get("notices", []) if severity != "info"]
    return "\n".join(texts)
