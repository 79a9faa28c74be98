"""Some consecutive time steps, as the rows of the least squares problem are computed from them."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.estimation.problem.shaping import Shaping
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.pytrees import PyTree
from shadowfit.records import record


class ChunkData(PyTree):
    """Data of the steps of one chunk."""

    command: Float[Array, "steps inputs"]
    command_slopes: Float[Array, "steps inputs columns"]
    """Derivatives of the command by the parameters that act through the inputs."""
    measured: tuple[Float[Array, "steps samples d"], ...]
    weight: tuple[Float[Array, "steps samples"], ...]
    """One over the standard deviation; zero for a missing sample."""
    fraction: Float[Array, "steps samples"]
    """Time of the samples after the step's own, in steps."""
    widths: Float[np.ndarray, "steps a"]
    """Of dry friction (:mod:`stopping`)."""
    truncation: Float[Array, "steps r"]
    """What the dynamics residual would be on the true motion, as far as it is known; taken off."""
    shift: tuple[Float[Array, "steps samples e"], ...]
    """The same of each sensor's residuals: errors of the interpolation at the samples' times."""


@record(frozen=True)
class Chunk:
    """What the rows of some consecutive steps are computed from."""

    values: Values
    """Of the free parameters."""
    nodes: Nodes
    """``window − 1`` more than there are steps."""
    data: ChunkData
    dynamics_weight: np.ndarray
    """A square root of the inverse covariance of the impulse residual (``√κ`` times one in the paper)."""
    timestep: float
    """h [s]."""
    reference: float
    """Standard deviation behind a weight of one, in which a robust loss counts."""
    shaping: Shaping | None = None
    """What brings the weighted rows of each step to one level; None: they are."""
    proportion: Float[np.ndarray, "r p"] | None = None
    """``d log F`` of residuals that are counted in proportion to forces or gains (:mod:`proportion`,
    :mod:`read_forces`), by the recording's increments."""
    told: Float[np.ndarray, "steps r"] | None = None
    """How far equations of motion count that leave friction at rest open (:mod:`sticking`); None: all do."""
