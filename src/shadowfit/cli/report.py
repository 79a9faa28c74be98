"""``shadowfit report``: write the page of a result anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Result = Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")]


def report(result: Result) -> None:
    """Write the HTML report of a result again."""
    from shadowfit.cli import console
    from shadowfit.cli.loading import start

    start()
    from shadowfit.evaluation import load_result, write_report

    with console.doing("drawing the report", quiet=False):
        page = write_report(load_result(result))
    typer.echo(page)
