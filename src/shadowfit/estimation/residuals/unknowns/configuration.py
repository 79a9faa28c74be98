"""Unknowns ``configuration``: poses of the bodies, with the velocities that lead from one to the next.

Step j involves ``q_{j−1}, q_j, q_{j+1}``, with ``v_j = (q_j ⊟ q_{j−1})/h`` enforced; one dynamics residual of 6 rows a
body.
"""

from __future__ import annotations

from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.start_state import distance
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
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record


@record(frozen=True)
class Configuration(PoseUnknowns):
    """Poses of the bodies."""

    scope = Scope(correction=True, any_equations=True, rigid=False)
    reach = 3
    centre = 1

    @classmethod
    def of(cls, mechanism: Mechanism) -> Configuration:
        return cls(len(mechanism.bodies))

    @property
    def node_size(self) -> int:
        return self.impulses

    def nodes(self, poses: Pose, timestep: float) -> Nodes:
        return Nodes(poses, None)

    def step_rows(self, equations: Equations, step: Step) -> Rows:
        before, now, after = (step.nodes.pose[i] for i in range(3))
        old = mean_velocity(now, before, step.timestep)
        new = mean_velocity(after, now, step.timestep)
        missing = transition_at(equations, step, now, Velocities(old.velocity, new.velocity))
        by_before = times(missing.by_velocity, old.by_earlier)
        by_now = missing.by_pose + times(missing.by_velocity, old.by_later)
        by_now = by_now + times(missing.by_new_velocity, new.by_earlier)
        by_after = times(missing.by_new_velocity, new.by_later)
        return Rows(stacked([by_before, by_now, by_after]), missing.by_parameters, missing.residual)

    def start_rows(self, start: Start, here: Evaluations) -> Rows:
        gaps = here.gaps(Nodes(start.first.pose[:2], None))
        return weighted_start(start, [(node, distance(gaps, node, start.timestep)) for node in (0, 1)], 6)
