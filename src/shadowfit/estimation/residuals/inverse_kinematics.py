"""One iteration of inverse kinematics: bodies moved towards what the sensors read, at zero constraint violation."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView, gap_jacobian, gap_values
from shadowfit.dynamics.state import State
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.mechanism.mechanism import Mechanism

# Gaps weigh this much more than readings, so that they are closed to rounding where both can be met.
GAP_WEIGHT = 1e3
# Pull towards the pose before, relative to the readings: decides only what nothing else does.
STAY_WEIGHT = 1e-5
# Longest rotation [rad] of one iteration.
LONGEST = 0.5


def corrected(
    mechanism: Mechanism, pose: Pose, target: tuple[Float[Array, "d"], ...], weights: Float[Array, "sensors"]
) -> Pose:
    """A Gauss–Newton step on readings and gaps, staying near the pose where nothing decides."""
    elements = assemble(mechanism)
    bodies = elements.body_count
    size = 6 * bodies

    def errors(increment: Array) -> Array:
        moved = pose.plus(increment.reshape(bodies, 6))
        view = StateView(mechanism, State(moved, jnp.zeros((bodies, 6))), elements)
        parts = [
            weight * sensor.residual(sensor.read(view), value)
            for sensor, value, weight in zip(mechanism.sensors.values, target, weights, strict=True)
        ]
        return jnp.concatenate(parts)

    reading, slope = slopes(errors, jnp.zeros(size))
    gap, gap_slope = gap_values(elements, pose), gap_jacobian(elements, pose)
    normal = slope.T @ slope + GAP_WEIGHT**2 * gap_slope.T @ gap_slope + STAY_WEIGHT**2 * jnp.eye(size)
    gradient = slope.T @ reading + GAP_WEIGHT**2 * gap_slope.T @ gap
    increment = -small_solve(normal, gradient[:, None], definite=True)[:, 0].reshape(bodies, 6)
    longest = jnp.max(jnp.sqrt(jnp.sum(increment[:, 3:] ** 2, axis=1)))
    return pose.plus(increment * jnp.minimum(1.0, LONGEST / jnp.maximum(longest, LONGEST)))
