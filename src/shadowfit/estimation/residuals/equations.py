"""Which discrete equations of motion a fit asks for."""

from __future__ import annotations

import dataclasses

from shadowfit.dynamics.discretization import Discretization
from shadowfit.estimation.residuals.transition import Friction, Residual


@dataclasses.dataclass(frozen=True)
class Equations:
    """The dynamics residual of a step."""

    residual: Residual
    """``implicit`` or ``inverse`` (:mod:`transition`)."""
    discretization: Discretization
    """``exact`` or ``spook``."""
    friction: Friction
    """Dry friction as the stepper has it, or a mean over the step."""
