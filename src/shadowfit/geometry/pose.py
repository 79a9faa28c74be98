"""Poses of rigid bodies, and ⊞ and ⊟ on them."""

from __future__ import annotations

from typing import Any

from shadowfit.arrays import Array, Float
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import namespace
from shadowfit.pytrees import PyTree


class Pose(PyTree):
    """Position of the centre of mass [m] and orientation (unit quaternion ``wxyz``, body to world) of each body."""

    position: Float[Array, "*n 3"]
    orientation: Float[Array, "*n 4"]

    def plus(self, increment: Float[Array, "*n 6"]) -> Pose:
        """``q ⊞ δ``: translation [m] added, rotation vector [rad] applied from the left (world frame)."""
        return Pose(self.position + increment[..., :3], rotations.plus(self.orientation, increment[..., 3:]))

    def minus(self, other: Pose) -> Float[Array, "*n 6"]:
        """``q ⊟ other``, the increment that takes ``other`` to this pose."""
        shift, turn = self.position - other.position, rotations.minus(self.orientation, other.orientation)
        return namespace(shift, turn).concatenate([shift, turn], axis=-1)

    def __getitem__(self, index: Any) -> Pose:
        return Pose(self.position[index], self.orientation[index])
