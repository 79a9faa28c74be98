"""The state of a mechanism: poses and velocities of all its bodies."""

from __future__ import annotations

from typing import Any

from shadowfit.arrays import Array, Float
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree


class State(PyTree):
    """Poses and velocities of all bodies, possibly with leading axes for time or batch.

    ``velocity`` holds the centre of mass' velocity [m/s] and the angular velocity [rad/s], both in the world frame.
    """

    pose: Pose
    velocity: Float[Array, "*n bodies 6"]

    def __getitem__(self, index: Any) -> State:
        return State(self.pose[index], self.velocity[index])


class Instant(PyTree):
    """What sensors may look at besides the state, possibly with leading axes; None where nothing asks for it."""

    acceleration: Float[Array, "*n bodies 6"] | None = None
    """Rates of the state's velocities [m/s², rad/s²]."""
    command: Float[Array, "*n inputs"] | None = None
    """Values of the inputs."""


def with_world(pose: Pose, velocity: Float[Array, "bodies 6"]) -> tuple[Pose, Float[Array, "bodies+1 6"]]:
    """Append the world as a body at rest at the origin."""
    position = jnp.concatenate([pose.position, jnp.zeros((1, 3))])
    orientation = jnp.concatenate([pose.orientation, jnp.array([[1.0, 0.0, 0.0, 0.0]])])
    return Pose(position, orientation), jnp.concatenate([velocity, jnp.zeros((1, 6))])


class Moving(PyTree):
    """A time step of the bodies."""

    pose: Pose
    velocity: Float[Array, "bodies 6"]
    new_velocity: Float[Array, "bodies 6"]
    command: Float[Array, "inputs"]
    timestep: Float[Array, ""]

    def with_world(self) -> Moving:
        """The same with the world as a body at rest at the origin behind the others."""
        pose, velocity = with_world(self.pose, self.velocity)
        new_velocity = jnp.concatenate([self.new_velocity, jnp.zeros((1, 6))])
        return Moving(pose, velocity, new_velocity, self.command, self.timestep)
