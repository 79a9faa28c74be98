"""Progress of many cases on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shadowfit.parallel import Crew
    from shadowfit.sweeps.cases import Outcome
    from shadowfit.sweeps.runner import Progress

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Processes of this machine that share the work; default: this one alone."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", help="A Dask scheduler, such as tcp://head:8786, whose workers do the work."
    ),
]
Dashboard = Annotated[
    bool,
    typer.Option("--dashboard", help="Print where Dask shows its workers; those of this machine are a Dask cluster."),
]
OutFolder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for the results; finished cases are kept.")
]


@contextlib.contextmanager
def hired(
    workers: int | None, scheduler: str | None, dashboard: bool, *, local_cluster: bool = False
) -> Iterator[Crew]:
    """The workers that the options ask for; the dashboard's address goes to standard error."""
    from shadowfit.cli import console
    from shadowfit.parallel import crew

    with crew(workers, scheduler, local_cluster=local_cluster, dashboard=dashboard) as workforce:
        if dashboard:
            console.messages().print(f"dashboard: {workforce.dashboard}", soft_wrap=True)
        yield workforce


class _Pace:
    """How fast cases are done, and when the rest will be."""

    def __init__(self, total: int) -> None:
        self._began, self._left, self._done = time.monotonic(), total, 0

    def words(self, kept: bool) -> str:
        """Rate and time left after one more case, which may have been ``found`` from an earlier run."""
        self._left -= 1
        self._done += not kept
        spent = time.monotonic() - self._began
        if self._done == 0 or self._left == 0 or spent <= 0.0:
            return ""
        rate = self._done / spent
        pace = f"{rate:.2g}/s" if rate >= 1.0 else f"{60.0 * rate:.2g}/min"
        return f"  ({pace}, {datetime.timedelta(seconds=round(self._left / rate))} left)"


@contextlib.contextmanager
def case_progress(total: int, what: str, quiet: bool) -> Iterator[Progress | None]:
    """A function for ``run_cases(progress=...)``, shown while the block runs."""
    from shadowfit.cli import console

    if quiet or total == 0:
        yield None
        return
    screen = console.messages()
    done, pace = 0, _Pace(total)
    if not screen.is_terminal:

        def line(outcome: Outcome, kept: bool) -> None:
            nonlocal done
            done += 1
            screen.print(f"{what} {done}/{total}  {_words(outcome, kept)}{pace.words(kept)}", soft_wrap=True)

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

        def advance(outcome: Outcome, kept: bool) -> None:
            bar.update(task, advance=1, description=f"{outcome.case.name}{pace.words(kept)}")
            if not outcome.done:
                bar.console.print(_words(outcome, kept), soft_wrap=True)

        yield advance


def _words(outcome: Outcome, kept: bool) -> str:
    if outcome.done:
        return f"{outcome.case.name}: " + ("kept from before" if kept else f"{outcome.seconds:.1f} s")
    return f"{outcome.case.name}: failed: " + outcome.error.strip().rsplit("\n", 1)[-1]
