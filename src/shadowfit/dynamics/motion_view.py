"""Looking at joint coordinates as at a state: positions and speeds of joints are at hand, bodies follow from them."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.kinematics import StateView, drive_torque
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.tree import Tree, forward_kinematics, free_part
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.joint_types import Frame
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import View
from shadowfit.pytrees import field


class MotionView(View):
    """A view of the motions of a tree's joints, and of what changes with them."""

    mechanism: Mechanism
    tree: Tree = field(static=True)
    motion: Pose
    rates: Float[Array, "d"]
    instant: Instant

    def __init__(self, tree: Tree, mechanism: Mechanism, moving: State, instant: Instant | None = None):
        """``moving`` and ``instant`` hold motions and their rates, as a state holds poses and velocities."""
        self.instant = instant or Instant()
        self.mechanism, self.tree, self.motion = mechanism, tree, moving.pose
        self.rates = jnp.asarray(tree.selection()) @ moving.velocity.ravel()

    def _bodies(self) -> StateView:
        """Only where a sensor looks at a body: most read joints, and to trace all of this takes time."""
        placed = forward_kinematics(self.tree, self.mechanism, self.motion)
        return StateView(self.mechanism, State(placed.pose, placed.twists @ self.rates))

    def _accelerated(self) -> StateView:
        """The bodies with their accelerations ``d/dt (T q̇) = T q̈ + Ṫ q̇``."""
        assert self.instant.acceleration is not None
        selection = jnp.asarray(self.tree.selection())
        growth = selection @ self.instant.acceleration.ravel()

        def velocity(time: Array) -> Array:
            along = (time * self.rates @ selection).reshape(-1, 6)
            return forward_kinematics(self.tree, self.mechanism, self.motion.plus(along)).twists @ (
                self.rates + time * growth
            )

        _, acceleration = jax.jvp(velocity, (jnp.zeros(()),), (jnp.ones(()),))
        placed = forward_kinematics(self.tree, self.mechanism, self.motion)
        state = State(placed.pose, placed.twists @ self.rates)
        return StateView(self.mechanism, state, None, Instant(acceleration))

    def joint_position(self, joint: str) -> Float[Array, ""]:
        index = self.mechanism.joints.index(joint)
        if index in self.tree.loops:
            return self._bodies().joint_position(joint)
        motion = free_part(self.tree.holding(index), self.motion)
        here = Frame(motion.position, rotations.matrix(motion.orientation))
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

    def point_acceleration(self, body: str, point: Float[Array, "3"]) -> Float[Array, "3"]:
        return self._accelerated().point_acceleration(body, point)

    def gravity(self) -> Float[Array, "3"]:
        return self.mechanism.gravity.vector()

    def drive_torque(self, joint: str) -> Float[Array, ""]:
        return drive_torque(self, self.mechanism, self.instant, joint)
