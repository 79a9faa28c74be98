"""``shadowfit web``: the same steps on a local page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shadowfit.cli.options import OptionError


def web(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder of the project; made if need be.")] = Path(
        "project"
    ),
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Who can reach the page; default: this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; default: a free one.")] = 0,
    upload_limit: Annotated[
        float, typer.Option("--upload-limit", metavar="MB", min=0.001, help="Largest file that the page takes.")
    ] = 200.0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """A page for machine, data, parameters, check, fit and results, on this machine alone.

    Each step shows the command line that does the same. Fits are processes of their own: they go on when the page is
    closed, and when this command ends.
    """
    try:
        from shadowfit.web.server import LOOPBACK, serve
    except ImportError as error:
        raise OptionError(
            f'the page needs the package {error.name or "nicegui"!r}; install it with pip install "shadowfit[web]"'
        ) from error
    if host not in LOOPBACK:
        typer.echo(
            f"warning: with --host {host} others on the network can reach this page, unencrypted. Whoever has its "
            "address can read the project, start fits and fill the disk; an SSH tunnel to the default is safer.",
            err=True,
        )
    typer.echo(f"The page of {folder} is at the address below; Ctrl-C ends it, and fits go on.", err=True)
    serve(folder, host, port, upload_limit, show=not no_browser)
