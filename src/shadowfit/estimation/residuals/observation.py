"""Residuals of samples with their derivatives: rows of the least squares problem.

Samples in ``[t_j, t_{j+1})`` are observed through the interpolating polynomial of the step's window, in the tangent
space of its nodes (cubic with four nodes), so uneven, jittered or faster sampling loses nothing.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.state import Instant, State
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree


class Sample(PyTree):
    """One reading of all sensors."""

    measured: tuple[Float[Array, "d"], ...]
    weight: tuple[Float[Array, ""], ...]
    """One over the standard deviation; zero for a missing sample."""
    shift: tuple[Float[Array, "e"], ...]
    """What the residuals would be on the true motion, as far as it is known; taken off."""
    fraction: Float[Array, ""]
    """Time after the step's own, in steps."""
    command: Float[Array, "inputs"]
    """Of the sample's step; empty where no sensor asks for it."""
    command_slopes: Float[Array, "inputs columns"]
    """Derivatives of the command by the parameters that act through the inputs."""


class Scale(PyTree):
    """Units of time and noise."""

    timestep: Float[Array, ""]
    """h [s]."""
    reference: Float[Array, ""]
    """Standard deviation behind a weight of one, in which a robust loss counts."""


def observed_nodes(plan: Plan, mechanism: Mechanism) -> range:
    """Nodes of a step's window that its samples involve."""
    moves = any(sensor.needs_velocity for sensor in mechanism.sensors.values)
    return range(plan.window) if moves or not plan.on_grid else range(plan.centre, plan.centre + 1)


def observation_rows(plan: Plan, machine: Parametrised, window: Nodes, sample: Sample, scale: Scale) -> Rows:
    """Rows of one sample; ``window`` holds the nodes that it involves."""
    count, bodies = window.pose.position.shape[:2]
    width, columns = count * plan.node_size, np.array(plan.layout.sensors, int)
    at = plan.centre + sample.fraction
    mechanism, moves = machine.mechanism(), plan.unknowns.moves(machine, window.pose)

    def residuals(increments: Array) -> Array:
        spread = jnp.zeros(plan.parameters).at[columns].set(increments[width:])
        steps = moves(increments[:width].reshape(count, plan.node_size), spread)
        moved = window.plus(steps.reshape(count, bodies, -1))
        state = moved.state_at(at, plan.centre, scale.timestep)
        seeing = mechanism if len(columns) == 0 else machine.moved(spread)
        acting = sample.command + sample.command_slopes @ spread[np.array(plan.layout.inputs, int)]
        instant = Instant(_acceleration(mechanism, moved, at, plan.centre, scale.timestep), acting)
        view, sensors = plan.unknowns.view(seeing, state, instant), seeing.sensors.values
        return jnp.concatenate([s.residual(s.read(view), y) for s, y in zip(sensors, sample.measured, strict=True)])

    value, table = slopes(residuals, jnp.zeros(width + len(columns)))
    sizes = [shift.shape[0] for shift in sample.shift]
    weight = jnp.concatenate([jnp.full(size, one) for size, one in zip(sizes, sample.weight, strict=True)])
    scaled = jnp.where(weight > 0.0, (value - jnp.concatenate(sample.shift)) * weight, 0.0)
    robust, slope = _robust(scaled, None if plan.huber is None else plan.huber * scale.reference)
    weighted = (slope * weight)[:, None] * table
    parameters = jnp.zeros((len(value), plan.parameters)).at[:, columns].set(weighted[:, width:])
    return Rows(weighted[:, :width].reshape(len(value), count, plan.node_size), parameters, robust)


def reads_commands(mechanism: Mechanism) -> bool:
    """Whether some sensor asks for the inputs."""
    return any(sensor.needs_command for sensor in mechanism.sensors.values)


def _acceleration(
    mechanism: Mechanism, nodes: Nodes, at: Array, base: int, timestep: Array
) -> Float[Array, "bodies 6"] | None:
    """Where some sensor asks for it."""
    asked = any(sensor.needs_acceleration for sensor in mechanism.sensors.values)
    return nodes.acceleration_at(at, base, timestep) if asked else None


class BetterCurve(PyTree):
    """A curve through the states that is better than the window's polynomial, at the time of a sample."""

    poses: Pose
    """One pose, or three of them where its velocity counts, too."""
    apart: Float[Array, ""]
    """Time between the three [s]."""

    def state(self) -> State:
        """Pose and, if it is known, velocity."""
        count = self.poses.position.shape[0]
        return Nodes(self.poses, None).state_at(jnp.ones(()), count // 2, self.apart)


def reading_errors(
    plan: Plan, machine: Parametrised, window: Pose, at: tuple[Array, Array, Array], truth: BetterCurve
) -> Float[Array, "e"]:
    """How far the sensors read through the window's polynomial from what they would read of a better curve.

    ``at`` are the time of the sample after the step's own, in steps, the time-step [s], and the command of the step
    (empty where no sensor asks for it).
    """
    fraction, timestep, command = at
    mechanism, nodes = machine.mechanism(), Nodes(window, None)
    seen = nodes.state_at(plan.centre + fraction, plan.centre, timestep)
    # Both have the window's acceleration. That of the curve follows rough motions half as much again, and a fit in
    # which the difference is held and then renewed would not settle. (It is small for motions that samples resolve.)
    instant = Instant(_acceleration(mechanism, nodes, plan.centre + fraction, plan.centre, timestep), command)
    views = [plan.unknowns.view(mechanism, state, instant) for state in (seen, truth.state())]
    return jnp.concatenate([s.residual(*(s.read(view) for view in views)) for s in mechanism.sensors.values])


def _robust(residual: Array, huber: Array | float | None) -> tuple[Array, Array]:
    """Residuals whose squares are Huber's loss, and their derivatives: ``sign(r) √(2k|r| − k²)`` beyond k."""
    if huber is None:
        return residual, jnp.ones_like(residual)
    size = jnp.abs(residual)
    far = size > huber
    root = jnp.sqrt(jnp.where(far, 2.0 * huber * size - huber**2, 1.0))
    return jnp.where(far, jnp.sign(residual) * root, residual), jnp.where(far, huber / root, 1.0)
