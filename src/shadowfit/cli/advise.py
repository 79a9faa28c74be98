"""``shadowfit advise``: what a fitted model is likely to lack."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowfit.cli.options import Force, Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

    from shadowfit.evaluation.advise import Advice, Suggestion


def advise(
    result: Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")],
    refits: Annotated[
        int, typer.Option("--refits", metavar="N", min=0, help="Most fits to confirm what is suggested; 0: none.")
    ] = 3,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank what the model of a result is likely to lack (friction, springs, offsets...); confirm the best by refits.

    Exit status: 0 done, 2 wrong use or bad input.
    """
    from shadowfit.cli import console
    from shadowfit.cli.loading import start

    start(quiet)
    from shadowfit.cli.progress import fit_progress
    from shadowfit.evaluation import load_result
    from shadowfit.evaluation.advise import advise as advise_on
    from shadowfit.evaluation.reopen import refitted
    from shadowfit.evaluation.store import blamed

    def say(text: str) -> None:
        if not quiet:
            console.messages().print(text, soft_wrap=True)

    saved = load_result(result, force=force)
    with fit_progress(quiet) as shown, blamed(saved):
        estimate = refitted(saved, shown)
    advice = advise_on(estimate, refits, say)
    if json:
        import json as notation

        typer.echo(notation.dumps(advice.to_json(), ensure_ascii=False, allow_nan=False))
        return
    console.output().print(_candidates(advice))
    if advice.refits:
        units = {name: sensor.unit() for name, sensor in estimate.problem.mechanism.sensors.items()}
        console.output().print(_refits(advice, units))
    typer.echo(_sentence(advice))


def _candidates(advice: Advice) -> Table:
    from shadowfit.cli import console

    numeric = ("predicted", "± std", "explains", "gain of χ²")
    table = console.table(
        "What the model may lack, from one linearisation",
        *("element", "parameter", "predicted", "± std", "unit", "explains", "gain of χ²", "verdict"),
        numeric=numeric,
    )
    for one in advice.suggestions:
        for i, (label, value, std, unit) in enumerate(zip(one.labels, one.value, one.std, one.units, strict=True)):
            if i > 0 and std == 0.0:
                continue  # a direction of a rotation that the data do not tell
            numbers = (f"{value:.4g}", f"{std:.2g}", unit)
            common = (f"{100.0 * one.share:.1f} %", f"{one.gain:.4g}", _word(one)) if i == 0 else ("", "", "")
            table.add_row(one.candidate.what if i == 0 else "", label, *numbers, *common)
    return table


def _word(one: Suggestion) -> str:
    return "significant" if one.significant else "no more than noise gives"


def _refits(advice: Advice, units: dict[str, str]) -> Table:
    from shadowfit.cli import console

    numeric = ("fitted", "prediction error", *(f"rollout {name} [{unit}]" for name, unit in units.items()))
    table = console.table("Fitted with it", "parameter", *numeric, "verdict", numeric=numeric)
    for one in advice.refits:
        before, after = one.score
        factor = f"× {math.exp(after - before):.3g}"
        rolled = [f"{one.rollout[name][0]:.3g} → {one.rollout[name][1]:.3g}" for name in units]
        value = ", ".join(f"{value:.4g}" for value in one.value)
        verdict = "predicts better: keep" if one.kept else "does not predict better"
        table.add_row(one.suggestion.candidate.name, value, factor, *rolled, verdict)
    return table


def _sentence(advice: Advice) -> str:
    if advice.kept:
        named = ", ".join(f"{one.suggestion.candidate.name} ({one.suggestion.candidate.what})" for one in advice.kept)
        return f"Add to the model, and fit again: {named}"
    if advice.refits:
        return "None of what was tried makes the model predict better"
    if any(one.significant for one in advice.suggestions):
        return "Nothing was refitted; --refits 3 would tell whether what is significant makes the model predict better"
    return (
        "The data ask for none of the candidates: what is left is noise, or has another cause, or takes a recording of "
        "another motion to tell"
    )
