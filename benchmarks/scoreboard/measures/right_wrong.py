"""Do the commands pass what is right, and see what is wrong?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.scoreboard.case import Outcome
from benchmarks.scoreboard.measure import Measure, Metric, Outcomes, Tolerance, answered
from benchmarks.scoreboard.measures.fits import SECONDS, share
from benchmarks.scoreboard.measures.stability import NUMBER

SAYS = (
    "Right and wrong: twins that are what their model says, and the same with one mistake of a user (friction left "
    "out, a wrong mass, lever or sign, degrees for radians, a clock that is 5 % off, samples twice, smoothed over "
    "0.2 s, shuffled, reversed, an input that is 30 ms late). What do `check`, `fit` and `validate` say? A mistake is "
    "seen where one of them is red or refuses, or is amber with a sentence that the right one does not have."
)
# An estimate that is off by more than this many bars and this part of the truth misleads.
BARS, PART = 3.0, 0.05


def of(outcomes: Outcomes, wrong: bool) -> Iterator[Outcome]:
    """The right ones, or the wrong ones."""
    yield from (found for found in answered(outcomes).values() if found["wrong"] == wrong)


def warnings(found: Outcome) -> set[str]:
    """Amber and red sentences of all commands, without numbers."""
    return {
        NUMBER.sub("#", text)
        for said in found["says"].values()
        for severity, text in said["notices"]
        if severity != "info"
    }


def red(found: Outcome) -> bool:
    """Whether a command is red."""
    return any(said["colour"] == "red" for said in found["says"].values())


def usual(outcomes: Outcomes) -> set[str]:
    """What is said of the right ones, too."""
    return set[str]().union(*(warnings(right) for right in of(outcomes, wrong=False)))


def seen(found: Outcome, outcomes: Outcomes) -> bool:
    """Whether a mistake is seen."""
    return red(found) or bool(warnings(found) - usual(outcomes))


def named(found: Outcome, outcomes: Outcomes) -> bool:
    """Whether a sentence names the mistake that does not stand below the right ones."""
    return bool({NUMBER.sub("#", text) for text in found["named"]} - usual(outcomes))


def misled(found: Outcome) -> bool:
    """Whether an estimate is far off by its bars, and by a part of the truth that matters."""
    return any(
        abs(row["value"] - row["truth"]) > max(BARS * (row["std"] or 0.0), PART * abs(row["truth"]))
        for row in found["parameters"].values()
    )


def contradicts(found: Outcome) -> bool:
    """Whether the fit is red, and what it found predicts."""
    says = found["says"]
    return says.get("fit", {}).get("colour") == "red" and says.get("validate", {}).get("colour") == "green"


MEASURES = (
    Measure(
        Metric("right, red", "right ones of which a command is red", "%", "lower", (None, 0.0), Tolerance(3.0)),
        lambda outcomes: share([red(found) for found in of(outcomes, wrong=False)]),
    ),
    Measure(
        Metric("right, green", "right ones of which all commands are green", "%", "report", (100.0, None)),
        lambda outcomes: share([not warnings(found) for found in of(outcomes, wrong=False)]),
    ),
    Measure(
        Metric("wrong, seen", "mistakes that are seen", "%", "higher", (100.0, None), Tolerance(10.0), Tolerance(18.0)),
        lambda outcomes: share([seen(found, outcomes) for found in of(outcomes, wrong=True)]),
    ),
    Measure(
        Metric(
            "wrong, named",
            "mistakes that a sentence names",
            "%",
            "higher",
            (100.0, None),
            Tolerance(10.0),
            Tolerance(18.0),
        ),
        lambda outcomes: share([named(found, outcomes) for found in of(outcomes, wrong=True)]),
    ),
    Measure(
        Metric(
            "misled",
            "mistakes that are not seen, with an estimate that is off by more than three bars and 5 %",
            "",
            "lower",
            (None, 0.0),
            Tolerance(1.0),
        ),
        lambda outcomes: (
            float(sum(misled(found) and not seen(found, outcomes) for found in wrong))
            if (wrong := list(of(outcomes, wrong=True)))
            else None
        ),
    ),
    Measure(
        Metric("contradictions", "a red fit whose `validate` is green", "", "lower", (None, 0.0), Tolerance(1.0)),
        lambda outcomes: float(sum(map(contradicts, answered(outcomes).values()))),
    ),
    SECONDS,
)


def details(outcomes: Outcomes) -> str:
    """What each command says of each variant, and whether a mistake is seen and named."""
    texts = []
    for variant, found in outcomes.items():
        if "error" in found:
            texts.append(f"  {variant}: {found['error']}")
            continue
        colours = ", ".join(f"{command} {said['colour']}" for command, said in found["says"].items())
        judged = (
            f": {'seen' if seen(found, outcomes) else 'NOT SEEN'}, {'named' if named(found, outcomes) else 'not named'}"
        )
        texts.append(f"  {variant}: {colours}{judged if found['wrong'] else ''}{', misled' if misled(found) else ''}")
        texts += [f"    {text[:200]}" for text in sorted(warnings(found))]
    return "\n".join(texts)
