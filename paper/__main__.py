"""``python -m paper``: the paper's studies on twins of its machines."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from paper import reproduce as experiments
from paper.document import VERDICTS
from paper.methods import Size
from paper.rig import STUDIES, Rig, RigError
from shadowfit import runtime
from shadowfit.cli import console
from shadowfit.cli.cases import Dashboard, OutFolder, Scheduler, case_progress, hired
from shadowfit.cli.options import Quiet
from shadowfit.errors import ShadowfitError
from shadowfit.evaluation.destination import check_destination


class Studies(enum.StrEnum):
    """What to reproduce."""

    pendulum = "pendulum"
    furuta = "furuta"
    synthetic = "synthetic"
    all = "all"


def reproduce(
    studies: Annotated[Studies, typer.Argument(help="Which of the paper's studies.")] = Studies.all,
    out: OutFolder = Path("reproduction"),
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Processes that share the work; default: 2.")
    ] = None,
    scheduler: Scheduler = None,
    dashboard: Dashboard = False,
    recordings: Annotated[
        Path | None,
        typer.Option(
            "--recordings",
            metavar="DIR",
            help="Recordings of a rig in place of the twins: pendulum-0.csv, pendulum-1.csv, … or furuta-release.csv, "
            "furuta-pulse.csv and furuta-swingup.csv.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="FILE", help="Model file of that rig; default: the paper's.")
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Few points and short recordings: a trial, not a result.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments on twins with known truth. Stop it at any time; the same command goes on.

    Exit status: 0 done (findings that do not hold are reported, no failure), 1 cases failed or Ctrl-C, 2 wrong use.
    """
    runtime.start_jax()
    check_destination(out)
    size = Size(duration=0.3, points=3, series=2) if brief else Size()
    if recordings is not None or model is not None:
        size = _with_rig(size, studies, recordings, model)
    try:
        with hired(workers or (2 if scheduler is None else None), scheduler, dashboard) as crew:
            sections = experiments.reproduce(
                studies.value,
                out,
                size=size,
                n_jobs=crew.n_jobs,
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


def _with_rig(size: Size, studies: Studies, recordings: Path | None, model: Path | None) -> Size:
    """The size with recordings of a rig, whose files must be there."""
    if recordings is None:
        raise RigError("--model is for recordings of a rig; name their folder with --recordings")
    if studies.value not in STUDIES:
        raise RigError(f"--recordings goes with one of the studies {', '.join(STUDIES)}; the others need a truth")
    rig = Rig(recordings, model)
    series = rig.series() if studies is Studies.pendulum else size.series
    if series < 2:
        raise RigError(f"{recordings} needs pendulum-0.csv, pendulum-1.csv and so on, two or more of them")
    return dataclasses.replace(size, rig=rig, series=series)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; what is wrong with its input is one message and exit status 2."""
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(reproduce)
    try:
        command(arguments, prog_name="python -m paper")
    except ShadowfitError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
