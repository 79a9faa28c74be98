"""Values of all unknowns of a problem."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.stopping import Stopping
from shadowfit.pytrees import PyTree
from shadowfit.records import record


class Truncation(PyTree):
    """Known errors of the discretisation along one recording (:mod:`truncation`), held while a fit moves the states."""

    dynamics: Float[Array, "steps r"]
    """Of the dynamics residuals [N s, N m s]."""
    readings: tuple[Float[Array, "steps samples e"], ...]
    """Of each sensor's residuals, in its unit."""


@record(frozen=True)
class Point:
    """Values of all unknowns: parameters, and the states of every recording (on the host)."""

    values: Values
    nodes: tuple[Nodes, ...]
    truncation: tuple[Truncation, ...] | None = None
    """Errors of the discretisation that are taken off the residuals of each recording; None: none are known."""
    stopping: tuple[Stopping, ...] | None = None
    """Speeds from which dry friction stops the axes in each recording, held; None: those of this motion."""
    answers: tuple[Float[Array, "steps r j"], ...] | None = None
    """What impulses along the joints' axes with given errors leave in the residuals of each recording, held
    (:mod:`axis_noise`); None: no errors are given, or residuals are the impulses of the joints."""
    truncated_at: Values | None = None
    """Parameters that the errors of the discretisation were found with."""
