"""``shadowfit reproduce``: the paper's studies on twins of its machines."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from shadowfit.cli.cases import OutFolder, Workers
from shadowfit.cli.options import Quiet


class Studies(enum.StrEnum):
    """What to reproduce."""

    pendulum = "pendulum"
    furuta = "furuta"
    synthetic = "synthetic"
    all = "all"


def reproduce(
    studies: Annotated[Studies, typer.Argument(help="Which of the paper's studies.")] = Studies.all,
    out: OutFolder = Path("reproduction"),
    workers: Workers = 2,
    brief: Annotated[
        bool, typer.Option("--brief", help="Few points and short recordings: a trial, not a result.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments on twins with known truth. Stop it at any time; the same command goes on.

    Exit status: 0 done (findings that do not hold are reported, no failure), 1 cases failed or Ctrl-C, 2 wrong use.
    """
    from shadowfit.cli import console, runtime

    runtime.start_jax()
    from shadowfit.cli.cases import case_progress
    from shadowfit.experiments import reproduce as experiments
    from shadowfit.experiments.document import VERDICTS
    from shadowfit.experiments.methods import Size

    size = Size(duration=0.3, points=3, series=2) if brief else Size()
    try:
        sections = experiments.reproduce(
            studies.value,
            out,
            size=size,
            workers=workers,
            start=runtime.start_jax,
            stage=lambda total, what: case_progress(total, what, quiet),
        )
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on where it stopped", err=True)
        raise typer.Exit(1) from None
    for section in sections:
        table = console.table(section.title, "finding", "", "measured")
        for finding in section.findings:
            table.add_row(finding.statement, VERDICTS[finding.holds], finding.evidence)
        console.output().print(table)
    typer.echo(f"Results in {out}; open {out / 'index.html'} in a browser")
    raise typer.Exit(1 if any(finding.holds is None for finding in experiments.unmet(sections)) else 0)
