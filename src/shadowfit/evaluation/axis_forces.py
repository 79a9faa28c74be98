"""What the equations of motion lack, along the joints' axes.

Against speed it shows the friction that a model misses, against position a spring or an eccentric gear, against time a
drift.

The impulse residual Δp of a step, over all bodies, does the work ``Δpᵀ v``. Motions that open no joint are spanned by
the null space N of the gap rows G, chosen such that each column moves one joint at unit speed. ``Nᵀ Δp/h`` is then the
missing torque [N m] or force [N] of each joint.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView, gap_jacobian
from shadowfit.dynamics.state import State
from shadowfit.estimation import Estimate
from shadowfit.evaluation.store import joint_positions
from shadowfit.mechanism import Mechanism

# Singular values of the gap rows below this fraction of the largest are redundant rows of a loop.
REDUNDANT = 1e-9


class Bins(NamedTuple):
    """Mean force of one joint over another quantity."""

    over: Float[np.ndarray, " b"]
    """Mean time, position or speed of each bin."""
    force: Float[np.ndarray, " b"]
    """Mean force [N m or N]."""
    error: Float[np.ndarray, " b"]
    """Standard error of the mean force."""


@dataclasses.dataclass(frozen=True)
class AxisForce:
    """Missing force of one joint over the steps of a recording."""

    time: Float[np.ndarray, " n"]
    """[s]."""
    position: Float[np.ndarray, " n"]
    """[rad or m]; angles are followed over turns."""
    speed: Float[np.ndarray, " n"]
    """[rad/s or m/s]."""
    force: Float[np.ndarray, " n"]
    """[N m or N]; what would have to be added to the model."""

    def binned(self, over: Literal["time", "position", "speed"], bins: int = 20) -> Bins:
        """Mean force in bins of equally many steps, in the order of time, position or speed."""
        along = getattr(self, over)
        parts = [part for part in np.array_split(np.argsort(along), bins) if len(part) > 1]
        mean = [(np.mean(along[p]), np.mean(self.force[p]), np.std(self.force[p]) / np.sqrt(len(p))) for p in parts]
        return Bins(*np.array(mean).reshape(-1, 3).T)


def axis_forces(estimate: Estimate, recording: int = 0) -> dict[str, AxisForce]:
    """Missing force of each joint with a free axis."""
    mechanism, plan = estimate.mechanism(recording), estimate.problem.plan
    names = tuple(name for name, joint in mechanism.joints.items() if joint.kind.axis_kind)
    trajectory = estimate.trajectory(recording)
    states = trajectory.states
    gaps, axes = (np.asarray(x) for x in _jacobians(mechanism, states, names))
    weights = estimate.weights.dynamics
    weighted = estimate.evidence.projections[recording].residual[:, : estimate.evidence.layouts[recording][0].size]
    # With full unknowns the residual of the velocity comes last.
    impulse = np.linalg.solve(weights, weighted[:, -plan.impulses :].T).T
    velocity = np.asarray(states.velocity).reshape(len(impulse), gaps.shape[-1])
    speed = np.einsum("kjx,kx->kj", axes, velocity)
    joints = [mechanism.joints.index(name) for name in names]
    along = plan.unknowns.along_axes(impulse, joints, lambda impulse: _along_axes(gaps, axes, impulse))
    force = along / estimate.problem.timestep
    position = joint_positions(mechanism, states)
    return {name: AxisForce(trajectory.time, position[name], speed[:, i], force[:, i]) for i, name in enumerate(names)}


def _along_axes(
    gaps: Float[np.ndarray, "n r x"], axes: Float[np.ndarray, "n j x"], impulse: Float[np.ndarray, "n x"]
) -> Float[np.ndarray, "n j"]:
    """Impulses of all bodies along the motions that open no joint."""
    found = np.zeros(axes.shape[:2])
    for k, (gap, axis) in enumerate(zip(gaps, axes, strict=True)):
        _, values, vectors = np.linalg.svd(gap)
        rank = int(np.sum(values > REDUNDANT * values.max(initial=0.0)))
        free = vectors[rank:].T
        moves = free @ np.linalg.pinv(axis @ free)
        found[k] = moves.T @ impulse[k]
    return found


def _jacobians(
    mechanism: Mechanism, states: State, names: tuple[str, ...]
) -> tuple[Float[Array, "n r x"], Float[Array, "n j x"]]:
    """Gap rows and the joints' speeds as functions of all velocities, at each state."""
    elements = assemble(mechanism)

    @jax.jit
    def all_of(states: State) -> tuple[Array, Array]:
        def one(state: State) -> tuple[Array, Array]:
            def speeds(flat: Array) -> Array:
                view = StateView(mechanism, State(state.pose, flat.reshape(state.velocity.shape)), elements)
                return jnp.stack([view.joint_speed(name) for name in names])

            return gap_jacobian(elements, state.pose), jax.jacfwd(speeds)(state.velocity.ravel())

        return jax.vmap(one)(states)

    return all_of(states)
