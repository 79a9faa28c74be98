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
from shadowfit.mechanism.sensors import View


class MotionView(View):
    """A view of the motions of a tree's joints, and of what changes with them."""

    mechanism: Mechanism
    tree: Tree = eqx.field(static=True)
    motion: Pose
    rates: Float[Array, "d"]

    def __init__(self, tree: Tree, mechanism: Mechanism, moving: State):
        """``moving`` holds the motions and their rates, as a state holds poses and velocities."""
        self.mechanism, self.tree, self.motion = mechanism, tree, moving.pose
        self.rates = jnp.asarray(tree.selection()) @ moving.velocity.ravel()

    def _bodies(self) -> StateView:
        """Only where a sensor looks at a body: most read joints, and to trace all of this takes time."""
        placed = place(self.tree, self.mechanism, self.motion)
        return StateView(self.mechanism, State(placed.pose, placed.twists @ self.rates))

    def joint_position(self, joint: str) -> Float[Array, ""]:
        index = self.mechanism.joints.index(joint)
        if index in self.tree.loops:
            return self._bodies().joint_position(joint)
        own = free_part(self.tree.holding(index), self.motion)
        here = Frame(own.position, rotations.matrix(own.orientation))
        return self.mechanism.joints.values[index].kind.coordinate(Frame(jnp.zeros(3), jnp.eye(3)), here)

    def joint_speed(self, joint: str) -> Float[Array, ""]:
        index = self.mechanism.joints.index(joint)
        if index in self.tree.loops:
            return self._bodies().joint_speed(joint)
        return self.rates[self.tree.coordinate(index)]

    def point(self, body: str, point: Float[Array, "3"]) -> Float[Array, "3"]:
        return self._bodies().point(body, point)

    def orientation(self, body: str) -> Float[Array, "4"]:
        return self._bodies().orientation(body)

    def velocity_of(self, body: str) -> Float[Array, "6"]:
        """Velocity of a body, world frame."""
        return self._bodies().velocity_of(body)
