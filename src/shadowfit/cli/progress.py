"""Progress of a fit on standard error: a growing table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, Group

    from shadowfit.estimation.solve.levenberg_marquardt import Iteration

Report = Callable[["Iteration"], None]
NEWEST = 12  # rows on a terminal
PARAMETER_WIDTH = 16  # characters of a parameter's column, of which as many are shown as fit
FIXED_WIDTH = 58  # characters of the other columns
SELDOM = 1000  # messages of a bag from report to report
PATIENCE = 1.0  # s, after which reading is worth a report


@contextlib.contextmanager
def fit_progress(quiet: bool) -> Iterator[Report | None]:
    """A function for ``fit(progress=...)``, shown while the block runs."""
    from shadowfit.cli import console

    if quiet:
        yield None
        return
    screen = console.messages()
    if screen.is_terminal:
        with _live(screen) as report:
            yield report
        return
    screen.print("compiling and finding the first trajectory; the table of iterations follows", soft_wrap=True)
    yield lambda iteration: screen.print(_line(iteration), soft_wrap=True)


@contextlib.contextmanager
def reading_progress(name: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A function for ``read_recording(progress=...)``, shown on a terminal where reading takes a while."""
    from shadowfit.cli import console

    screen = console.messages()
    if quiet or not screen.is_terminal:
        yield None
        return
    began = time.monotonic()
    with screen.status(f"reading {name}") as status:

        def report(done: int, total: int) -> None:
            if done % SELDOM == 0 and time.monotonic() - began > PATIENCE:
                status.update(f"reading {name}: {done} of {total} messages")

        yield report


def _line(iteration: Iteration) -> str:
    parts = [
        f"iteration {iteration.number}",
        f"cost {iteration.cost:.6g}",
        f"dynamics {iteration.dynamics:.4g}",
        f"observation {iteration.observation:.4g}",
        _step(iteration),
        f"{iteration.seconds:.1f} s",
    ]
    return "  ".join(parts)


def _step(iteration: Iteration) -> str:
    if math.isnan(iteration.step):
        return "start" if iteration.number == 0 else "new weights"
    return f"step {iteration.step:.2g}"


@contextlib.contextmanager
def _live(screen: Console) -> Iterator[Report]:
    from rich.live import Live

    seen: list[Iteration] = []
    with Live(_table(seen, screen.width), console=screen, refresh_per_second=8) as live:

        def report(iteration: Iteration) -> None:
            seen.append(iteration.line)
            live.update(_table(seen, screen.width))

        yield report


def _table(seen: list[Iteration], width: int) -> Group:
    from rich.console import Group
    from rich.spinner import Spinner

    from shadowfit.cli import console

    names = list(seen[-1].parameters)[: max(0, (width - FIXED_WIDTH) // PARAMETER_WIDTH)] if seen else []
    numeric = ("iteration", "cost", "dynamics", "observation", "step", *names)
    table = console.table("", *numeric, numeric=numeric)
    for entry in seen[-NEWEST:]:
        cells = [f"{entry.cost:.5g}", f"{entry.dynamics:.3g}", f"{entry.observation:.3g}", f"{entry.step:.1g}"]
        table.add_row(str(entry.number), *cells, *(f"{entry.parameters[name]:.5g}" for name in names))
    doing = "fitting; Ctrl-C stops and keeps what is done" if seen else "compiling and finding the first trajectory"
    return Group(table, Spinner("dots", doing)) if seen else Group(Spinner("dots", doing))
