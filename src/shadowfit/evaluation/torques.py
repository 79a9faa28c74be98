"""The torque that a model predicts along a measured motion, beside the one that was measured.

The motion is what the sensors show: their readings, low-pass filtered without lag (the fit's first trajectory; nothing
is simulated, and no equation of motion has a say in it). Along it the equations of motion with all inputs at zero lack
the force that the drives have to give,

    τ_predicted = (what the step lacks without inputs)/h,      τ_measured = gain · mean of the input over the step,

for each joint with a torque or force input. Errors of the discretisation are taken off where the fit does so. This is
the yardstick of robot identification, and the right one where open-loop simulations diverge, as those of arms in
position loops do.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from shadowfit.estimation import Estimate
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import unit_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.evaluation.unexplained import tree_behind
from shadowfit.mechanism import TorqueMotor
from shadowfit.recordings.filtering import lowpass

# Periods of the cut-off frequency at both ends that are left out: there the filter continues the motion.
ENDS = 1.0


@dataclasses.dataclass(frozen=True)
class TorquePrediction:
    """Torque [N m] or force [N] of one joint's drive along a recording."""

    unit: str
    time: Float[np.ndarray, " n"]
    """[s]."""
    measured: Float[np.ndarray, " n"]
    predicted: Float[np.ndarray, " n"]

    @property
    def rmse(self) -> float:
        """Root mean square of the difference."""
        return float(np.sqrt(np.mean((self.predicted - self.measured) ** 2)))

    @property
    def share(self) -> float:
        """The same as a part of the measured torque's root mean square; infinite where nothing was measured."""
        size = float(np.sqrt(np.mean(self.measured**2)))
        return self.rmse / size if size > 0.0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """What a table says of it."""
        share = self.share
        return {"unit": self.unit, "rmse": self.rmse, "share": share if np.isfinite(share) else None}


def predicted_torques(estimate: Estimate, recording: int = 0) -> dict[str, TorquePrediction]:
    """For each joint with a torque or force input: predicted and measured, with the parameters of an estimate.

    Both curves are low-pass filtered like the motion (``cutoff`` of the options), a period of which is left out at both
    ends. Empty where the unknowns are not those of joints, or loops tie these together.
    """
    problem = estimate.problem
    tree, drives = tree_behind(problem), driven_joints(problem)
    if tree is None or tree.loops or not drives:
        return {}
    values = estimate.outcome.linearisation.point.values
    with one_thread():
        nodes = tuple(initial_nodes(problem, values, i) for i in range(len(problem.tracks)))
        point = renewed(problem, objective.held(problem, Point(values, nodes), unit_weights(problem)))
        idle = problem.without_inputs()
        needed, left = (_missing(one, point, recording) for one in (idle, problem))
    track = problem.tracks[recording]
    ends = min(round(ENDS / (problem.options.cutoff * problem.timestep)), track.steps // 4)
    inner = slice(ends, track.steps - ends)
    time = track.times(problem.timestep)[: track.steps]
    found = {}
    for name in drives:
        column = tree.coordinate(problem.mechanism.joints.index(name))
        unit = "N m" if problem.mechanism.joints[name].kind.axis_kind == "rotation" else "N"
        curves = (lowpass(time, own[:, column], problem.options.cutoff)[inner] for own in (needed - left, needed))
        found[name] = TorquePrediction(unit, time[inner], *curves)
    return found


def driven_joints(problem: Problem) -> list[str]:
    """Joints whose torque or force is an input."""
    return [
        name
        for name, joint in problem.mechanism.joints.items()
        if any(isinstance(law, TorqueMotor) and law.input is not None for law in joint.laws.values)
    ]


def _missing(problem: Problem, point: Point, recording: int) -> Float[np.ndarray, "steps d"]:
    """Forces that the steps lack along given states [N m, N], errors of the discretisation taken off."""
    impulses = objective.residuals(problem, point, unit_weights(problem), recording)
    return impulses[:, : problem.plan.node_size] / problem.timestep
