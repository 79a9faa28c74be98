"""What the two kinds of unknowns with the bodies' own poses have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.kinematics import StateView
from shadowfit.dynamics.state import Instant, Moving, State
from shadowfit.dynamics.tree import Placed
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals import transition
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.frame import moving_part
from shadowfit.estimation.residuals.inverse_kinematics import Iterate, Target, corrected
from shadowfit.estimation.residuals.start_state import Distance
from shadowfit.estimation.residuals.unknowns.interface import Evaluations, Start, Step, Unknowns
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree


class PoseUnknowns(Unknowns):
    """Nodes are poses of the bodies, six unknowns each, and what else a kind adds."""

    @property
    def impulses(self) -> int:
        return 6 * self.bodies

    def directions(self, increments: Float[Array, "*n b"]) -> Float[Array, "*n b"]:
        return increments

    def view(self, mechanism: Mechanism, state: State, instant: Instant) -> StateView:
        return StateView(mechanism, state, None, instant)

    def start_count(self, mechanism: Mechanism) -> int:
        gaps = sum(joint.kind.row_count() for joint in mechanism.joints.values)
        return 2 * min(gaps, self.impulses)

    def placed(self, mechanism: Mechanism, pose: Pose) -> Placed:
        twists = jnp.eye(self.impulses).reshape(self.bodies, 6, self.impulses)
        return Placed(pose, twists, pose.position)

    def motions(self, mechanism: Mechanism, pose: Pose) -> Pose:
        return pose

    def towards(self, mechanism: Mechanism, pose: Pose, target: Target, weights: Float[Array, "sensors"]) -> Iterate:
        return corrected(mechanism, pose, target, weights)

    def bodies_at(self, poses: Pose, here: Evaluations) -> Pose:
        return poses

    def nodes_at(self, bodies: Pose, here: Evaluations) -> Pose:
        return bodies

    def body_covariance(
        self, covariance: Float[np.ndarray, "n b b"], poses: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n b b"]:
        return covariance

    def impulses_of(
        self, residuals: Float[np.ndarray, "n r"], poses: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n r"]:
        return np.matmul(here.frames(poses).weighing, residuals[..., None])[..., 0]

    def residuals_of(
        self, impulses: Float[np.ndarray, "n r"], around: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n r"]:
        """Residuals ``M₀ w`` of missing impulses p: the part of p that moves the machine.

        w is the velocity that joints closed at the end of the step allow, ``G_{k+1} w = 0``, whose impulse differs
        from p by what the joints take up: ``A w = p − G_kᵀ μ``. (How fast gaps close depends on the time-step and is
        no physics.)
        """
        frames = here.frames(around)
        moving = moving_part(np.asarray(frames.jacobian), np.asarray(frames.inertia[1:-1]), impulses[..., None])
        return np.linalg.solve(frames.weighing[1:-1], moving)[..., 0]

    def axis_names(self, mechanism: Mechanism) -> tuple[str, ...]:
        return tuple(name for name, joint in mechanism.joints.items() if joint.kind.axis_kind is not None)

    def axis_answers(
        self, joints: Sequence[int], equations: Equations, around: Pose, timestep: float, here: Evaluations
    ) -> Float[np.ndarray, "n r j"]:
        """``M₀ w`` of each axis, w being what the assembled machine does; laws act at the middle of the step."""
        free = here.axes(around[1:-1])
        impulses = np.asarray(free.directions)[:, list(joints)].mT
        if equations.residual == "inverse":
            return impulses
        frames = here.frames(around)
        # Laws of all joints, also of those whose errors are not given, brake the answer.
        braked = np.asarray(free.directions).mT @ (0.5 * timestep * free.drag[..., None] * free.directions)
        inertia = np.asarray(frames.inertia[1:-1] + braked)
        reference = np.linalg.solve(frames.weighing[1:-1], frames.inertia[1:-1])
        return reference @ np.linalg.solve(inertia, moving_part(np.asarray(frames.jacobian), inertia, impulses))

    def impulses_on_bodies(
        self, errors: Float[np.ndarray, "n r"], poses: Pose, reference: Float[np.ndarray, "bodies 6"], here: Evaluations
    ) -> Float[np.ndarray, "n bodies 6"]:
        # Where a step has two impulse residuals, that of the velocity comes last, and moves the machine.
        return errors[:, -self.impulses :].reshape(len(errors), self.bodies, 6)

    def along_axes(
        self,
        impulses: Float[np.ndarray, "n r"],
        joints: Sequence[int],
        project: Callable[[Float[np.ndarray, "n r"]], Float[np.ndarray, "n j"]],
    ) -> Float[np.ndarray, "n j"]:
        return project(impulses)


class Velocities(PyTree):
    """Velocities of the bodies at the beginning and at the end of a step."""

    old: Float[Array, "bodies 6"]
    new: Float[Array, "bodies 6"]


def transition_at(equations: Equations, step: Step, pose: Pose, velocities: Velocities) -> transition.Transition:
    """The step's dynamics residual between two velocities, with its derivatives."""
    moving = Moving(pose, velocities.old, velocities.new, step.command, step.timestep)
    return transition.linearise(transition.Driven(step.machine, step.command_slopes), moving, equations)


