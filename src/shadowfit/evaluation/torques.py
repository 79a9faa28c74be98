"""The torque that a model predicts along a measured motion, beside the one that was measured.

The motion is what the sensors show: their readings, low-pass filtered without lag (the fit's first trajectory; nothing
is simulated, and no equation of motion has a say in it). Along it the equations of motion with all inputs at zero lack
the force that the drives have to give,

    τ_predicted = (what the step lacks without inputs)/h,      τ_measured = gain · mean of the input over the step,

for each joint with a torque or force input. Errors of the discretisation are taken off where the fit does so. This is
the yardstick of robot identification, and the right one where open-loop simulations diverge, as those of arms in
position loops do.

The cut-off is that of the fit's first trajectory or, where that is lower, the frequency at which the readings sink into
their noise (:mod:`recordings.bandwidth`): beyond it accelerations, and the torques that they ask for, are those of the
noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation import Estimate
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import unit_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.mechanism import TorqueMotor
from shadowfit.mechanism.sensors import JointPosition
from shadowfit.recordings.bandwidth import bandwidth
from shadowfit.recordings.filtering import lowpass
from shadowfit.records import record

# Periods of the cut-off frequency at both ends that are left out: there the filter continues the motion.
ENDS = 1.0


@record(frozen=True)
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

    Both curves are low-pass filtered like the motion, a period of whose cut-off is left out at both ends. In closed
    loops they are those of the independent coordinates (which drives have if they can), each with what the loops bring
    to it of all drives. Empty where the unknowns are not those of joints, and where nothing moves.
    """
    coordinates = estimate.problem.level_names or ()
    drives = [name for name in driven_joints(estimate.problem) if name in coordinates]
    if not drives:
        return {}
    cutoff = torque_cutoff(estimate.problem, recording)
    if cutoff == 0.0:
        return {}
    options = dataclasses.replace(estimate.problem.options, cutoff=cutoff)
    problem = dataclasses.replace(estimate.problem, options=options)
    values = estimate.outcome.linearisation.point.values
    with one_thread():
        nodes = tuple(initial_nodes(problem, values, i) for i in range(len(problem.tracks)))
        point = renewed(problem, objective.held(problem, Point(values, nodes)))
        idle = problem.without_inputs()
        needed, left = (_missing(one, point, recording) for one in (idle, problem))
    track = problem.tracks[recording]
    ends = min(round(ENDS / (cutoff * problem.timestep)), track.steps // 4)
    inner = slice(ends, track.steps - ends)
    time = track.times(problem.timestep)[: track.steps]
    predictions = {}
    for name in drives:
        column = coordinates.index(name)
        unit = "N m" if problem.mechanism.joints[name].kind.axis_kind == "rotation" else "N"
        curves = (lowpass(time, torque[:, column], cutoff)[inner] for torque in (needed - left, needed))
        predictions[name] = TorquePrediction(unit, time[inner], *curves)
    return predictions


def torque_columns(torques: Mapping[str, TorquePrediction]) -> dict[str, np.ndarray]:
    """The curves as columns of a table: ``time [s]``, ``JOINT.measured [N m]`` and ``JOINT.predicted [N m]``."""
    columns = {}
    for name, prediction in torques.items():
        columns["time [s]"] = prediction.time
        columns |= {
            f"{name}.measured [{prediction.unit}]": prediction.measured,
            f"{name}.predicted [{prediction.unit}]": prediction.predicted,
        }
    return columns


def torques_of(columns: Mapping[str, np.ndarray]) -> dict[str, TorquePrediction]:
    """The curves behind the columns of a table."""
    predictions = {}
    for heading, measured in columns.items():
        name, _, unit = heading.removesuffix("]").rpartition(" [")
        if name.endswith(".measured"):
            joint = name.removesuffix(".measured")
            predictions[joint] = TorquePrediction(
                unit, columns["time [s]"], measured, columns[f"{joint}.predicted [{unit}]"]
            )
    return predictions


def torque_cutoff(problem: Problem, recording: int) -> float:
    """Up to which frequency torques are compared [Hz]; zero where all joints stand still.

    One that stands still has no noise to tell from its motion, and no say.
    """
    measured = problem.tracks[recording].recording
    cutoffs = [
        bandwidth(measured.time, measured.channels[name], wraps=sensor.rotary)
        for name, sensor in problem.mechanism.sensors.items()
        if isinstance(sensor, JointPosition) and name in measured.channels
    ]
    assert problem.options.cutoff is not None, "build_problem settles what is left open"
    moving = [cutoff for cutoff in cutoffs if cutoff > 0.0]
    if cutoffs and not moving:
        return 0.0
    return float(min([problem.options.cutoff, *([np.median(moving)] if moving else [])]))


def whole_share(torques: Mapping[str, TorquePrediction]) -> float:
    """Error of all joints together as a part of all torques: √(Σ rmse²/Σ rms²), for joints of the same unit."""
    errors = sum(prediction.rmse**2 for prediction in torques.values())
    sizes = sum(float(np.mean(prediction.measured**2)) for prediction in torques.values())
    return float(np.sqrt(errors / sizes)) if sizes > 0.0 else float("inf")


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
