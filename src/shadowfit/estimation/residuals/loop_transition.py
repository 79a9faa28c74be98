"""Rows of a time step in joint coordinates whose tree has loops: the equations of motion along what they leave free.

:mod:`closure` has the equations of rigid loops, :mod:`loop_springs` those of compliant ones. The loops' impulses λ are
eliminated inside the step. Where joints rub in proportion to what they carry, r depends on λ, which is then found in a
few rounds: friction changes the loads by some per cent of themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import loops
from shadowfit.dynamics.loop_law import LoopLaw, loop_law
from shadowfit.dynamics.sliding import stick_width
from shadowfit.dynamics.tree import Tree, forward_kinematics
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import joint_transition, loop_springs
from shadowfit.estimation.residuals.closure import ROUNDS, Closing, Independence, all_loops, independence, tangent
from shadowfit.estimation.residuals.equations import Friction
from shadowfit.estimation.residuals.loop_springs import LoopSprings, springs_of
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.estimation.residuals.stopping import stick_times
from shadowfit.estimation.residuals.unknowns.interface import Step
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism


class _Loops(NamedTuple):
    """The loops of a step between three nodes."""

    tree: Tree
    law: LoopLaw
    now: Closing
    held: Independence
    springs: LoopSprings | None
    friction: Friction
    timestep: Float[Array, ""]

    @classmethod
    def of(
        cls,
        tree: Tree,
        independent: tuple[int, ...],
        machine: Parametrised,
        poses: Pose,
        timestep: Float[Array, ""],
        friction: Friction,
    ) -> _Loops:
        mechanism = machine.mechanism()
        law = loop_law(tree, loops.closing(tree, mechanism), timestep)
        now = all_loops(tree, mechanism, poses[1])
        held = independence(independent, now.rows[law.rigid_places])
        springs = springs_of(tree, independent, machine, poses, timestep, friction) if tree.compliant else None
        return cls(tree, law, now, held, springs, friction, timestep)

    def defect(self, mechanism: Mechanism, motions: Pose, reaction: Float[Array, "m"]) -> Float[Array, "y"]:
        """``Σ λ + d`` of compliant rows."""
        assert self.springs is not None
        before, here, after = (forward_kinematics(self.tree, mechanism, motions[i]).pose for i in range(3))
        given = reaction[self.law.compliant_places]
        open_by = loop_springs.defect(self.tree, mechanism, (before, here, after), given, self.timestep, self.friction)
        return open_by + self.springs.firmness * given

    def taken(
        self, mechanism: Mechanism, motions: Pose, reaction: Float[Array, "m"], left: Float[Array, "d"]
    ) -> Float[Array, "m"]:
        """What the joints that close loops take beside what they do."""
        compliant, rigid, more = self.law.compliant_places, self.law.rigid_places, jnp.zeros(len(reaction))
        if self.springs is not None:
            sprung = self.springs.more(self.defect(mechanism, motions, reaction), self.held.moving.T @ left)
            more, left = more.at[compliant].set(sprung), left - self.now.rows[compliant].T @ sprung
        return more.at[rigid].set(self.held.reaction(left)) if len(rigid) else more


def rows(tree: Tree, independent: tuple[int, ...], step: Step, friction: Friction, touches: bool = False) -> Rows:
    """Residuals ρ of a step with their derivatives by the independent coordinates of three nodes and the parameters.

    Where the machine ``touches`` something, without what :mod:`loop_springs` multiplies them with: contacts come first.
    """
    machine, poses, size = step.machine, step.nodes.pose, len(independent)
    nodes, bodies = poses.position.shape[:2]
    width = nodes * size
    moves = [tangent(tree, independent, machine, poses[i]) for i in range(nodes)]
    closed = _Loops.of(tree, independent, machine, poses, step.timestep, friction)
    if closed.springs is not None and touches:
        closed = closed._replace(springs=closed.springs.beside_contacts())
    springs, moving = closed.springs, closed.held.moving
    rubs = any(joint.friction is not None for joint in machine.mechanism().joints.values)

    def moved(increments: Array) -> tuple[Mechanism, Pose, Array]:
        unknowns, parameters = increments[:width].reshape(nodes, size), increments[width:]
        spread = jnp.stack(
            [m.by_unknowns @ u + m.by_parameters @ parameters for m, u in zip(moves, unknowns, strict=True)]
        )
        acting = step.command + step.command_slopes @ parameters[np.array(machine.layout.inputs, int)]
        return machine.moved(parameters), poses.plus((spread @ tree.selection()).reshape(nodes, bodies, 6)), acting

    def missing(increments: Array, reaction: Array) -> Float[Array, "d"]:
        here = joint_transition.balance_of(tree, *moved(increments), step.timestep, step.widths, reaction)
        return here.missing

    def taken(increments: Array, reaction: Array, left: Float[Array, "d"]) -> Float[Array, "m"]:
        return closed.taken(*moved(increments)[:2], reaction, left)

    still = jnp.zeros(width + machine.layout.size)
    reaction = jnp.zeros(len(closed.law.compliant))
    for _ in range(ROUNDS if rubs else 1):
        reaction = reaction + taken(still, reaction, missing(still, reaction))

    def along(increments: Array) -> Float[Array, "n"]:
        reactions = reaction
        left = missing(increments, reactions)
        # Loads move with the increments, and friction with them; without friction rigid joints' λ may as well stand.
        for _ in range(2 if rubs else 0):
            reactions = reactions + taken(increments, reactions, left)
            left = missing(increments, reactions)
        free = moving.T @ left
        if springs is None:
            return free
        return free - springs.along @ springs.more(closed.defect(*moved(increments)[:2], reactions), free)

    value, table = slopes(along, still)
    return Rows(table[:, :width].reshape(size, nodes, size), table[:, width:], value)


def braked(
    tree: Tree,
    independent: tuple[int, ...],
    machine: Parametrised,
    poses: Pose,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    friction: Friction,
) -> tuple[Float[Array, "a"], Float[Array, "a"], Float[Array, "d"]]:
    """What friction does to all axes (:class:`stopping.Braked`), found along with the loops' impulses."""
    mechanism = machine.mechanism()
    closed = _Loops.of(tree, independent, machine, poses, timestep, friction)
    times = jnp.stack([jnp.asarray(time) for time in stick_times(tree, mechanism)])
    response = joint_transition.mobility(tree, mechanism, poses[1], timestep)
    reaction: Array = jnp.zeros(len(closed.law.compliant))
    stopped: Array = jnp.zeros(len(times))
    speeds = limits = stopped
    for _ in range(ROUNDS):
        widths = stick_width(times, stopped, timestep)
        here = joint_transition.balance_of(tree, mechanism, poses, command, timestep, widths, reaction)
        reaction = reaction + closed.taken(mechanism, poses, reaction, here.missing)
        stopped, speeds, limits = response * here.limits, here.speeds, here.limits
    return stopped, speeds, limits[: tree.size]
