"""Progress of many cases on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shadowfit.experiments.cases import Outcome
    from shadowfit.experiments.runner import Progress

Workers = Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Processes that share the work.")]
OutFolder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for the results; finished cases are kept.")
]


@contextlib.contextmanager
def case_progress(total: int, what: str, quiet: bool) -> Iterator[Progress | None]:
    """A function for ``run_cases(progress=...)``, shown while the block runs."""
    from shadowfit.cli import console

    if quiet or total == 0:
        yield None
        return
    screen = console.messages()
    done = 0
    if not screen.is_terminal:

        def line(outcome: Outcome, found: bool) -> None:
            nonlocal done
            done += 1
            screen.print(f"{what} {done}/{total}  {_words(outcome, found)}", soft_wrap=True)

        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=screen) as bar:
        task = bar.add_task("starting", total=total)

        def advance(outcome: Outcome, found: bool) -> None:
            bar.update(task, advance=1, description=outcome.case.name)
            if not outcome.done:
                bar.console.print(_words(outcome, found), soft_wrap=True)

        yield advance


def _words(outcome: Outcome, found: bool) -> str:
    if outcome.done:
        return f"{outcome.case.name}: " + ("kept from before" if found else f"{outcome.seconds:.1f} s")
    return f"{outcome.case.name}: failed: " + outcome.error.strip().rsplit("\n", 1)[-1]
