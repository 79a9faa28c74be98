"""``⊟`` of many poses at once, on the host."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.geometry.pose import Pose
from shadowfit.kernels import mapped


def differences(later: Pose, earlier: Pose) -> Float[np.ndarray, "n bodies 6"]:
    """``later ⊟ earlier`` for each of n poses of all bodies [m, rad]."""
    return _minus(later.position, later.orientation, earlier.position, earlier.orientation)


@mapped
def _minus(
    position: Float[Array, "bodies 3"],
    orientation: Float[Array, "bodies 4"],
    earlier_position: Float[Array, "bodies 3"],
    earlier_orientation: Float[Array, "bodies 4"],
) -> Float[Array, "bodies 6"]:
    return Pose(position, orientation).minus(Pose(earlier_position, earlier_orientation))
