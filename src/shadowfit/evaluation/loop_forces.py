"""Forces of position and velocity loops along the estimated motion, where their gains were given.

Nobody measured them, but the target was recorded, and what the loop makes of it is part of the model: a force that is
as well known as its gains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation import Estimate
from shadowfit.estimation.problem.drives import targets
from shadowfit.estimation.problem.problem import Problem
from shadowfit.evaluation.joint_motion import joint_positions

# What decides the force of a loop besides its target and the motion.
GAINS = ("kp", "kd", "gain", "limit")


def given_loops(problem: Problem) -> list[str]:
    """Joints in loops none of whose gains is estimated."""
    free = set(problem.plan.layout.numbers)
    return [
        name
        for name in targets(problem)
        if not any(f"{name}.{law}.{gain}" in free for law in problem.mechanism.joints[name].laws for gain in GAINS)
    ]


def loop_forces(estimate: Estimate, joints: Sequence[str]) -> dict[str, Float[np.ndarray, " n"]]:
    """Force of each of these joints' loops over the steps of all recordings [N m, N]."""
    if not joints:
        return {}
    parts = [_of_recording(estimate, index, joints) for index in range(len(estimate.problem.tracks))]
    return {name: np.concatenate([part[name] for part in parts]) for name in joints}


def _of_recording(estimate: Estimate, index: int, joints: Sequence[str]) -> dict[str, Float[np.ndarray, " n"]]:
    problem, mechanism = estimate.problem, estimate.mechanism(index)
    loops = targets(problem)
    commands = problem.commands_at(estimate.outcome.linearisation.point.values, index)[0]
    positions = joint_positions(mechanism, estimate.trajectory(index).states)
    forces = {}
    for name in joints:
        steps = min(len(commands), len(positions[name]))
        position, laws = positions[name][:steps], dict(mechanism.joints[name].laws.items())
        speed = np.gradient(position, problem.timestep) if steps > 1 else np.zeros(steps)
        own = [
            np.asarray(laws[law].torque(position, speed, mechanism.command_of(laws[law], commands[:steps])))
            for law in loops[name]
        ]
        forces[name] = np.sum(own, axis=0)
    return forces
