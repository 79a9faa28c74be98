"""Unknowns ``joint``: joint coordinates. Joints are rigid, and nothing has to be closed at the start.

Step j involves the motions of the joints at three times. Its residual is that of :mod:`joint_transition`,
differentiated as a whole: there is no inner problem to go around, and few unknowns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.contact_law import contact_points
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.loops import compliant_rows, row_joints
from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.rigid_joints import rigid_tree
from shadowfit.dynamics.state import Instant, State, with_world
from shadowfit.dynamics.tree import Placed, Tree, coordinate_names, forward_kinematics, motions
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import joint_transition, loop_transition, stopping
from shadowfit.estimation.residuals.closure import closing, independence, tangent
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.frame import moving_part
from shadowfit.estimation.residuals.independent import (
    Closings,
    check_assembled,
    check_parameters,
    independent_coordinates,
)
from shadowfit.estimation.residuals.inverse_kinematics import Iterate, Target, corrected_motion
from shadowfit.estimation.residuals.loop_springs import springs_of
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Layout, Parametrised
from shadowfit.estimation.residuals.recursion import LoopRows, TreeRows
from shadowfit.estimation.residuals.touched import Free, Seen, Touched, touched
from shadowfit.estimation.residuals.unknowns.interface import (
    Along,
    Evaluations,
    Moves,
    Scope,
    Start,
    Step,
    Unknowns,
)
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record
from shadowfit.trees import map_leaves

OPERATIONS = 60
"""Operations of a step that is written out, for each body, coordinate, and column of the derivatives: from the counts
of a Furuta pendulum and of a chain of eight links."""
LARGEST_STEP = 30_000
"""Operations beyond which a recursion over the tree is used, whose code is there at once. Both ways give the same rows.
A step of few joints is three times faster written out (two joints with 13 parameters: 0.3 µs to 1.0), where zeros and
ones of the model are known when its code is made; small loops are thirty times faster (0.35 µs to 12). A fit of 1,000
samples takes 0.13 s of a processor, not 0.23 (Furuta pendulum, 7 parameters); of a four-bar linkage 0.17, not 0.6."""

ASSEMBLIES = 24
"""Random turns of the joints from which loops are closed at the first readings: they close in more ways than one."""
CLOSING_ROUNDS = 12
NEARLY = 1e-7
"""Iterations that close loops of moved nodes, and the gap [m, rad] before the last one, whose square it leaves."""


@record(frozen=True)
class Joint(Unknowns):
    """Coordinates of the joints."""

    scope = Scope(correction=True, any_equations=False, rigid=True)
    reach = 3
    centre = 1

    tree: Tree
    """How the bodies hang together."""
    independent: tuple[int, ...]
    """Coordinates that decide all others: all of them in a tree without loops."""
    touches: bool
    """Whether there are contacts or end stops."""

    @classmethod
    def of(cls, mechanism: Mechanism) -> Joint:
        tree = rigid_tree(mechanism)
        # What is independent in loops depends on where they move (`suited`).
        independent = () if tree.rigid_loops else tuple(range(tree.size))
        return cls(len(mechanism.bodies), tree, independent, len(mechanism.contacts) > 0)

    # --- nodes ---

    @property
    def impulses(self) -> int:
        return len(self.independent)

    @property
    def node_size(self) -> int:
        return len(self.independent)

    @property
    def level_places(self) -> tuple[int, ...]:
        return self.independent

    def level_names(self, mechanism: Mechanism) -> tuple[str, ...]:
        names = coordinate_names(self.tree, mechanism)
        return tuple(names[place] for place in self.independent)

    def directions(self, increments: Float[Array, "*n d"]) -> Float[Array, "*n bodies*6"]:
        return increments @ self.tree.selection()[list(self.independent)]

    def moves(self, machine: Parametrised, poses: Pose) -> Moves:
        if not self.tree.rigid_loops:
            return super().moves(machine, poses)
        count = poses.position.shape[0]
        tangents = [tangent(self.tree, self.independent, machine, poses[i]) for i in range(count)]

        def spread(increments: Array, parameters: Array) -> Array:
            moved = [
                t.by_unknowns @ step + t.by_parameters @ parameters
                for t, step in zip(tangents, increments, strict=True)
            ]
            return jnp.stack(moved) @ self.tree.selection()

        return spread

    def nodes(self, poses: Pose, timestep: float) -> Nodes:
        return Nodes(poses, None)

    # --- loops ---

    def constraints(self, mechanism: Mechanism, pose: Pose) -> Float[Array, "m"]:
        return closing(self.tree, mechanism, pose).gap if self.tree.rigid_loops else jnp.zeros(0)

    def closed(self, poses: Pose, here: Evaluations) -> Pose:
        if not self.tree.rigid_loops:
            return poses
        for _ in range(CLOSING_ROUNDS):
            poses, gap = here.closer(poses)
            nearly = np.max(np.abs(gap), axis=1) < NEARLY
            if nearly.all():
                return poses
        return Pose(np.where(nearly[:, None, None], poses.position, np.nan), poses.orientation)

    def guesses(self, pose: Pose) -> list[Pose]:
        if not self.tree.loops:
            return [pose]
        turning = np.array([direction >= 3 for link in self.tree.links for direction in link.freedom])
        rng = np.random.default_rng(0)
        away = np.where(turning, rng.uniform(-np.pi, np.pi, (ASSEMBLIES, self.tree.size)), 0.0)
        moves = (away @ self.tree.selection()).reshape(ASSEMBLIES, self.bodies, 6)
        return [pose, *(map_leaves(np.asarray, pose.plus(move)) for move in moves)]

    @property
    def settled(self) -> bool:
        return not self.tree.loops

    def suited(self, mechanism: Mechanism, parameters: Sequence[str], along: Sequence[Along]) -> Joint:
        if not self.tree.loops:
            return self
        joints, compliant = row_joints(self.tree, mechanism), np.array(compliant_rows(self.tree, mechanism))
        whole = [Closings(*each.here.closings(each.poses), each.time, joints) for each in along]
        for one in whole:
            check_assembled(one.part(compliant))
        if not self.tree.rigid_loops:
            return self
        closings = [one.part(~compliant) for one in whole]
        chosen = independent_coordinates(closings, self._by_preference(mechanism))
        for one in closings:
            check_parameters(one, parameters)
        return dataclasses.replace(self, independent=chosen)

    def _by_preference(self, mechanism: Mechanism) -> list[int]:
        """All coordinates: of joints that a sensor reads, then of those that an input drives, then the others."""
        read = {sensor.joint for sensor in mechanism.sensors.values if hasattr(sensor, "joint")}
        driven = {name for name, j in mechanism.joints.items() for law in j.laws.values if law.input is not None}
        names = [name.split(".")[0] for name in coordinate_names(self.tree, mechanism)]
        return sorted(range(len(names)), key=lambda place: (names[place] not in read, names[place] not in driven))

    # --- rows ---

    def recursion(self, layout: Layout, equations: Equations, mechanism: Mechanism) -> TreeRows | LoopRows | None:
        size, columns = self.tree.size, layout.size
        operations = OPERATIONS * self.bodies * size * (self.reach * size + columns)
        if operations <= LARGEST_STEP:
            return None
        if self.tree.loops:
            return LoopRows(layout, self.tree, self.independent, mechanism, equations.friction)
        return TreeRows(layout, self.tree, mechanism)

    def stick_times(self, mechanism: Mechanism) -> Float[np.ndarray, "a"]:
        rubbing = any(joint.friction is not None for joint in mechanism.joints.values) or len(mechanism.shafts)
        return np.array(stopping.stick_times(self.tree, mechanism) if rubbing else [], float)

    def braked(
        self, equations: Equations, machine: Parametrised, poses: Pose, command: Array, timestep: Float[Array, ""]
    ) -> tuple[Float[Array, "a"], Float[Array, "a"], Float[Array, "d"]]:
        tree, friction = self.tree, equations.friction
        if not tree.loops:
            return joint_transition.braked(tree, machine.mechanism(), poses, command, timestep)
        return loop_transition.braked(tree, self.independent, machine, poses, command, timestep, friction)

    def step_rows(self, equations: Equations, step: Step) -> Rows:
        rows = self._free_rows(equations, step)
        if not self.touches:
            return rows
        size = self.node_size
        contact = self.touched(equations, step.machine, step.nodes.pose, step.timestep, Free.of(rows, step.timestep))
        states, parameters = jnp.split(contact.pushed, [self.reach * size], axis=1)
        return Rows(
            jnp.einsum("ij,jwk->iwk", contact.through, rows.states - states.reshape(rows.states.shape)),
            contact.through @ (rows.parameters - parameters),
            contact.residual,
        )

    def touched(
        self, equations: Equations, machine: Parametrised, poses: Pose, timestep: Float[Array, ""], step: Free
    ) -> Touched:
        size, width = self.node_size, self.reach * self.node_size
        moves, selected = self.moves(machine, poses), self.tree.selection()[list(self.independent)]

        def seen_at(increments: Array) -> Seen:
            mechanism = machine.moved(increments[width:])
            spread = moves(increments[:width].reshape(self.reach, size), increments[width:])
            moved = poses.plus(spread.reshape(self.reach, self.bodies, 6))
            before, now, after = (self.placed(mechanism, moved[t]) for t in range(self.reach))
            old, new = now.pose.minus(before.pose) / timestep, after.pose.minus(now.pose) / timestep
            points = contact_points(assemble(mechanism), *with_world(now.pose, old), timestep)
            rates = selected @ moved[2].minus(moved[1]).ravel() / timestep
            return Seen(points.as_seen(now.twists.reshape(-1, size), new.ravel(), rates), rates)

        contact = touched(seen_at, width + machine.layout.size, step)
        if not self.tree.compliant:
            return contact
        into = springs_of(self.tree, self.independent, machine, poses, timestep, equations.friction).through
        return Touched(into @ contact.through, contact.pushed, into @ contact.residual)

    def _free_rows(self, equations: Equations, step: Step) -> Rows:
        """Rows without contacts."""
        if self.tree.loops:
            return loop_transition.rows(self.tree, self.independent, step, equations.friction, self.touches)
        machine, size = step.machine, self.tree.size
        width = self.reach * size

        def missing(increments: Array) -> Array:
            turned = self.directions(increments[:width].reshape(self.reach, size))
            moved = step.nodes.pose.plus(turned.reshape(self.reach, self.bodies, 6))
            parameters = increments[width:]
            acting = step.command + step.command_slopes @ parameters[np.array(machine.layout.inputs, int)]
            changed, widths = machine.moved(parameters), step.widths
            return joint_transition.balance_of(self.tree, changed, moved, acting, step.timestep, widths).missing

        value, table = slopes(missing, jnp.zeros(width + machine.layout.size))
        return Rows(table[:, :width].reshape(-1, self.reach, size), table[:, width:], value)

    def view(self, mechanism: Mechanism, state: State, instant: Instant) -> MotionView:
        return MotionView(self.tree, mechanism, state, instant)

    def start_rows(self, start: Start, here: Evaluations) -> Rows:
        window = len(start.first.pose.position)
        return Rows(np.zeros((0, window, self.node_size)), np.zeros((0, start.parameters)), np.zeros(0))

    def start_count(self, mechanism: Mechanism) -> int:
        return 0

    # --- bodies ---

    def placed(self, mechanism: Mechanism, pose: Pose) -> Placed:
        whole = forward_kinematics(self.tree, mechanism, pose)
        if not self.tree.rigid_loops:
            return whole
        rows = closing(self.tree, mechanism, pose).rows
        return Placed(whole.pose, whole.twists @ independence(self.independent, rows).moving, whole.centers)

    def motions(self, mechanism: Mechanism, pose: Pose) -> Pose:
        return motions(self.tree, mechanism, pose)

    def towards(self, mechanism: Mechanism, pose: Pose, target: Target, weights: Float[Array, "sensors"]) -> Iterate:
        return corrected_motion(self.tree, mechanism, pose, target, weights)

    def bodies_at(self, poses: Pose, here: Evaluations) -> Pose:
        return here.placed(poses).pose

    def nodes_at(self, bodies: Pose, here: Evaluations) -> Pose:
        return here.motions(bodies)

    def body_covariance(
        self, covariance: Float[np.ndarray, "n d d"], poses: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n bodies*6 bodies*6"]:
        twists = np.asarray(here.placed(poses).twists)
        moving = twists.reshape(len(twists), -1, twists.shape[-1])
        return moving @ covariance @ np.swapaxes(moving, 1, 2)

    # --- impulses ---

    def impulses_of(
        self, residuals: Float[np.ndarray, "n d"], poses: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n d"]:
        return residuals

    def residuals_of(
        self, impulses: Float[np.ndarray, "n d"], around: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n d"]:
        """Of machines with compliant joints the part that leaves these as they are, as with poses of bodies."""
        if not self.tree.compliant:
            return impulses
        placed = here.placed(around)
        frames, moving = (
            here.frames(placed.pose),
            np.asarray(placed.twists).reshape(len(impulses) + 2, -1, self.node_size),
        )
        inertia = moving[1:-1].mT @ frames.inertia[1:-1] @ moving[1:-1]
        return moving_part(np.asarray(frames.jacobian) @ moving, inertia, impulses[..., None])[..., 0]

    def impulses_on_bodies(
        self, errors: Float[np.ndarray, "n d"], poses: Pose, reference: Float[np.ndarray, "bodies 6"], here: Evaluations
    ) -> Float[np.ndarray, "n bodies 6"]:
        """An error r belongs to the velocity ``T w`` with ``Tᵀ M₀ T w = r``."""
        twists = np.asarray(here.placed(poses).twists)
        momenta = reference[:, :, None] * twists
        rates = np.linalg.solve(np.einsum("kbid,kbie->kde", twists, momenta), errors[..., None])
        return np.einsum("kbid,kd->kbi", momenta, rates[..., 0])

    def along_axes(
        self,
        impulses: Float[np.ndarray, "n d"],
        joints: Sequence[int],
        project: Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n j"]],
    ) -> Float[np.ndarray, "n j"]:
        """Joints whose coordinates follow from others lack nothing of their own."""
        places = {place: column for column, place in enumerate(self.independent)}
        along = np.zeros((len(impulses), len(joints)))
        for column, joint in enumerate(joints):
            place = None if joint in self.tree.loops else self.tree.coordinate(joint)
            if place in places:
                along[:, column] = impulses[:, places[place]]
        return along
