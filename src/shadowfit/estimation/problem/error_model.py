"""What errors a fit believes in: of the equations of motion, of readings, and which of them its parameters heed.

Every equation of motion and every sensor has white errors of one level. What is not given is estimated from the data
(:mod:`shadowfit.estimation.noise`), so that the model of a fit, which has all of them, can be printed, changed and
given to another fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np

from shadowfit.errors import ShadowfitError, UnknownNameError, nearest
from shadowfit.magnitudes import is_positive
from shadowfit.records import record

Criterion = Literal["auto", "parameters", "simulate"]


class ErrorModelError(ShadowfitError):
    """An error model that makes no sense."""


@record(frozen=True)
class ErrorModel:
    """Errors of the equations of motion and of readings; what is not given is estimated."""

    forces: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By joint: standard deviation [N m, N] of a force that is white at the sampling rate of the recordings."""
    sensors: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By sensor: standard deviation of its readings, in its unit."""
    criterion: Criterion = "auto"
    """What the parameters are for. ``parameters``: the most likely ones, beside errors of the equations of motion.
    ``simulate``: those whose equations hold exactly, and whose simulations follow the recordings. ``auto``:
    ``simulate``, unless forces are given, were measured, or no simulation from known forces follows."""

    @classmethod
    def of(cls, fields: Mapping[str, Any], where: str = "the error model") -> ErrorModel:
        """From the fields of a table or of JSON; one that there is not is named."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                raise UnknownNameError(f"{where}: there is no {name!r}{nearest(name, known)}")
        return cls(**fields)

    def check(self, joints: Iterable[str], sensors: Iterable[str]) -> None:
        """Raise unless errors belong to what there is, and are positive."""
        if self.criterion not in get_args(Criterion):
            known = get_args(Criterion)
            raise UnknownNameError(f"there is no criterion {self.criterion!r}{nearest(str(self.criterion), known)}")
        for kind, given, names in (("joint", self.forces, joints), ("sensor", self.sensors, sensors)):
            known = tuple(names)
            for name, std in given.items():
                if name not in known:
                    raise UnknownNameError(f"errors: there is no {kind} {name!r}{nearest(name, known)}")
                if not (isinstance(std, int | float | np.number) and is_positive(std)):
                    raise ErrorModelError(f"the error of {kind} {name!r} is {std}; it must be a positive number")

    def __str__(self) -> str:
        rows = [*(("force", *row) for row in self.forces.items()), *(("reading", *row) for row in self.sensors.items())]
        return "\n".join([f"criterion: {self.criterion}", *(f"{kind} {name}: {std:.3g}" for kind, name, std in rows)])
