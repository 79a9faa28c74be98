"""Positions of the joints along a motion of the bodies."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import State
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism import Mechanism


def joint_positions(mechanism: Mechanism, states: State) -> dict[str, Float[np.ndarray, " n"]]:
    """Position of each joint with a free axis [rad or m] over the states; angles are followed over turns."""
    kinds = {name: joint.kind.axis_kind for name, joint in mechanism.joints.items() if joint.kind.axis_kind}
    if not kinds:
        return {}
    arrays = [np.asarray(x) for x in (states.pose.position, states.pose.orientation, states.velocity)]
    columns = along(_joint_positions, mechanism, arrays, tuple(kinds))[0].T
    return {
        name: np.unwrap(column) if kind == "rotation" else column
        for (name, kind), column in zip(kinds.items(), columns, strict=True)
    }


def _joint_positions(
    mechanism: Mechanism, position: Array, orientation: Array, velocity: Array, names: tuple[str, ...]
) -> list[Float[Array, " j"]]:
    view = StateView(mechanism, State(Pose(position, orientation), velocity), assemble(mechanism))
    return [jnp.stack([view.joint_position(name) for name in names])]
