"""``shadowfit report``: write the page of a result anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shadowfit.cli.options import Force

Result = Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")]


def report(result: Result, force: Force = False) -> None:
    """Write the HTML report of a result again."""
    from shadowfit.cli import console
    from shadowfit.cli.loading import start

    start()
    from shadowfit.evaluation import load_result, write_report
    from shadowfit.evaluation.store import blamed

    saved = load_result(result, force=force)
    with console.doing("drawing the report", quiet=False), blamed(saved):
        page = write_report(saved)
    typer.echo(page)
