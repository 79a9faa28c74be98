"""``shadowfit draw``: machines that the data of a result leave possible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def draw(
    result: Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")],
    count: Annotated[int, typer.Option("--count", help="How many machines.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same machines.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Table: .csv, .parquet or .npz; default: CSV on the screen."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="From a red or changed result; over a file that exists.")
    ] = False,
) -> None:
    """Draw possible machines from a result: within bounds, with bodies that can be, as sure as its error bars.

    One row for each machine, one column for each parameter. What recordings do not tell has its prior, or is known to
    its own size where it has none.
    """
    from shadowfit.cli import console
    from shadowfit.cli.loading import start

    start()
    from shadowfit.evaluation import load_result
    from shadowfit.evaluation.draw_files import check_target, write_draws
    from shadowfit.evaluation.store import blamed

    if out is not None:
        check_target(out, replace=force)
    saved = load_result(result, force=force)
    with blamed(saved):
        draws = saved.draw(count, seed, red=force)
    if out is None:
        typer.echo(draws.to_polars().write_csv(), nl=False)
        return
    write_draws(draws, out)
    console.messages().print(f"{len(draws)} machines in {out}", soft_wrap=True)
