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
        KeptElsewhere: the folder cannot be written to; the message says where the result is.
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
        place = _elsewhere(estimate, details)
        raise KeptElsewhere(f"{error}. {place}") from error
    if failures:
        typer.echo(f"the result is in {out}, but its report could not be made:", err=True)
        raise failures[0]
    return summary


def _elsewhere(estimate: Estimate, details: Details) -> str:
    """Try other places; a sentence about which one holds the result."""
    from shadowfit.evaluation import load_result, save_estimate, write_report

    for parent in (tempfile.gettempdir(), Path.home(), Path.cwd()):
        with contextlib.suppress(WriteError, OSError):
            folder = Path(tempfile.mkdtemp(prefix="shadowfit-result-", dir=parent))
            save_estimate(estimate, folder, details)
            with contextlib.suppress(WriteError):
                write_report(load_result(folder))
            return f"The result is kept in {folder}"
    return "No other folder can be written to either: the table of parameters above is all there is"
