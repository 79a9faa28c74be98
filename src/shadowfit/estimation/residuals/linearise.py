"""Residuals of a time step and of a sample with their derivatives: the rows of the least squares problem.

Step j belongs to the time ``t_j`` of the grid. Its window of nodes is

* unknowns ``configuration``: ``q_{j−1}, q_j, q_{j+1}`` (and ``q_{j+2}`` where samples fall between the grid's times),
  with ``v_j = (q_j ⊟ q_{j−1})/h`` enforced; one dynamics residual of 6 rows a body.
* unknowns ``joint``: the same with the joints' motions in place of the bodies' poses (:mod:`joint_rows`).
* unknowns ``full`` (the paper's): ``(q_j, v_j), (q_{j+1}, v_{j+1})``; two dynamics residuals, ``Δp_u`` with ``v' =
  v_{j+1}`` and ``Δp_q`` with ``v' = (q_{j+1} ⊟ q_j)/h``.

Samples in ``[t_j, t_{j+1})`` are observed through the window's interpolating polynomial in the tangent space of its
nodes (cubic with four nodes), so uneven, jittered or faster sampling loses nothing.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import StateView
from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import transition
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import slopes
from shadowfit.mechanism.mechanism import Mechanism

Unknowns = Literal["configuration", "joint", "full"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is fixed for all linearisations of a problem; hashable, so that it selects the compiled function."""

    numbers: tuple[str, ...]
    """Names of the free numbers."""
    turns: tuple[str, ...]
    """Names of the free rotations."""
    order: tuple[int, ...]
    """Place of each increment (numbers first, then rotations) among the parameters of a recording."""
    columns: transition.Columns
    input_columns: tuple[int, ...]
    """Parameters that act through the inputs (gain, offset, delay)."""
    sensor_columns: tuple[int, ...]
    """Parameters that the sensors' readings depend on."""
    window: int
    on_grid: bool
    residual: transition.Residual
    discretization: str
    friction: transition.Friction
    unknowns: Unknowns
    huber: float | None
    """Residuals beyond this many standard deviations count linearly; None: all count quadratically."""
    bodies: int
    """Number of bodies."""
    tree: Tree | None
    """How the bodies hang together; None unless joint coordinates are the unknowns."""

    @property
    def parameters(self) -> int:
        """Number of increments."""
        return len(self.order)

    @property
    def own_velocity(self) -> bool:
        """Whether velocities are unknowns of their own."""
        return self.unknowns == "full"

    @property
    def impulses(self) -> int:
        """Impulses of a step that can be missing: of the joints' coordinates, or six of each body."""
        return 6 * self.bodies if self.tree is None else self.tree.size

    @property
    def node_size(self) -> int:
        """Unknowns of a node, which is also the number of dynamics residuals in a step."""
        return (2 if self.own_velocity else 1) * self.impulses

    @property
    def reach(self) -> int:
        """Nodes that the dynamics of a step involve, from the first of its window on."""
        return 2 if self.own_velocity else 3

    @property
    def centre(self) -> int:
        """Place of the step's own node in its window."""
        return 0 if self.own_velocity else 1


class Nodes(eqx.Module):
    """Unknown states: configurations, and velocities where they are unknowns of their own (else ``None``).

    With ``joint`` unknowns the poses are the motions of the bodies' joints (:mod:`shadowfit.dynamics.tree`).
    """

    pose: Pose
    velocity: Float[Array, "n bodies 6"] | None


class ChunkData(eqx.Module):
    """Data of the steps of one chunk."""

    command: Float[Array, "steps inputs"]
    command_derivatives: Float[Array, "steps inputs columns"]
    measured: tuple[Float[Array, "steps samples d"], ...]
    weight: tuple[Float[Array, "steps samples"], ...]
    """One over the standard deviation; zero for a missing sample."""
    fraction: Float[Array, "steps samples"]
    """Time of the samples after the step's own, in steps."""
    truncation: Float[Array, "steps r"]
    """What the dynamics residual would be on the true motion, as far as it is known; taken off."""
    shift: tuple[Float[Array, "steps samples e"], ...]
    """The same of each sensor's residuals: errors of the interpolation at the samples' times."""


class Sample(eqx.Module):
    """One reading of all sensors."""

    measured: tuple[Float[Array, "d"], ...]
    weight: tuple[Float[Array, ""], ...]
    shift: tuple[Float[Array, "e"], ...]
    fraction: Float[Array, ""]


