"""``shadowfit sweep``: fits over a grid of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shadowfit.cli.cases import Dashboard, OutFolder, Scheduler, Workers
from shadowfit.cli.options import Json, Quiet


def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The sweep's file: a fit, and what varies.")],
    out: OutFolder = Path("sweep"),
    workers: Workers = None,
    scheduler: Scheduler = None,
    dashboard: Dashboard = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit over a grid of method and model settings. Stop it at any time; the same command goes on.

    Exit status: 0 all cases ended, 1 some failed or Ctrl-C (what is done is kept), 2 wrong use or bad input.
    """
    from shadowfit import runtime
    from shadowfit.cli import console

    runtime.start_jax()
    from shadowfit.cli.cases import case_progress, hired
    from shadowfit.evaluation.destination import check_destination
    from shadowfit.sweeps.runner import run_cases
    from shadowfit.sweeps.sweep import read_sweep, summary_table, write_summary

    check_destination(out)
    read = read_sweep(spec)
    outcomes: dict[str, Any] = {}
    interrupted = False
    try:
        with (
            hired(workers, scheduler, dashboard) as crew,
            case_progress(len(read.cases), "cases", quiet) as progress,
        ):

            def note(outcome: Any, kept: bool) -> None:
                outcomes[outcome.case.name] = outcome
                if progress is not None:
                    progress(outcome, kept)

            run_cases(read.cases, out, n_jobs=crew.n_jobs, start=runtime.start_jax, progress=note)
    except KeyboardInterrupt:
        interrupted = True
    rows = summary_table(read, outcomes)
    write_summary(rows, out)
    if json:
        import json as notation

        typer.echo(notation.dumps({"interrupted": interrupted, "cases": rows}, ensure_ascii=False))
    else:
        console.output().print(_table([axis.name for axis in read.axes], rows))
        typer.echo(f"{len(rows)} of {len(read.cases)} cases in {out}: summary.csv, summary.json, cases/")
    if interrupted:
        typer.echo("interrupted; the same command goes on where it stopped", err=True)
    raise typer.Exit(1 if interrupted or any(row["status"] == "failed" for row in rows) else 0)


def _table(axes: list[str], rows: list[dict[str, Any]]) -> Any:
    from shadowfit.cli import console

    numeric = (*axes, "iterations", "cost")
    table = console.table("", *axes, "status", "iterations", "cost", numeric=numeric)
    for row in rows:
        cost = row.get("cost")
        cells = [str(row[axis]) for axis in axes]
        table.add_row(*cells, row["status"], str(row.get("iterations", "")), "" if cost is None else f"{cost:.4g}")
    return table
