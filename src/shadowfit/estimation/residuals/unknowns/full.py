"""Unknowns ``full`` (the paper's): poses and velocities of the bodies.

Step j involves ``(q_j, v_j), (q_{j+1}, v_{j+1})``. It has two dynamics residuals, ``Δp_q`` with ``v' = (q_{j+1} ⊟
q_j)/h`` and ``Δp_u`` with ``v' = v_{j+1}``.
"""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.start_state import closing_speed, distance
from shadowfit.estimation.residuals.unknowns.interface import Evaluations, Scope, Start, Step
from shadowfit.estimation.residuals.unknowns.poses import (
    PoseUnknowns,
    Velocities,
    mean_velocity,
    stacked,
    times,
    transition_at,
    weighted_start,
)
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record
from shadowfit.trees import map_leaves


@record(frozen=True)
class Full(PoseUnknowns):
    """Poses and velocities of the bodies."""

    scope = Scope(correction=False, any_equations=True, rigid=False)
    reach = 2
    centre = 0

    @classmethod
    def of(cls, mechanism: Mechanism) -> Full:
        return cls(len(mechanism.bodies))

    @property
    def node_size(self) -> int:
        return 2 * self.impulses

    def nodes(self, poses: Pose, timestep: float) -> Nodes:
        increments = differences(poses[1:], poses[:-1])
        return Nodes(poses, np.concatenate([increments[:1], increments]) / timestep)

    def blank(self, count: int) -> Nodes:
        return Nodes(super().blank(count).pose, np.zeros((count, self.bodies, 6)))

    def step_rows(self, equations: Equations, step: Step) -> Rows:
        assert step.nodes.velocity is not None
        now, after = step.nodes.pose[0], step.nodes.pose[1]
        velocity, reached = step.nodes.velocity[0], step.nodes.velocity[1]
        mean = mean_velocity(after, now, step.timestep)

        by_mean = transition_at(equations, step, now, Velocities(velocity, mean.velocity))
        by_now = by_mean.by_pose + times(by_mean.by_new_velocity, mean.by_earlier)
        by_after = times(by_mean.by_new_velocity, mean.by_later)
        first = jnp.concatenate([by_now, by_mean.by_velocity], axis=-1)
        second = jnp.concatenate([by_after, jnp.zeros_like(by_after)], axis=-1)
        configuration = Rows(stacked([first, second]), by_mean.by_parameters, by_mean.residual)

        by_velocities = transition_at(equations, step, now, Velocities(velocity, reached))
        first = jnp.concatenate([by_velocities.by_pose, by_velocities.by_velocity], axis=-1)
        second = jnp.concatenate([jnp.zeros_like(by_velocities.by_pose), by_velocities.by_new_velocity], axis=-1)
        speed = Rows(stacked([first, second]), by_velocities.by_parameters, by_velocities.residual)
        return map_leaves(lambda *x: jnp.concatenate(x), configuration, speed)

    def start_rows(self, start: Start, here: Evaluations) -> Rows:
        gaps = here.gaps(map_leaves(lambda x: x[:1], start.first))
        return weighted_start(start, [(0, distance(gaps, 0, start.timestep)), (0, closing_speed(gaps, 0))], 12)
