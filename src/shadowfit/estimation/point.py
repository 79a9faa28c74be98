"""Values of all unknowns of a problem."""

from __future__ import annotations

import dataclasses

from shadowfit.estimation.linearise import Nodes, Truncation
from shadowfit.estimation.parameters import Values


@dataclasses.dataclass(frozen=True)
class Point:
    """Values of all unknowns: parameters, and the states of every recording (on the host)."""

    values: Values
    nodes: tuple[Nodes, ...]
    truncation: tuple[Truncation, ...] | None = None
    """Errors of the discretisation that are taken off the residuals of each recording; None: none are known."""
