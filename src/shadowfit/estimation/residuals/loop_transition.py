"""Rows of a time step in joint coordinates whose tree has loops: the equations of motion along what they leave free.

:mod:`closure` has the equations of rigid loops, :mod:`giving` those of compliant ones. The loops' impulses λ are
eliminated inside the step. Where joints rub in proportion to what they carry, r depends on λ, which is then found in a
few rounds: friction changes the loads by some per cent of themselves.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import loops
from shadowfit.dynamics.tree import Tree, forward_kinematics
from shadowfit.dynamics.yielding import loop_law
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import giving, joint_transition
from shadowfit.estimation.residuals.closure import ROUNDS, all_loops, independence, tangent
from shadowfit.estimation.residuals.equations import Friction
from shadowfit.estimation.residuals.giving import springs_of
from shadowfit.estimation.residuals.unknowns.interface import Step
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp


def rows(tree: Tree, independent: tuple[int, ...], step: Step, friction: Friction, touches: bool = False) -> Rows:
    """Residuals ρ of a step with their derivatives by the independent coordinates of three nodes and the parameters.

    Where the machine ``touches`` something, without what :mod:`giving` multiplies them with: contacts come first.
    """
    machine, poses, size = step.machine, step.nodes.pose, len(independent)
    nodes, bodies = poses.position.shape[:2]
    width = nodes * size
    mechanism = machine.mechanism()
    law = loop_law(tree, loops.closing(tree, mechanism), step.timestep)
    gives, holds = law.gives, law.holds
    moves = [tangent(tree, independent, machine, poses[i]) for i in range(nodes)]
    now = all_loops(tree, mechanism, poses[1])
    held = independence(independent, now.rows[holds])
    rubs = any(joint.friction is not None for joint in mechanism.joints.values)
    springs = springs_of(tree, independent, machine, poses, step.timestep, friction) if tree.yielding else None
    if springs is not None and touches:
        springs = springs.unheld()

    def moved(increments: Array) -> tuple[Pose, Array]:
        unknowns, parameters = increments[:width].reshape(nodes, size), increments[width:]
        spread = jnp.stack(
            [m.by_unknowns @ u + m.by_parameters @ parameters for m, u in zip(moves, unknowns, strict=True)]
        )
        return poses.plus((spread @ tree.selection()).reshape(nodes, bodies, 6)), parameters

    def missing(increments: Array, reaction: Array) -> Float[Array, "d"]:
        motion, parameters = moved(increments)
        acting = step.command + step.command_slopes @ parameters[np.array(machine.layout.inputs, int)]
        return joint_transition.residual(tree, machine.moved(parameters), motion, acting, step.timestep, reaction)

    def defect(increments: Array, reaction: Array) -> Float[Array, "y"]:
        motion, parameters = moved(increments)
        changed = machine.moved(parameters)
        before, here, after = (forward_kinematics(tree, changed, motion[i]).pose for i in range(nodes))
        open_by = giving.defect(tree, changed, (before, here, after), reaction[gives], step.timestep, friction)
        assert springs is not None
        return open_by + springs.firmness * reaction[gives]

    def taken(increments: Array, reaction: Array, left: Float[Array, "d"]) -> Float[Array, "m"]:
        """What the joints that close loops take beside what they do."""
        more = jnp.zeros(len(reaction))
        if springs is not None:
            yielded = springs.more(defect(increments, reaction), held.moving.T @ left)
            more, left = more.at[gives].set(yielded), left - now.rows[gives].T @ yielded
        return more.at[holds].set(held.reaction(left)) if len(holds) else more

    still = jnp.zeros(width + machine.layout.size)
    reaction = jnp.zeros(len(law.yielding))
    for _ in range(ROUNDS if rubs else 1):
        reaction = reaction + taken(still, reaction, missing(still, reaction))

    def along(increments: Array) -> Float[Array, "n"]:
        reactions = reaction
        left = missing(increments, reactions)
        # Loads move with the increments, and friction with them; without friction rigid joints' λ may as well stand.
        for _ in range(2 if rubs else 0):
            reactions = reactions + taken(increments, reactions, left)
            left = missing(increments, reactions)
        free = held.moving.T @ left
        if springs is None:
            return free
        return free - springs.along @ springs.more(defect(increments, reactions), free)

    value, table = slopes(along, still)
    return Rows(table[:, :width].reshape(size, nodes, size), table[:, width:], value)
