"""Which discrete equations of motion a fit asks for."""

from __future__ import annotations

from typing import Literal

from shadowfit.dynamics.discretization import Discretization
from shadowfit.records import record

Residual = Literal["implicit", "inverse"]
Friction = Literal["stepper", "mean"]
"""Dry friction of a step: as the stepper has it, or a mean over the step (:mod:`shadowfit.dynamics.sliding`)."""


@record(frozen=True)
class Equations:
    """The dynamics residual of a step."""

    residual: Residual
    """``implicit`` or ``inverse`` (:mod:`transition`)."""
    discretization: Discretization
    """``exact`` or ``spook``."""
    friction: Friction
    """Dry friction as the stepper has it, or a mean over the step; dampers of compliant loops likewise."""
