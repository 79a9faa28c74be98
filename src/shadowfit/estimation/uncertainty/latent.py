"""Errors that are not white, as they were found (:mod:`latent_search`)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from shadowfit.arrays import Float
from shadowfit.records import record

LatentKind = Literal["speed", "turning", "position", "drive", "late", "slow", "scale", "drift"]


@record(frozen=True)
class Latent:
    """An error that is not white."""

    kind: LatentKind
    """A force as a function of the joint's speed, of its way since it turned last, of its position or of what drives
    it, one of a drive that is late or early, or one that varies slowly; an error of a sensor as a function of its
    reading, or one that drifts."""
    name: str
    """Joint or sensor."""
    size: float
    """Root mean square along the recordings [N m, N, or the sensor's unit]."""
    gain: float
    """Fall of −2 log L."""


@record(frozen=True)
class Latents:
    """The errors that are not white, and what they do to the parameters."""

    errors: tuple[Latent, ...]
    variance: Float[np.ndarray, "p p"]
    """What they add to the variance of ``Tᵀe``, in the scaling of the rows."""
    energy: float = 0.0
    """Squares of residuals that they would leave, states and parameters following them, in the same scaling."""
    left: tuple[Float[np.ndarray, "n m"], ...] = ()
    """Residuals of each recording without what they most likely explain of them; none where weight was added."""
