"""Are torques predicted, are base parameters those that were published, do halves agree?"""

from __future__ import annotations

import math

from benchmarks.scoreboard.case import Outcome
from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered
from benchmarks.scoreboard.measures.fits import ITERATIONS, SECONDS, median, share
from benchmarks.scoreboard.measures.real import pairs

SAYS = (
    "Robots, all inertial numbers, friction, rotors and offsets free, a model file of a few lines each. Torques along "
    "the measured motion of the last 30 %, which was not fitted; base parameters beside those that were published; "
    "legs of which targets were recorded: differences of both halves in bars."
)


def only(outcomes: Outcomes, key: str) -> float | None:
    """What one of the cases has."""
    return next((found[key] for found in answered(outcomes).values() if key in found), None)


def over_least_squares(outcomes: Outcomes) -> float | None:
    """Torque error over that of least squares."""
    ours, theirs = only(outcomes, "torque error"), only(outcomes, "least squares")
    return None if ours is None or theirs is None else ours / theirs


def base_errors(outcomes: Outcomes) -> list[float]:
    """Differences to published base parameters, in bars."""
    rows = [row for found in answered(outcomes).values() for row in found.get("bases", [])]
    return [abs(found - published) / std for _, published, found, std in rows]


def bar(row: Outcome) -> float | None:
    """Standard deviation; of a parameter on its bound the half of its one-sided interval."""
    if row["std"]:
        return float(row["std"])
    ends = [abs(end - row["value"]) for end in row["interval"] if end is not None]
    return max(ends, default=0.0) / 1.96 or None


def differences(outcomes: Outcomes) -> dict[str, float]:
    """Parameter → difference of the halves in combined bars, those on a bound among them."""
    found = {}
    for _, _, first, second in pairs(outcomes):
        for name, row in first["parameters"].items():
            other = second["parameters"][name]
            bars = bar(row), bar(other)
            if None not in bars:
                found[name] = abs(row["value"] - other["value"]) / math.hypot(*bars)  # type: ignore[arg-type]
    return found


MEASURES = (
    Measure(
        Metric("torque error", "of the rest, all joints together", "%", tolerance=Tolerance(relative=0.1)),
        lambda outcomes: only(outcomes, "torque error"),
    ),
    Measure(
        Metric(
            "over least squares",
            "torque error over that of least squares with Pinocchio's regressor, without repeated messages",
            "",
            "target",
            (None, 1.0),
            Tolerance(0.1),
        ),
        over_least_squares,
    ),
    Measure(
        Metric(
            "bases within 3",
            "published base parameters within three of our bars",
            "%",
            "higher",
            (97.0, None),
            Tolerance(5.0),
        ),
        lambda outcomes: share([z < 3.0 for z in base_errors(outcomes)]),
    ),
    Measure(
        Metric("bases, z", "difference to published base parameters in our bars, median", "bars", "report"),
        lambda outcomes: median(base_errors(outcomes)),
    ),
    Measure(
        Metric(
            "z, halves",
            "difference of the halves in combined bars, median",
            "bars",
            "target",
            (0.5, 0.8),
            Tolerance(0.2),
        ),
        lambda outcomes: median([*differences(outcomes).values()]),
    ),
    Measure(
        Metric("z below 3", "differences of the halves below three bars", "%", "target", (97.0, None), Tolerance(3.0)),
        lambda outcomes: share([z < 3.0 for z in differences(outcomes).values()]),
    ),
    ITERATIONS,
    SECONDS,
)


def details(outcomes: Outcomes) -> str:
    """Each joint's torque, each base parameter, each difference."""
    texts = []
    for variant, found in outcomes.items():
        texts.append(f"  {variant}: {found.get('error') or found.get('verdict', '')}")
        texts += [f"    torque of {joint}: {error:.3g}" for joint, error in found.get("joints", {}).items()]
        texts += [
            f"    {name}: published {published:.4g}, found {value:.4g} ± {std:.2g}"
            for name, published, value, std in found.get("bases", [])
        ]
    texts += [f"  {parameter}: {z:.2f} bars" for parameter, z in differences(outcomes).items()]
    return "\n".join(texts)
