"""How the fit ended."""

from __future__ import annotations

from collections.abc import Iterator

from shadowfit.estimation import Estimate
from shadowfit.estimation.solve.proposal import INSIGNIFICANT
from shadowfit.evaluation.notices import Notice, listed


def ending(estimate: Estimate) -> Iterator[Notice]:
    """A fit that did not reach a minimum is no result."""
    if estimate.converged:
        return
    untold = [row.name for row in estimate.parameters if row.at_bound or not row.identifiable]
    advice = f"Free fewer parameters: the data do not tell {listed(untold)}, or hold them at a bound" if untold else ""
    yield Notice("red", estimate.status.value.rstrip("."), advice)


def edges(estimate: Estimate) -> Iterator[Notice]:
    """A fit that ended where contacts open or close: the cost has a minimum there, and others near by."""
    if not len(estimate.problem.mechanism.contacts) or not estimate.converged:
        return
    if estimate.unkept_promise > INSIGNIFICANT:
        yield Notice(
            "amber",
            "the fit stands on an edge, where points of contact open and close or stick and slide: its equations "
            f"promise that χ² falls by {estimate.unkept_promise:.2g} more, and it does not",
            "A better minimum may be near: start contacts elsewhere (`--free NAME=START`), leave `--state-weight` to "
            "the data, and compare the costs",
        )


def digits(estimate: Estimate) -> Iterator[Notice]:
    """A fit whose states drown in rounding has no error bars."""
    if estimate.converged and estimate.parameters and not estimate.evidence.settled:
        yield Notice(
            "red",
            "the equations of motion outweigh the readings so far that states are lost in rounding, and with them the "
            "error bars",
            "Leave `--state-weight` to the data, and check the stated noise of the sensors",
        )
