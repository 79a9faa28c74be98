"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.table import Table

# Without a terminal nobody sees where lines end; wide enough that no table is cut.
FILE_WIDTH = 200


def output() -> Console:
    """Console of results."""
    return _console(stderr=False)


def messages() -> Console:
    """Console of progress and warnings."""
    return _console(stderr=True)


def doing(what: str, quiet: bool) -> contextlib.AbstractContextManager[Status | None]:
    """While the block runs, a spinner beside what it does; without a terminal, a line."""
    screen = messages()
    if quiet:
        return contextlib.nullcontext()
    if not screen.is_terminal:
        screen.print(what, soft_wrap=True)
        return contextlib.nullcontext()
    return screen.status(what)


def _console(stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, markup=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    return console


def table(title: str, *columns: str, numeric: tuple[str, ...] = ()) -> Table:
    """An empty table; ``numeric`` columns are set to the right."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numeric else "left", no_wrap=column in numeric)
    return made
