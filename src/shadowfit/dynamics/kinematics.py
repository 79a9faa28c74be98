"""Looking at a state by name: joint positions and speeds, points of bodies."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import rows
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import Instant, State, with_world
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels.along import along
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import View
from shadowfit.trees import leaves_of


class StateView(View):
    """A :class:`View` of one state of a mechanism."""

    mechanism: Mechanism
    pose: Pose
    velocity: Float[Array, "bodies+1 6"]
    geometries: tuple[rows.Geometry, ...]
    elements: Elements
    instant: Instant

    def __init__(
        self, mechanism: Mechanism, state: State, elements: Elements | None = None, instant: Instant | None = None
    ):
        self.mechanism, self.instant = mechanism, instant or Instant()
        self.elements = assemble(mechanism) if elements is None else elements
        self.pose, self.velocity = with_world(state.pose, state.velocity)
        self.geometries = rows.geometries(self.elements.groups, self.pose)

    def _place(self, joint: str) -> tuple[int, int]:
        return self.elements.joint_places[self.mechanism.joints.index(joint)]

    def joint_position(self, joint: str) -> Float[Array, ""]:
        group, member = self._place(joint)
        return self.geometries[group].position[member]

    def joint_speed(self, joint: str) -> Float[Array, ""]:
        place, member = self._place(joint)
        group, geometry = self.elements.groups[place], self.geometries[place]
        return rows.apply(geometry.axis_a, geometry.axis_b, group, self.velocity)[member]

    def point(self, body: str, point: Float[Array, "3"]) -> Float[Array, "3"]:
        index = self.mechanism.bodies.index(body)
        lever = jnp.asarray(point) - self.elements.bodies.com[index]
        return self.pose.position[index] + rotations.rotate(self.pose.orientation[index], lever)

    def orientation(self, body: str) -> Float[Array, "4"]:
        return self.pose.orientation[self.mechanism.bodies.index(body)]

    def velocity_of(self, body: str) -> Float[Array, "6"]:
        """Velocity of a body, world frame."""
        return self.velocity[self.mechanism.bodies.index(body)]

    def point_acceleration(self, body: str, point: Float[Array, "3"]) -> Float[Array, "3"]:
        """``a + α × r + ω × (ω × r)``, r from the centre of mass."""
        assert self.instant.acceleration is not None
        index = self.mechanism.bodies.index(body)
        acceleration, spin = self.instant.acceleration[index], self.velocity[index, 3:]
        lever = self.point(body, point) - self.pose.position[index]
        turning = jnp.cross(acceleration[3:], lever) + jnp.cross(spin, jnp.cross(spin, lever))
        return acceleration[:3] + turning

    def gravity(self) -> Float[Array, "3"]:
        return self.elements.gravity

    def drive_torque(self, joint: str) -> Float[Array, ""]:
        return drive_torque(self, self.mechanism, self.instant, joint)


def drive_torque(view: View, mechanism: Mechanism, instant: Instant, joint: str) -> Float[Array, ""]:
    """Torque of the laws of a joint that have an input, at the position and speed that a view shows."""
    assert instant.command is not None
    total = jnp.zeros(())
    for law in mechanism.joints[joint].laws.values:
        if law.input is not None:
            command = mechanism.command_of(law, instant.command)
            total = total + law.torque(view.joint_position(joint), view.joint_speed(joint), command)
    return total


def read_sensors(
    mechanism: Mechanism, elements: Elements, state: State, instant: Instant | None = None
) -> tuple[Float[Array, "d"], ...]:
    """Noise-free readings of all sensors, in the mechanism's order."""
    view = StateView(mechanism, state, elements, instant)
    return tuple(sensor.read(view) for sensor in mechanism.sensors.values)


def gap_values(elements: Elements, pose: Pose) -> Float[Array, "g"]:
    """All gap rows ``g(q)`` [m, rad], joint types one after another."""
    whole, _ = with_world(pose, jnp.zeros((pose.position.shape[0], 6)))
    return jnp.concatenate([rows.gaps(group, whole).ravel() for group in elements.groups] or [jnp.zeros(0)])


def gap_jacobian(elements: Elements, pose: Pose) -> Float[Array, "g 6*bodies"]:
    """``G``, the Jacobian of all gap rows, over all bodies."""
    whole, _ = with_world(pose, jnp.zeros((pose.position.shape[0], 6)))
    bodies = elements.body_count
    blocks = [jnp.zeros((0, 6 * bodies))]
    for group, geometry in zip(elements.groups, rows.geometries(elements.groups, whole), strict=True):
        block = jnp.zeros((group.size, group.gap_rows, bodies + 1, 6))
        members = jnp.arange(group.size)
        block = block.at[members, :, group.a.bodies].add(geometry.gap_a)
        block = block.at[members, :, group.b.bodies].add(geometry.gap_b)
        blocks.append(block[:, :, :bodies].reshape(-1, 6 * bodies))
    return jnp.concatenate(blocks)


def moved_geometries(
    elements: Elements, pose: Pose, increment: Float[np.ndarray, "bodies 6"]
) -> tuple[Pose, tuple[rows.Geometry, ...]]:
    """The pose moved by an increment, and the geometry of all joints there; compiled, for use on the host."""
    given = [np.asarray(x)[None] for x in (pose.position, pose.orientation, increment)]
    position, orientation, *arrays = (x[0] for x in along(_moved_geometries, elements, given))
    count = len(dataclasses.fields(rows.Geometry))
    parts = [rows.Geometry(*arrays[i : i + count]) for i in range(0, len(arrays), count)]
    return Pose(position, orientation), tuple(parts)


def _moved_geometries(elements: Elements, position: Array, orientation: Array, increment: Array) -> list[Array]:
    moved = Pose(position, orientation).plus(increment)
    return leaves_of((moved, rows.geometries(elements.groups, with_world(moved, increment)[0])))
