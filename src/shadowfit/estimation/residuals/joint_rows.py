"""Rows of the dynamics in joint coordinates: the residual of :mod:`joint_transition`, differentiated as a whole.

With some unknowns a joint instead of six a body, forward mode through the whole step is cheaper than the products of
:mod:`transition`, and there is no inner problem to go around.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import assemble
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import joint_transition
from shadowfit.estimation.residuals.linearise import Plan, write
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.mechanism.mechanism import Mechanism


def dynamics_rows(
    plan: Plan,
    mechanism: Mechanism,
    numbers: Array,
    turns: Array,
    motions: Pose,
    command: Float[Array, "inputs"],
    command_slopes: Float[Array, "inputs columns"],
    timestep: Array,
) -> Rows:
    """Missing impulses of a step with their derivatives by three configurations and the parameters, unweighted.

    ``command_slopes`` are derivatives of the command by the parameters that act through the inputs.
    """
    tree = plan.tree
    assert tree is not None
    reference = reference_mass(assemble(mechanism).bodies)
    width = plan.reach * tree.size

    def missing(increments: Array) -> Array:
        steps = increments[:width].reshape(plan.reach, tree.size) @ tree.selection()
        moved = motions.plus(steps.reshape(plan.reach, plan.bodies, 6))
        parameters = increments[width:]
        now = write(plan, mechanism, numbers, turns, parameters)
        acting = command + command_slopes @ parameters[np.array(plan.input_columns, int)]
        return joint_transition.residual(tree, now, reference, moved, acting, timestep)

    value, table = slopes(missing, jnp.zeros(width + plan.parameters))
    return Rows(table[:, :width].reshape(-1, plan.reach, tree.size), table[:, width:], value)
