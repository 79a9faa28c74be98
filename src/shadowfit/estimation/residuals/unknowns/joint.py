"""Unknowns ``joint``: joint coordinates. Joints are rigid, and nothing has to be closed at the start.

Step j involves the motions of the joints at three times. Its residual is that of :mod:`joint_transition`,
differentiated as a whole: with some unknowns a joint instead of six a body, forward mode through the whole step is
cheaper than the products of :mod:`transition`, and there is no inner problem to go around.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import Placed, Tree, coordinate_names, motions, place, tree_of
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import joint_transition
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.inverse_kinematics import Target, corrected_motion
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Layout
from shadowfit.estimation.residuals.recursion import TreeRows
from shadowfit.estimation.residuals.unknowns.interface import Evaluations, Scope, Start, Step, Unknowns
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.mechanism.mechanism import Mechanism

OPERATIONS = 60
"""Operations of a step that is written out, for each body, coordinate, and column of the derivatives: from the counts
of a Furuta pendulum and of a chain of eight links."""
LARGEST_STEP = 30_000
"""Operations beyond which a recursion over the tree is used, whose code is there at once. Both ways give the same rows;
where the recursion becomes the faster one has not been measured."""


@dataclasses.dataclass(frozen=True)
class Joint(Unknowns):
    """Coordinates of the joints."""

    scope = Scope(correction=True, any_equations=False, rigid=True)
    reach = 3
    centre = 1

    tree: Tree
    """How the bodies hang together."""

    @classmethod
    def of(cls, mechanism: Mechanism) -> Joint:
        return cls(len(mechanism.bodies), tree_of(mechanism))

    # --- nodes ---

    @property
    def impulses(self) -> int:
        return self.tree.size

    @property
    def node_size(self) -> int:
        return self.tree.size

    def level_names(self, mechanism: Mechanism) -> tuple[str, ...]:
        return coordinate_names(self.tree, mechanism)

    def directions(self, increments: Float[Array, "*n d"]) -> Float[Array, "*n bodies*6"]:
        return increments @ self.tree.selection()

    def nodes(self, poses: Pose, timestep: float) -> Nodes:
        return Nodes(poses, None)

    # --- rows ---

    def recursion(self, layout: Layout, mechanism: Mechanism) -> TreeRows | None:
        size = self.tree.size
        operations = OPERATIONS * self.bodies * size * (self.reach * size + layout.size)
        return TreeRows(layout, self.tree, mechanism) if operations > LARGEST_STEP else None

    def step_rows(self, equations: Equations, step: Step) -> Rows:
        machine, size = step.machine, self.tree.size
        width = self.reach * size

        def missing(increments: Array) -> Array:
            turned = self.directions(increments[:width].reshape(self.reach, size))
            moved = step.nodes.pose.plus(turned.reshape(self.reach, self.bodies, 6))
            parameters = increments[width:]
            acting = step.command + step.command_slopes @ parameters[np.array(machine.layout.inputs, int)]
            return joint_transition.residual(self.tree, machine.moved(parameters), moved, acting, step.timestep)

        value, table = slopes(missing, jnp.zeros(width + machine.layout.size))
        return Rows(table[:, :width].reshape(-1, self.reach, size), table[:, width:], value)

    def view(self, mechanism: Mechanism, state: State) -> MotionView:
        return MotionView(self.tree, mechanism, state)

    def start_rows(self, start: Start, here: Evaluations) -> Rows:
        window = len(start.first.pose.position)
        return Rows(np.zeros((0, window, self.node_size)), np.zeros((0, start.parameters)), np.zeros(0))

    def start_count(self, gaps: int) -> int:
        return 0

    # --- bodies ---

    def placed(self, mechanism: Mechanism, pose: Pose) -> Placed:
        return place(self.tree, mechanism, pose)

    def motions(self, mechanism: Mechanism, pose: Pose) -> Pose:
        return motions(self.tree, mechanism, pose)

    def towards(self, mechanism: Mechanism, pose: Pose, target: Target, weights: Float[Array, "sensors"]) -> Pose:
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
        return impulses

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
        return impulses[:, [self.tree.coordinate(joint) for joint in joints]]