class Truncation(eqx.Module):
    """Known errors of the discretisation along one recording (:mod:`truncation`), held while a fit moves the states."""

    dynamics: Float[Array, "steps r"]
    """Of the dynamics residuals [N s, N m s]."""
    readings: tuple[Float[Array, "steps samples e"], ...]
    """Of each sensor's residuals, in its unit."""


class Current(eqx.Module):
    """The mechanism at the current parameters, and these."""

    mechanism: Mechanism
    numbers: Float[Array, "numbers"]
    turns: Float[Array, "rotations 4"]


def current(plan: Plan, mechanism: Mechanism, numbers: Array, turns: Array) -> Current:
    """A mechanism with the parameters at their values."""
    return Current(write(plan, mechanism, numbers, turns, jnp.zeros(plan.parameters)), numbers, turns)


class Prepared(eqx.Module):
    """The mechanism at the current parameters, as elements, and how their numbers depend on the parameters."""

    elements: Elements
    element_tangents: Elements
    """Derivatives of the elements' numbers by the parameters, along a last axis."""
    reference: Float[Array, "bodies 6"]
    """M₀, the diagonal mass that weighs the implicit residual."""


def write(plan: Plan, mechanism: Mechanism, numbers: Array, turns: Array, increments: Array) -> Mechanism:
    """The mechanism with the parameters at their values plus increments."""
    own = increments[np.array(plan.order, int)]
    count = len(plan.numbers)
    values = {name: numbers[i] + own[i] for i, name in enumerate(plan.numbers)}
    for i, name in enumerate(plan.turns):
        values[name] = rotations.plus_local(turns[i], own[count + 3 * i : count + 3 * i + 3])
    return mechanism.write(values)


def prepare(plan: Plan, mechanism: Mechanism, numbers: Array, turns: Array) -> Prepared:
    """Elements at the current parameters and their derivatives; the same for all times."""
    zero = jnp.zeros(plan.parameters)
    tangents = jax.jacfwd(lambda d: assemble(write(plan, mechanism, numbers, turns, d)))(zero)
    now = write(plan, mechanism, numbers, turns, zero)
    return Prepared(assemble(now), tangents, reference_mass(assemble(mechanism).bodies))


# --- dynamics ---

Command = tuple[Array, Array]
"""Values of the inputs, and their derivatives by the parameters that act through them."""


def _velocity(
    later: Pose, earlier: Pose, timestep: Array
) -> tuple[Float[Array, "bodies 6"], Float[Array, "bodies 6 6"], Float[Array, "bodies 6 6"]]:
    """``(q₁ ⊟ q₀)/h`` and its derivatives by both configurations."""
    increment = later.minus(earlier)
    inverse = rotations.left_jacobian_inverse(increment[..., 3:])
    eye = jnp.broadcast_to(jnp.eye(3), inverse.shape)
    zero = jnp.zeros_like(inverse)
    by_later = jnp.block([[eye, zero], [zero, inverse]])
    by_earlier = -jnp.block([[eye, zero], [zero, inverse.mT]])
    return increment / timestep, by_later / timestep, by_earlier / timestep


def _transition(
    plan: Plan, prepared: Prepared, pose: Pose, velocity: Array, new_velocity: Array, given: Command, timestep: Array
) -> transition.Transition:
    command, slopes = given
    by_parameters = jnp.zeros((command.shape[0], plan.parameters))
    by_parameters = by_parameters.at[:, np.array(plan.input_columns, int)].set(slopes)
    driven = transition.Driven(prepared.elements, prepared.element_tangents, prepared.reference, command, by_parameters)
    return transition.linearise(
        driven, plan.columns, pose, velocity, new_velocity, timestep, plan.residual, plan.discretization, plan.friction
    )


def _times(blocks: Float[Array, "r bodies 6"], factors: Float[Array, "bodies 6 6"]) -> Float[Array, "r bodies 6"]:
    return jnp.einsum("rbi,bij->rbj", blocks, factors)


