"""One iteration of inverse kinematics: bodies moved towards what the sensors read, at zero constraint violation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import loops
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView, gap_jacobian, gap_values
from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import Tree, forward_kinematics
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import View

# Gaps weigh this much more than readings, so that they are closed to rounding where both can be met.
GAP_WEIGHT = 1e3
# Gaps of compliant joints weigh as readings do, and next to nothing where ways to assemble a machine are compared: they
# may be open, and should not be closed by another way.
OPEN_WEIGHT = 1e-4
# Pull towards the pose before, relative to the readings: decides only what nothing else does.
STAY_WEIGHT = 1e-5
# Longest rotation [rad] of one iteration.
LONGEST = 0.5


Target = tuple[Float[Array, "d"], ...]
"""A reading of each sensor."""


class Iterate(NamedTuple):
    """Where an iteration leads."""

    pose: Pose
    error: Float[Array, ""]
    """Sum of the squared errors of readings and gaps that it came from."""


def corrected(mechanism: Mechanism, pose: Pose, target: Target, weights: Float[Array, "sensors"]) -> Iterate:
    """A Gauss–Newton step on readings and gaps, staying near the pose where nothing decides."""
    elements = assemble(mechanism)
    bodies = elements.body_count

    def errors(increment: Array) -> Array:
        moved = pose.plus(increment.reshape(bodies, 6))
        view = StateView(mechanism, State(moved, jnp.zeros((bodies, 6))), elements)
        return _reading_errors(mechanism, view, target, weights)

    gap, gap_slope = gap_values(elements, pose), gap_jacobian(elements, pose)
    increment, error = _step(errors, GAP_WEIGHT * gap_slope, GAP_WEIGHT * gap, GAP_WEIGHT * gap)
    return Iterate(_limited(pose, increment.reshape(bodies, 6)), error)


def corrected_motion(
    tree: Tree, mechanism: Mechanism, motion: Pose, target: Target, weights: Float[Array, "sensors"]
) -> Iterate:
    """The same with the coordinates of a tree's joints, which leave no gaps but those of joints that close loops."""
    bodies = len(tree.links)
    gap: Array = jnp.zeros(0)
    slope: Array = jnp.zeros((0, tree.size))
    counted: Array = gap
    if tree.loops:
        closers, placed = loops.closing(tree, mechanism), forward_kinematics(tree, mechanism, motion)
        gap, slope = gap_values(closers, placed.pose), loops.jacobian(closers, placed.pose, placed.twists)
        compliant = np.array(loops.compliant_rows(tree, mechanism), bool)
        weight = np.where(compliant, 1.0, GAP_WEIGHT)
        counted = np.where(compliant, OPEN_WEIGHT, GAP_WEIGHT) * gap
        gap, slope = weight * gap, weight[:, None] * slope

    def errors(increment: Array) -> Array:
        moved = motion.plus((increment @ tree.selection()).reshape(bodies, 6))
        view = MotionView(tree, mechanism, State(moved, jnp.zeros((bodies, 6))))
        return _reading_errors(mechanism, view, target, weights)

    increment, error = _step(errors, slope, gap, counted)
    return Iterate(_limited(motion, (increment @ tree.selection()).reshape(bodies, 6)), error)


def _reading_errors(mechanism: Mechanism, view: View, target: Target, weights: Float[Array, "sensors"]) -> Array:
    parts = [
        weight * sensor.residual(sensor.read(view), value)
        for sensor, value, weight in zip(mechanism.sensors.values, target, weights, strict=True)
        if not sensor.needs_velocity
    ]
    return jnp.concatenate([jnp.zeros(0), *parts])


def _step(
    errors: Callable[[Array], Array], gap_slope: Float[Array, "g n"], gap: Float[Array, "g"], counted: Float[Array, "g"]
) -> tuple[Float[Array, "n"], Float[Array, ""]]:
    """Minimise the squares of linearised errors and gaps; with the sum of squares before that, gaps as ``counted``."""
    size = gap_slope.shape[1]
    reading, slope = slopes(errors, jnp.zeros(size))
    normal = slope.T @ slope + gap_slope.T @ gap_slope + STAY_WEIGHT**2 * jnp.eye(size)
    gradient = slope.T @ reading + gap_slope.T @ gap
    return -small_solve(normal, gradient[:, None], definite=True)[:, 0], jnp.sum(reading**2) + jnp.sum(counted**2)


def _limited(pose: Pose, increment: Float[Array, "bodies 6"]) -> Pose:
    longest = jnp.max(jnp.sqrt(jnp.sum(increment[:, 3:] ** 2, axis=1)))
    return pose.plus(increment * jnp.minimum(1.0, LONGEST / jnp.maximum(longest, LONGEST)))
