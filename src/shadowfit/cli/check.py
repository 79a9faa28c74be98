"""``shadowfit check``: do a model and recordings belong together, and what could a fit tell?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowfit.cli.options import (
    Begin,
    ChannelFile,
    Channels,
    End,
    FreeNames,
    Json,
    Model,
    Quiet,
    Recordings,
    Settings,
    Topics,
    Weld,
    apply_settings,
    free_parameters,
)

if TYPE_CHECKING:
    from rich.table import Table

    from shadowfit.evaluation.precheck import Check
    from shadowfit.evaluation.used_channels import UsedChannel


def check(
    model: Model,
    recordings: Recordings,
    free: FreeNames = None,
    settings: Settings = None,
    weld: Weld = None,
    channel: Channels = None,
    channels: ChannelFile = None,
    topic: Topics = None,
    begin: Begin = None,
    end: End = None,
    out: Annotated[Path, typer.Option("--out", metavar="HTML", help="File for the page.")] = Path("check.html"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at model, recordings and wished parameters before a fit: signs, units, order, and what the motion tells.

    Exit status: 0 nothing speaks against a fit (green or amber), 1 something is wrong (red), 2 wrong use or bad input.
    """
    from shadowfit.cli import console
    from shadowfit.cli.loading import load, start

    start(quiet)
    from shadowfit.cli.recordings import Selection, read_recordings
    from shadowfit.cli.verdict import print_notices
    from shadowfit.evaluation.check_page import ORDER_OF_MAGNITUDE, check_page, sentence
    from shadowfit.evaluation.notices import colour
    from shadowfit.evaluation.precheck import check as look
    from shadowfit.evaluation.used_channels import used_channels
    from shadowfit.models.atomic import write_text

    mechanism = apply_settings(load(model, weld, quiet=quiet).mechanism, settings or ())
    requested = free_parameters(free or (), mechanism)
    # What reading warns of is among the notices below.
    with console.doing("reading the recordings", quiet):
        measured = read_recordings(recordings, mechanism, Selection(channel, channels, topic, begin, end), quiet=True)
    with console.doing("evaluating the equations of motion along the recordings", quiet):
        result = look(mechanism, measured, requested)
    write_text(out, check_page(mechanism, measured, result))
    verdict = colour(result.notices)
    if json:
        import json as notation

        relative = {name: None if not share < 1e6 else share for name, share in result.relative_std.items()}
        listed = [notice.to_json() for notice in result.notices]
        typer.echo(
            notation.dumps({"verdict": verdict, "notices": listed, "relative_std": relative}, ensure_ascii=False)
        )
    else:
        console.output().print(channel_table(used_channels(mechanism, measured)))
        if result.told:
            console.output().print(precision_table(result))
            typer.echo(ORDER_OF_MAGNITUDE)
        print_notices(result.notices, verdict, sentence(result))
        typer.echo(f"Page in {out}; open it in a browser")
    raise typer.Exit(1 if verdict == "red" else 0)


def channel_table(channels: Sequence[UsedChannel]) -> Table:
    """Which column is taken for which sensor or input, and what is in it."""
    from shadowfit.cli import console

    numeric = ("from", "to", "steps of", "samples", "interval [s]")
    several = len({one.recording for one in channels}) > 1
    first = ("recording",) if several else ()
    table = console.table("Channels", *first, "channel", "column", *numeric, "unit", numeric=numeric)
    for one in channels:
        step = "" if one.step is None else f"{one.step:.3g}"
        numbers = (f"{one.low:.4g}", f"{one.high:.4g}", step, str(one.samples), f"{one.interval:.4g}")
        table.add_row(*((one.recording,) if several else ()), one.name, one.column, *numbers, one.unit)
    return table


def precision_table(result: Check) -> Table:
    """How well a fit could know the wished parameters, the best known first."""
    from shadowfit.cli import console
    from shadowfit.evaluation.check_page import known_to

    numeric = ("start", "std", "of its size")
    table = console.table("What a fit could tell", "parameter", *numeric, "unit", numeric=numeric)
    for row in known_to(result):
        table.add_row(*row)
    return table
