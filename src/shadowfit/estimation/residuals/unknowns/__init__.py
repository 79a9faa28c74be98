"""Kinds of unknowns, by name."""

from __future__ import annotations

from typing import Literal

from shadowfit.estimation.residuals.unknowns.configuration import Configuration
from shadowfit.estimation.residuals.unknowns.full import Full
from shadowfit.estimation.residuals.unknowns.interface import Evaluations as Evaluations
from shadowfit.estimation.residuals.unknowns.interface import Recursion as Recursion
from shadowfit.estimation.residuals.unknowns.interface import Start as Start
from shadowfit.estimation.residuals.unknowns.interface import Step as Step
from shadowfit.estimation.residuals.unknowns.interface import Unknowns as Unknowns
from shadowfit.estimation.residuals.unknowns.joint import Joint

UnknownsName = Literal["configuration", "joint", "full"]

KINDS: dict[UnknownsName, type[Unknowns]] = {"configuration": Configuration, "joint": Joint, "full": Full}
