"""Rows of a time step in joint coordinates whose tree has loops: the equations of motion along what they leave free.

:mod:`closure` has the equations. The loops' impulses λ are eliminated inside the step. Where joints rub in proportion
to what they carry, r depends on λ, which is then found in a few rounds: friction changes the loads by some per cent of
themselves.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from shadowfit.arrays import Array
from shadowfit.dynamics.loops import row_count
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import joint_transition
from shadowfit.estimation.residuals.closure import ROUNDS, closing, independence, tangent
from shadowfit.estimation.residuals.unknowns.interface import Step
from shadowfit.kernels import slopes


def rows(tree: Tree, independent: tuple[int, ...], step: Step) -> Rows:
    """Residuals ρ of a step with their derivatives by the independent coordinates of three nodes and the parameters."""
    machine, poses, size = step.machine, step.nodes.pose, len(independent)
    nodes, bodies = poses.position.shape[:2]
    width = nodes * size
    mechanism = machine.mechanism()
    moves = [tangent(tree, independent, machine, poses[i]) for i in range(nodes)]
    held = independence(independent, closing(tree, mechanism, poses[1]).rows)
    rubs = any(joint.friction is not None for joint in mechanism.joints.values)

    def missing(increments: Array, reaction: Array) -> Float[Array, "d"]:
        unknowns, parameters = increments[:width].reshape(nodes, size), increments[width:]
        spread = jnp.stack(
            [m.by_unknowns @ u + m.by_parameters @ parameters for m, u in zip(moves, unknowns, strict=True)]
        )
        moved = poses.plus((spread @ tree.selection()).reshape(nodes, bodies, 6))
        acting = step.command + step.command_slopes @ parameters[np.array(machine.layout.inputs, int)]
        return joint_transition.residual(tree, machine.moved(parameters), moved, acting, step.timestep, reaction)

    still = jnp.zeros(width + machine.layout.size)
    reaction = jnp.zeros(row_count(tree, mechanism))
    for _ in range(ROUNDS if rubs else 1):
        reaction = reaction + held.reaction(missing(still, reaction))

    def along(increments: Array) -> Float[Array, "n"]:
        reactions = reaction
        left = missing(increments, reactions)
        # Loads move with the increments, and friction with them; without friction λ may as well stand.
        for _ in range(2 if rubs else 0):
            reactions = reactions + held.reaction(left)
            left = missing(increments, reactions)
        return held.moving.T @ left

    value, table = slopes(along, still)
    return Rows(table[:, :width].reshape(size, nodes, size), table[:, width:], value)
