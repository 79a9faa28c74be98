"""``shadowfit check``: do a model and recordings belong together, and what could a fit tell?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    from shadowfit.evaluation.check_page import check_page, sentence
    from shadowfit.evaluation.notices import colour
    from shadowfit.evaluation.precheck import check as look
    from shadowfit.models.atomic import write_text

    mechanism = apply_settings(load(model, weld, quiet=quiet).mechanism, settings or ())
    wished = free_parameters(free or (), mechanism)
    measured = read_recordings(recordings, mechanism, Selection(channel, channels, topic, begin, end), quiet=True)
    with console.doing("evaluating the equations of motion along the recordings", quiet):
        result = look(mechanism, measured, wished)
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
        print_notices(result.notices, verdict, sentence(result))
        typer.echo(f"Page in {out}; open it in a browser")
    raise typer.Exit(1 if verdict == "red" else 0)
