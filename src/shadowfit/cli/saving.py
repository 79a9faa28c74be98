"""Writing the result of a fit, so that it is somewhere whatever happens."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shadowfit.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shadowfit.estimation import Estimate
    from shadowfit.evaluation.summary import Details


class KeptElsewhere(WriteError):
    """A result that could not be written where it was wanted, and is in another folder."""


def save(
    estimate: Estimate,
    out: Path,
    details: Details,
    conclude: Callable[[Mapping[str, Any]], None],
    *,
    page: bool = True,
) -> dict[str, Any]:
    """Write a result, with its report unless ``page`` is off.

    ``conclude`` is called with the summary as soon as it is written: drawing the report takes longer.

    Raises:
        KeptElsewhere: the folder cannot be written to; the message says where the result is, or gives its numbers.
    """
    from shadowfit.evaluation import load_result, save_estimate, write_report

    failures: list[Exception] = []

    def report(folder: Path) -> None:
        try:
            saved = load_result(folder)
            conclude(saved.summary)
            if page:
                write_report(saved)
        except WriteError:
            raise
        except Exception as failure:  # a page that cannot be drawn is no reason to lose the numbers
            failures.append(failure)

    try:
        summary = save_estimate(estimate, out, details, finish=report)
    except WriteError as error:
        raise KeptElsewhere(f"{error}. {_elsewhere(estimate, out, details)}") from error
    if failures:
        typer.echo(f"the result is in {out}, but its report could not be made:", err=True)
        raise failures[0]
    return summary


def _elsewhere(estimate: Estimate, out: Path, details: Details) -> str:
    """Try other places; a sentence about which one holds the result, or at least its numbers."""
    from shadowfit.evaluation.checkpoint import UNFINISHED, write_last_values

    for parent in (tempfile.gettempdir(), Path.home(), Path.cwd()):
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="shadowfit-result-", dir=parent))
            if _written(estimate, folder, details):
                # What the fit kept in case it never ended is none of the earlier result's files.
                with contextlib.suppress(OSError):
                    (out / UNFINISHED).unlink()
                return f"The result is kept in {folder}"
            folder.rmdir()
    nowhere = "No other folder can be written to either: "
    try:
        write_last_values(out, estimate.log)
        return f"{nowhere}the parameters are in {out / UNFINISHED}, and the rest is lost"
    except WriteError:
        values = ", ".join(f"{row.name} = {row.value!r}" for row in estimate.parameters)
        return f"{nowhere}these numbers are all there is: {values}"


def _written(estimate: Estimate, folder: Path, details: Details) -> bool:
    """Whether a result could be written into a folder, with its report if there is room for that."""
    from shadowfit.evaluation import load_result, save_estimate, write_report

    try:
        save_estimate(estimate, folder, details)
    except WriteError:
        return False
    with contextlib.suppress(WriteError):
        write_report(load_result(folder))
    return True
