"""What a fit evaluates at every time step: ordinary functions of one step, which :mod:`step_kernels` compiles.

Each one takes the plan, the machine at its current parameters, what is the same for all times, and what varies.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import closure, observation, start_state
from shadowfit.estimation.residuals.axes import Axes
from shadowfit.estimation.residuals.axes import axes as axes_at
from shadowfit.estimation.residuals.frame import Frame, frame
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.observation import BetterCurve, Sample, Scale
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.estimation.residuals.touched import Free
from shadowfit.estimation.residuals.unknowns import Step
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.trees import leaves_of

Weighing = tuple[Float[Array, "r r"] | Float[Array, "r"], Float[Array, ""]]
"""Square root of the weight of the dynamics, whole or its diagonal, and the time-step [s]."""
Moving = tuple[Nodes, Float[Array, "inputs"], Float[Array, "inputs columns"], Float[Array, "a"], Float[Array, "r"]]
"""Nodes of a step, its command and the derivatives of that, widths of friction, and known errors of its residual."""


def dynamics_rows(plan: Plan, machine: Parametrised, weighing: Weighing, moving: Moving) -> Array:
    """Weighted rows of the dynamics of a step, side by side."""
    weight, timestep = weighing
    nodes, command, slopes, widths, truncation = moving
    rows = plan.unknowns.step_rows(plan.equations, Step(machine, nodes, command, slopes, widths, timestep))
    corrected = Rows(rows.states, rows.parameters, rows.residual - truncation)
    return _side_by_side(_weighted(corrected, jnp.diag(weight) if weight.ndim == 1 else weight))


def braked(
    plan: Plan, machine: Parametrised, timestep: Float[Array, ""], moving: tuple[Pose, Float[Array, "inputs"]]
) -> tuple[Array, Array, Array]:
    """What the widths of dry friction in a step follow from."""
    return plan.unknowns.braked(plan.equations, machine, *moving, timestep)


def touched(
    plan: Plan, machine: Parametrised, timestep: Float[Array, ""], moving: tuple[Nodes, Float[Array, "r r"], Array]
) -> tuple[Array, Array, Array]:
    """What contacts make of the rows of a step by recursion, from its derivatives by new rates and its residual."""
    assert isinstance(plan.unknowns, Joint)
    nodes, by_rates, missing = moving
    contact = plan.unknowns.touched(plan.equations, machine, nodes.pose, timestep, Free(by_rates, missing))
    return contact.through, contact.pushed, contact.residual


def observation_rows(plan: Plan, machine: Parametrised, scale: Scale, seen: tuple[Nodes, Sample]) -> Array:
    """Weighted rows of one sample, side by side."""
    return _side_by_side(observation.observation_rows(plan, machine, *seen, scale))


def reading_errors(
    plan: Plan, machine: Parametrised, times: tuple[Array, Array], seen: tuple[Pose, Array, Pose, Array]
) -> Array:
    """Errors of the sensors' readings through windows of poses, against a better curve.

    ``times`` are those between the poses of the windows and of the curve [s].
    """
    (timestep, apart), (window, fraction, truth, command) = times, seen
    at = (fraction, timestep, command)
    return observation.reading_errors(plan, machine, window, at, BetterCurve(truth, apart))


def frames(plan: Plan, machine: Parametrised, _: None, pose: Pose) -> Frame:
    """Rows of the gaps and inertia."""
    return frame(machine, pose)


def axes(plan: Plan, machine: Parametrised, _: None, pose: Pose) -> Axes:
    """Free axes of the joints."""
    return axes_at(machine, pose)


def start_gaps(plan: Plan, machine: Parametrised, _: None, node: Nodes) -> start_state.StartGaps:
    """Gaps of a state with their derivatives."""
    return start_state.start_gaps(machine, node)


def follow(
    plan: Plan, machine: Parametrised, weights: Array, moving: tuple[Pose, tuple[Array, ...]]
) -> tuple[Array, Array, Array]:
    """One iteration of inverse kinematics, from the pose of the time before towards the readings of a time.

    With the sum of squared errors that it came from.
    """
    before, targets = moving
    iterate = plan.unknowns.towards(machine.mechanism(), before, targets, weights)
    return iterate.pose.position, iterate.pose.orientation, iterate.error


def placed(plan: Plan, machine: Parametrised, _: None, pose: Pose) -> tuple[Array, ...]:
    """Bodies at the poses of a node, and how they move with it."""
    bodies = plan.unknowns.placed(machine.mechanism(), pose)
    return bodies.pose.position, bodies.pose.orientation, bodies.twists, bodies.centers


def motions(plan: Plan, machine: Parametrised, _: None, pose: Pose) -> Pose:
    """Poses of a node at given poses of the bodies."""
    return plan.unknowns.motions(machine.mechanism(), pose)


def closer(plan: Plan, machine: Parametrised, _: None, pose: Pose) -> tuple[Array, Array, Array]:
    """The pose of a node with its loops closed a little better, and the gaps before that."""
    assert isinstance(plan.unknowns, Joint)
    closed, gap = closure.closer(plan.unknowns.tree, plan.unknowns.independent, machine.mechanism(), pose)
    return closed.position, rotations.normalise(closed.orientation), gap


def closings(plan: Plan, machine: Parametrised, _: None, pose: Pose) -> tuple[Array, Array, Array]:
    """Gaps of loops at the pose of a node, their derivatives by coordinates, and those by parameters."""
    assert isinstance(plan.unknowns, Joint)
    tree = plan.unknowns.tree
    closing = closure.all_loops(tree, machine.mechanism(), pose)
    _value, by_parameters = slopes(
        lambda p: closure.all_loops(tree, machine.moved(p), pose).gap, jnp.zeros(plan.parameters)
    )
    return closing.gap, closing.rows, by_parameters


def shifted(plan: Plan, machine: Parametrised, _: None, moving: tuple[Nodes, Array]) -> list[Array]:
    """``x ⊞ δ`` of one node, with increments in all directions of each body."""
    nodes, increments = moving
    moved = nodes.plus(increments.reshape(plan.unknowns.bodies, -1))
    whole = Nodes(Pose(moved.pose.position, rotations.normalise(moved.pose.orientation)), moved.velocity)
    return leaves_of(whole)


def _weighted(rows: Rows, weight: Float[Array, "r r"]) -> Rows:
    """Rows multiplied by a square root of their weight, which repeats where there are several residuals."""
    weight = jnp.kron(jnp.eye(rows.residual.shape[0] // weight.shape[0]), weight)
    return Rows(jnp.einsum("rs,swb->rwb", weight, rows.states), weight @ rows.parameters, weight @ rows.residual)


def _side_by_side(rows: Rows) -> Array:
    """``[states | parameters | residual]``, as the normal equations want it."""
    states = rows.states.reshape(len(rows.states), -1)
    return jnp.concatenate([states, rows.parameters, rows.residual[:, None]], axis=1)