class MeanVelocity(PyTree):
    """``(q₁ ⊟ q₀)/h`` and its derivatives by both configurations."""

    velocity: Float[Array, "bodies 6"]
    by_later: Float[Array, "bodies 6 6"]
    by_earlier: Float[Array, "bodies 6 6"]


def mean_velocity(later: Pose, earlier: Pose, timestep: Float[Array, ""]) -> MeanVelocity:
    """The velocity that leads from one configuration to another."""
    increment = later.minus(earlier)
    inverse = rotations.left_jacobian_inverse(increment[..., 3:])
    eye = jnp.broadcast_to(jnp.eye(3), inverse.shape)
    zero = jnp.zeros_like(inverse)

    def both(turning: Array) -> jax.Array:
        upper, lower = jnp.concatenate([eye, zero], axis=-1), jnp.concatenate([zero, turning], axis=-1)
        return jnp.concatenate([upper, lower], axis=-2)

    by_later, by_earlier = both(inverse), -both(inverse.mT)
    return MeanVelocity(increment / timestep, by_later / timestep, by_earlier / timestep)


def times(blocks: Float[Array, "r bodies 6"], factors: Float[Array, "bodies 6 6"]) -> Float[Array, "r bodies 6"]:
    """Derivatives by a velocity as derivatives by what changes it."""
    return jnp.einsum("rbi,bij->rbj", blocks, factors)


def stacked(columns: list[Float[Array, "r bodies k"]]) -> Float[Array, "r reach b"]:
    """Derivatives by each node of a window, side by side."""
    blocks = jnp.stack(columns, axis=1)
    return blocks.reshape(*blocks.shape[:2], -1)


def weighted_start(start: Start, distances: Sequence[tuple[int, Distance]], width: int) -> Rows:
    """Weighted rows of impulses that would close the joints, each of one of the first nodes.

    ``width`` is the number of unknowns of a body: six, or twelve with velocities.
    """
    window, size = len(start.first.pose.position), len(start.weight)
    states, parameters, residuals = [], [], []
    for node, impulse in distances:
        table = np.zeros((size, window, size // 6, width))
        by_state = np.stack([impulse.by_pose, impulse.by_velocity], axis=1).reshape(size, 2, size // 6, 6)
        table[:, node] = np.moveaxis(by_state, 1, 2).reshape(size, size // 6, 12)[..., :width]
        states.append(start.weight @ table.reshape(size, -1))
        parameters.append(start.weight @ impulse.by_parameters)
        residuals.append(start.weight @ impulse.residual)
    flat = np.concatenate(states)
    return Rows(flat.reshape(len(flat), window, -1), np.concatenate(parameters), np.concatenate(residuals))
