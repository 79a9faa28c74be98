"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.status import Status
    from rich.table import Table

# Without a terminal nobody sees where lines end; wide enough that no table is cut.
FILE_WIDTH = 200
# Rows of a table beyond which it is not styled.
MANY_ROWS = 2000


def output() -> Console:
    """Console of results."""
    return _console(stderr=False)


def messages() -> Console:
    """Console of progress and warnings."""
    return _console(stderr=True)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """In place of `warnings.showwarning`, which adds a line of code that the user has not written."""
    messages().print(f"warning: {message}", soft_wrap=True)


def ignore_warning(*_: Any, **__: Any) -> None:
    """The same for those who want no warnings."""


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
    from rich.segment import Segment
    from rich.table import Table

    class Lines(Table):
        """A table whose rows, if there are very many, are written as they are: styled, each takes a millisecond."""

        def __rich_console__(self, *arguments: Any) -> Any:
            if self.row_count <= MANY_ROWS:
                return super().__rich_console__(*arguments)
            return [Segment("\n".join(_plain(self)) + "\n")]

    made = Lines(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numeric else "left", no_wrap=column in numeric)
    return made


def _plain(table: Table) -> Iterator[str]:
    cells = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    widths = [max(map(len, column)) for column in cells]
    rights = [column.justify == "right" for column in table.columns]
    yield str(table.title)
    for row in zip(*cells, strict=True):
        aligned = zip(row, widths, rights, strict=True)
        yield "   ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in aligned).rstrip()
