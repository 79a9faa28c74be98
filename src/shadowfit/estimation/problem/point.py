"""Values of all unknowns of a problem."""

from __future__ import annotations

import dataclasses

from shadowfit.estimation.problem.parameters import Values
from shadowfit.estimation.residuals.linearise import Nodes, Truncation


@dataclasses.dataclass(frozen=True)
class Point:
    """Values of all unknowns: parameters, and the states of every recording (on the host)."""

    values: Values
    nodes: tuple[Nodes, ...]
    truncation: tuple[Truncation, ...] | None = None
    """Errors of the discretisation that are taken off the residuals of each recording; None: none are known."""
