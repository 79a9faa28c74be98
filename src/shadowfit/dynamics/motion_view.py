"""Looking at joint coordinates as at a state: positions and speeds of joints are at hand, bodies follow from them."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.dynamics.kinematics import StateView
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import Tree, free_part, place
from shadowfit.geometry import Pose, rotations
from shadowfit.mechanism.joint_types import Frame
from shadowfit.mechanism.mechanism import Mechanism


class MotionView(StateView):
    """A view of the motions of a tree's joints, and of what changes with them."""

    tree: Tree = eqx.field(static=True)
    motion: Pose
    rates: Float[Array, "d"]

    def __init__(self, tree: Tree, mechanism: Mechanism, moving: State):
        """``moving`` holds the motions and their rates, as a state holds poses and velocities."""
        self.tree, self.motion = tree, moving.pose
        self.rates = jnp.asarray(tree.selection()) @ moving.velocity.ravel()
        placed = place(tree, mechanism, moving.pose)
        super().__init__(mechanism, State(placed.pose, placed.twists @ self.rates))

    def joint_position(self, joint: str) -> Float[Array, ""]:
        index = self.mechanism.joints.index(joint)
        own = free_part(self.tree.holding(index), self.motion)
        here = Frame(own.position, rotations.matrix(own.orientation))
        return self.mechanism.joints.values[index].kind.coordinate(Frame(jnp.zeros(3), jnp.eye(3)), here)

    def joint_speed(self, joint: str) -> Float[Array, ""]:
        return self.rates[self.tree.coordinate(self.mechanism.joints.index(joint))]
