"""What is fixed for all linearisations of a problem.

Step j belongs to the time ``t_j`` of the grid. Its window of nodes is that of the unknowns (:mod:`unknowns`), one node
more where samples fall between the grid's times: samples in ``[t_j, t_{j+1})`` are observed through the window's
interpolating polynomial (:mod:`observation`).
"""

from __future__ import annotations

from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.parameter_layout import Layout
from shadowfit.estimation.residuals.unknowns import Unknowns
from shadowfit.records import record


@record(frozen=True)
class Plan:
    """Parameters, equations and unknowns of a problem; hashable, so that it selects the compiled functions."""

    layout: Layout
    equations: Equations
    unknowns: Unknowns
    window: int
    """Nodes that the rows of a step involve."""
    on_grid: bool
    """Whether all samples are at times of the grid."""
    huber: float | None
    """Residuals beyond this many standard deviations count linearly; None: all count quadratically."""

    @property
    def parameters(self) -> int:
        """Number of the parameters' increments."""
        return self.layout.size

    @property
    def node_size(self) -> int:
        """Unknowns of a node, which is also the number of dynamics residuals in a step."""
        return self.unknowns.node_size

    @property
    def impulses(self) -> int:
        """Impulses of a step that can be missing."""
        return self.unknowns.impulses

    @property
    def centre(self) -> int:
        """Place of the step's own node in its window."""
        return self.unknowns.centre
