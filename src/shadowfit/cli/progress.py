"""Progress of a fit on standard error: a growing table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import datetime
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, Group

    from shadowfit.estimation.solve.levenberg_marquardt import Iteration

Report = Callable[["Iteration"], None]
Remark = Callable[["Iteration"], str]
"""What else there is to say of an iteration."""
NEWEST = 12  # rows on a terminal
PARAMETER_WIDTH = 16  # characters of a parameter's column, of which as many are shown as fit
FIXED_WIDTH = 58  # characters of the other columns
SELDOM = 1000  # messages of a bag from report to report
PATIENCE = 1.0  # s, after which reading is worth a report


class FleetPace:
    """How fast the recordings of a fleet are evaluated, and when the fit ends at the latest."""

    def __init__(self, recordings: int, most_iterations: int) -> None:
        self._recordings, self._most = recordings, most_iterations
        self._first: tuple[int, float] | None = None
        self._evaluations = 0

    def __call__(self, iteration: Iteration) -> str:
        """Rate since the first iteration that was seen; the time left is that to the limit of iterations."""
        now = time.monotonic()
        if self._first is None:
            self._first = iteration.number, now
            return ""
        self._evaluations += max(iteration.trials, 1)  # a descent begins with an evaluation, too
        done, spent = iteration.number - self._first[0], now - self._first[1]
        if done <= 0 or spent <= 0.0:
            return ""
        rate = self._recordings * self._evaluations / spent
        left = max(self._most - iteration.number, 0) * spent / done
        return f"{rate:.3g} recordings/s, at most {datetime.timedelta(seconds=round(left))} left"


@contextlib.contextmanager
def fit_progress(quiet: bool, remark: Remark | None = None) -> Iterator[Report | None]:
    """A function for ``fit(progress=...)``, shown while the block runs."""
    from shadowfit.cli import console

    if quiet:
        yield None
        return
    screen = console.messages()
    if screen.is_terminal:
        with _live(screen, remark) as report:
            yield report
        return
    screen.print("compiling and finding the first trajectory; the table of iterations follows", soft_wrap=True)
    yield lambda iteration: screen.print(_line(iteration, remark), soft_wrap=True)


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


def _line(iteration: Iteration, remark: Remark | None = None) -> str:
    parts = [
        f"iteration {iteration.number}",
        f"cost {iteration.cost:.6g}",
        f"dynamics {iteration.dynamics:.4g}",
        f"observation {iteration.observation:.4g}",
        _step(iteration),
        f"{iteration.seconds:.1f} s",
        *([] if remark is None else [remark(iteration)]),
    ]
    return "  ".join(part for part in parts if part)


def _step(iteration: Iteration) -> str:
    if math.isnan(iteration.step):
        return "start" if iteration.number == 0 else "new weights"
    return f"step {iteration.step:.2g}"


@contextlib.contextmanager
def _live(screen: Console, remark: Remark | None) -> Iterator[Report]:
    from rich.live import Live

    seen: list[Iteration] = []
    with Live(_table(seen, screen.width), console=screen, refresh_per_second=8) as live:

        def report(iteration: Iteration) -> None:
            seen.append(iteration.line)
            live.update(_table(seen, screen.width, "" if remark is None else remark(iteration)))

        yield report


def _table(seen: list[Iteration], width: int, remark: str = "") -> Group:
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
    doing += f" ({remark})" if remark else ""
    return Group(table, Spinner("dots", doing)) if seen else Group(Spinner("dots", doing))
