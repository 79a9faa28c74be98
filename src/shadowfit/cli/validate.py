"""``shadowfit validate``: a calibrated model on recordings that it was not fitted to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowfit.cli.options import Begin, ChannelFile, Channels, End, Force, Json, Quiet, Recordings, Topics

if TYPE_CHECKING:
    from rich.table import Table

    from shadowfit.evaluation import Validation
    from shadowfit.evaluation.store import SavedResult


def validate(
    result: Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")],
    recordings: Recordings,
    channel: Channels = None,
    channels: ChannelFile = None,
    topic: Topics = None,
    begin: Begin = None,
    end: End = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="HTML", help="File for a page with measured and predicted torques.")
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try a result on recordings that it has not seen: errors of simulations, predictions and torques; who fails, why.

    Exit status: 0 done, 1 a state estimation did not converge, 2 wrong use or bad input.
    """
    from shadowfit.cli import console
    from shadowfit.cli.loading import start

    start(quiet)
    from shadowfit.cli.recordings import Selection, read_recordings, spoken_warnings
    from shadowfit.cli.verdict import print_notices
    from shadowfit.evaluation import load_result
    from shadowfit.evaluation import validate as validate_result
    from shadowfit.evaluation.store import blamed
    from shadowfit.evaluation.validation import judged

    saved = load_result(result, force=force)
    with blamed(saved):
        selection = Selection(channel, channels, topic, begin, end)
        measured = read_recordings(recordings, saved.mechanism(), selection, quiet=quiet)
        validations: list[Validation] = []
        for recording in measured:
            doing = f"{recording.name}: estimating its states, simulating from them"
            with spoken_warnings([recording], quiet), console.doing(doing, quiet):
                validations += validate_result(saved, recording)
        notices, colour, sentence = judged(validations)
        if json:
            import json as notation

            listed = {"verdict": colour, "notices": [notice.to_json() for notice in notices]}
            typer.echo(
                notation.dumps(
                    listed | {"validations": [one.to_json() for one in validations]},
                    ensure_ascii=False,
                    allow_nan=False,
                )
            )
        else:
            console.output().print(_costs(validations, saved))
            console.output().print(_errors(validations, saved))
            if any(one.torques for one in validations):
                console.output().print(_torques(validations))
            print_notices(notices, colour, sentence)
        if out is not None:
            from shadowfit.evaluation.torque_page import torque_page
            from shadowfit.models.atomic import write_text

            write_text(out, torque_page(saved.summary["model"]["name"], validations))
            if not quiet:
                console.messages().print(f"page in {out}; open it in a browser", soft_wrap=True)
    raise typer.Exit(0 if all(one.converged for one in validations) else 1)


def _costs(validations: list[Validation], saved: SavedResult) -> Table:
    from shadowfit.cli import console

    numeric = ("cost", "dynamics", "observation", "steps")
    table = console.table("Cost per time step, of the states alone", "recording", *numeric, numeric=numeric)
    fitted = {recording["fingerprint"] for recording in saved.summary["recordings"]}
    for one in validations:
        costs = (f"{value:.4g}" for value in (one.cost, one.cost_dynamics, one.cost_observation))
        seen = " (of the fit)" if one.fingerprint in fitted else ""
        table.add_row(f"{one.recording}{seen}", *costs, str(one.steps))
    return table


def _errors(validations: list[Validation], saved: SavedResult) -> Table:
    from shadowfit.cli import console

    horizons = sorted({n for one in validations for sensor in one.sensors.values() for n in sensor.prediction_rmse})
    numeric = (*(f"{n} step{'s' if n > 1 else ''}" for n in horizons), "whole", "within 5 % for", "between draws")
    table = console.table(
        "Root mean square errors of simulations over some steps and the whole recording",
        "recording",
        "sensor",
        "unit",
        *numeric,
        numeric=numeric,
    )
    for one in validations:
        for name, sensor in one.sensors.items():
            ahead = [f"{sensor.prediction_rmse[n]:.3g}" if n in sensor.prediction_rmse else "" for n in horizons]
            unit = saved.summary["model"]["sensors"][name]["unit"]
            between = f"{100.0 * sensor.enclosed:.0f} %" if math.isfinite(sensor.enclosed) else ""
            rest = (f"{sensor.rollout_rmse:.3g}", f"{sensor.rollout_horizon:.2f} s", between)
            table.add_row(one.recording, name, unit, *ahead, *rest)
    return table


def _torques(validations: list[Validation]) -> Table:
    from shadowfit.cli import console
    from shadowfit.evaluation.torques import whole_share

    numeric = ("error", "of its rms")
    table = console.table("Torques along the measured motion", "recording", "joint", "unit", *numeric, numeric=numeric)
    for one in validations:
        for name, torque in one.torques.items():
            table.add_row(one.recording, name, torque.unit, f"{torque.rmse:.3g}", f"{100.0 * torque.share:.1f} %")
        if len(one.torques) > 1 and len({torque.unit for torque in one.torques.values()}) == 1:
            table.add_row(one.recording, "all together", "", "", f"{100.0 * whole_share(one.torques):.1f} %")
    return table