def weighted(rows: Rows, weight: Float[Array, "r r"]) -> Rows:
    """Rows multiplied by a square root of their weight, which repeats where there are several residuals."""
    weight = jnp.kron(jnp.eye(rows.residual.shape[0] // weight.shape[0]), weight)
    return Rows(jnp.einsum("rs,swb->rwb", weight, rows.states), weight @ rows.parameters, weight @ rows.residual)


def dynamics_rows(
    plan: Plan,
    prepared: Prepared,
    window: Nodes,
    command: Float[Array, "inputs"],
    slopes: Float[Array, "inputs columns"],
    timestep: Array,
) -> Rows:
    """Dynamics residuals of one step with their derivatives, unweighted.

    ``slopes`` are those of the command by the parameters that act through the inputs.
    """
    rows = _full_dynamics if plan.own_velocity else _configuration_dynamics
    return rows(plan, prepared, window, (command, slopes), timestep)


def _configuration_dynamics(plan: Plan, prepared: Prepared, window: Nodes, given: Command, timestep: Array) -> Rows:
    before, now, after = (window.pose[i] for i in range(3))
    velocity, v_now, v_before = _velocity(now, before, timestep)
    new_velocity, n_after, n_now = _velocity(after, now, timestep)
    found = _transition(plan, prepared, now, velocity, new_velocity, given, timestep)
    by_now = found.by_pose + _times(found.by_velocity, v_now) + _times(found.by_new_velocity, n_now)
    columns = [_times(found.by_velocity, v_before), by_now, _times(found.by_new_velocity, n_after)]
    return Rows(_flat(jnp.stack(columns, axis=1)), found.by_parameters, found.residual)


def _flat(blocks: Float[Array, "r window bodies k"]) -> Float[Array, "r window b"]:
    return blocks.reshape(*blocks.shape[:2], -1)


def _full_dynamics(plan: Plan, prepared: Prepared, window: Nodes, given: Command, timestep: Array) -> Rows:
    assert window.velocity is not None
    now, after = window.pose[0], window.pose[1]
    velocity, reached = window.velocity[0], window.velocity[1]
    mean, m_after, m_now = _velocity(after, now, timestep)

    def rows(new_velocity: Array, by_after: Array, by_now: Array, by_reached: Array) -> Rows:
        found = _transition(plan, prepared, now, velocity, new_velocity, given, timestep)
        pose_now = found.by_pose + _times(found.by_new_velocity, by_now)
        first = jnp.concatenate([pose_now, found.by_velocity], axis=-1)
        second = jnp.concatenate(
            [_times(found.by_new_velocity, by_after), _times(found.by_new_velocity, by_reached)], axis=-1
        )
        return Rows(_flat(jnp.stack([first, second], axis=1)), found.by_parameters, found.residual)

    eye = jnp.broadcast_to(jnp.eye(6), m_now.shape)
    zero = jnp.zeros_like(eye)
    both = rows(mean, m_after, m_now, zero), rows(reached, zero, zero, eye)
    return jax.tree.map(lambda *x: jnp.concatenate(x), *both)


# --- observations ---


def _lagrange(nodes: int, at: Float[Array, ""]) -> tuple[Float[Array, "w"], Float[Array, "w"]]:
    """Weights of the interpolating polynomial through equally spaced nodes, and of its derivative (per step)."""

    def weights(at: Array) -> Array:
        return jnp.stack(
            [functools.reduce(jnp.multiply, [(at - j) / (i - j) for j in range(nodes) if j != i]) for i in range(nodes)]
        )

    return jax.jvp(weights, (at,), (jnp.ones(()),))


def _interpolate(pose: Pose, at: Float[Array, ""], base: int, timestep: Array) -> tuple[Pose, Float[Array, "bodies 6"]]:
    """Configuration and velocity at a place of the window (in steps from its first node).

    ``q = q_b ⊞ ξ`` with ``ξ = Σ ℓ_i (q_i ⊟ q_b)``; the rotation's velocity follows from ``ξ̇`` through the left
    Jacobian.
    """
    nodes = pose.position.shape[0]
    weights, slopes = _lagrange(nodes, at)
    anchor = pose[base]
    increments = jnp.stack([pose[i].minus(anchor) for i in range(nodes)])
    offset = jnp.einsum("w,wbi->bi", weights, increments)
    rate = jnp.einsum("w,wbi->bi", slopes, increments) / timestep
    spin = jnp.einsum("bij,bj->bi", rotations.left_jacobian(offset[:, 3:]), rate[:, 3:])
    return anchor.plus(offset), jnp.concatenate([rate[:, :3], spin], axis=1)


def observed_nodes(plan: Plan, mechanism: Mechanism) -> range:
    """Nodes of a step's window that its samples involve."""
    moves = any(sensor.needs_velocity for sensor in mechanism.sensors.values)
    return range(plan.window) if moves or not plan.on_grid else range(plan.centre, plan.centre + 1)


def observation_rows(
    plan: Plan, now: Current, window: Nodes, sample: Sample, timestep: Array, reference: Array | float
) -> Rows:
    """Rows of one sample; ``window`` holds the nodes that it involves."""
    count, bodies = window.pose.position.shape[:2]
    width = count * plan.node_size
    at = plan.centre + sample.fraction

    def residuals(increments: Array) -> Array:
        steps = increments[:width].reshape(count, plan.node_size)
        steps = (steps if plan.tree is None else steps @ plan.tree.selection()).reshape(count, bodies, -1)
        moved = window.pose.plus(steps[..., :6])
        if count == 1:
            seen, speed = moved[0], jnp.zeros((bodies, 6))
        else:
            seen, speed = _interpolate(moved, at, plan.centre, timestep)
        if plan.own_velocity:
            speed = _own_velocity(window, steps, at)
        view = _view(plan, now, State(seen, speed), increments[width:])
        own = view.mechanism.sensors.values
        return jnp.concatenate([s.residual(s.read(view), y) for s, y in zip(own, sample.measured, strict=True)])

    value, table = slopes(residuals, jnp.zeros(width + len(plan.sensor_columns)))
    sizes = [shift.shape[0] for shift in sample.shift]
    weight = jnp.concatenate([jnp.full(size, own) for size, own in zip(sizes, sample.weight, strict=True)])
    scaled = jnp.where(weight > 0.0, (value - jnp.concatenate(sample.shift)) * weight, 0.0)
    robust, slope = _robust(scaled, None if plan.huber is None else plan.huber * reference)
    weighted = (slope * weight)[:, None] * table
    parameters = jnp.zeros((len(value), plan.parameters))
    parameters = parameters.at[:, np.array(plan.sensor_columns, int)].set(weighted[:, width:])
    return Rows(weighted[:, :width].reshape(len(value), count, plan.node_size), parameters, robust)


def reading_errors(
    plan: Plan, now: Current, window: Pose, fraction: Array, truth: Pose, timestep: Array, apart: Array
) -> Float[Array, "e"]:
    """How far the sensors read through the window's polynomial from what they would read of a better curve.

    ``truth`` is the curve's pose at the time of the sample, or three of them, a time ``apart`` [s] from each other,
    where its velocity counts, too.
    """
    seen = State(*_interpolate(window, plan.centre + fraction, plan.centre, timestep))
    if truth.position.shape[0] == 1:
        better = State(truth[0], jnp.zeros_like(seen.velocity))
    else:
        better = State(*_interpolate(truth, jnp.ones(()), 1, apart))
    views = [_view(plan, now, state, jnp.zeros(len(plan.sensor_columns))) for state in (seen, better)]
    sensors = now.mechanism.sensors.values
    return jnp.concatenate([s.residual(*(s.read(view) for view in views)) for s in sensors])


def _own_velocity(window: Nodes, increments: Array, at: Array) -> Array:
    """Velocity between nodes that carry their own."""
    assert window.velocity is not None
    velocity = window.velocity + increments[..., 6:]
    if len(velocity) == 1:
        return velocity[0]
    weights, _ = _lagrange(len(velocity), at)
    return jnp.einsum("w,wbi->bi", weights, velocity)


def _view(plan: Plan, now: Current, state: State, increments: Array) -> StateView | MotionView:
    """What the sensors see, with increments on the parameters that they depend on."""
    mechanism = now.mechanism
    if plan.sensor_columns:
        spread = jnp.zeros(plan.parameters).at[np.array(plan.sensor_columns)].set(increments)
        mechanism = write(plan, mechanism, now.numbers, now.turns, spread)
    return StateView(mechanism, state) if plan.tree is None else MotionView(plan.tree, mechanism, state)


def _robust(residual: Array, huber: Array | float | None) -> tuple[Array, Array]:
    """Residuals whose squares are Huber's loss, and their derivatives: ``sign(r) √(2k|r| − k²)`` beyond k."""
    if huber is None:
        return residual, jnp.ones_like(residual)
    size = jnp.abs(residual)
    far = size > huber
    root = jnp.sqrt(jnp.where(far, 2.0 * huber * size - huber**2, 1.0))
    return jnp.where(far, jnp.sign(residual) * root, residual), jnp.where(far, huber / root, 1.0)
