"""The compiled functions of the time steps at values of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics.tree import Placed
from shadowfit.estimation.problem import step_functions
from shadowfit.estimation.problem.step_kernels import Call, StepKernels, windows
from shadowfit.estimation.residuals.axes import Axes
from shadowfit.estimation.residuals.frame import Frame
from shadowfit.estimation.residuals.inverse_kinematics import Iterate
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.observation import reads_commands
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.start_state import StartGaps
from shadowfit.estimation.residuals.stopping import Stopping
from shadowfit.geometry import Pose
from shadowfit.records import record


@record(frozen=True)
class Readings:
    """Where the samples of each step look at the motion: through the poses of a window, and on a better curve."""

    windows: Pose
    """Poses of three steps, for each step."""
    fraction: Float[np.ndarray, "steps samples"]
    """Time of the sample after the middle one, in steps."""
    curve: Pose
    """One pose at each sample's time, or three around it where velocities are read."""
    apart: float
    """Time between these three [s]."""
    command: Float[np.ndarray, "steps inputs"]
    """Of each step."""


@record(frozen=True)
class Evaluator:
    """Functions along a trajectory, for one recording's values of the parameters."""

    kernels: StepKernels
    values: Values

    def dynamics_residuals(
        self,
        poses: Pose,
        commands: tuple[np.ndarray, np.ndarray],
        timestep: float,
        stopping: Stopping | None = None,
    ) -> Float[np.ndarray, "n r"]:
        """Dynamics residuals [N s, N m s] at all but the first and the last of poses of nodes a time-step apart.

        Dry friction has the widths of held ``stopping`` speeds, or of those of this motion.
        """
        stopping = stopping or self.stopping(poses, commands[0], timestep)
        widths = stopping.widths(self.kernels.stick_times, timestep)
        if self.kernels.recursion is not None:
            return self.kernels.missing(self.values, poses, commands, timestep, widths)
        unknowns = self.kernels.plan.unknowns
        inside, size = len(poses.position) - 2, unknowns.impulses
        nodes = windows(Nodes(poses, None), range(3), inside)
        varying = (nodes, *commands, widths, np.zeros((inside, size)))
        (rows,) = self._run(step_functions.dynamics_rows, (np.ones(size), np.asarray(timestep)), varying)
        return rows[:, :, -1]

    def stopping(self, poses: Pose, command: np.ndarray, timestep: float) -> Stopping:
        """Speeds from which friction stops each axis within the steps between nodes; without limits to its width."""
        if len(self.kernels.stick_times) == 0:
            return Stopping(np.zeros((len(poses.position) - 2, 0)))
        return Stopping(self.kernels.braked(self.values, poses, command, timestep).stopped)

    def reading_errors(self, readings: Readings, timestep: float) -> list[np.ndarray]:
        """Errors of each sensor's readings through windows of poses, against a better curve, of all samples."""
        times = (np.asarray(timestep), np.asarray(readings.apart))
        command = readings.command if reads_commands(self.kernels.mechanism) else readings.command[:, :0]
        varying = (readings.windows[:, None], readings.fraction, readings.curve, command[:, None])
        sizes = [sensor.error_size() for sensor in self.kernels.mechanism.sensors.values]
        within = readings.fraction.shape[1]
        (errors,) = self.kernels.run(Call(step_functions.reading_errors, self.values, times, varying, within=within))
        return np.split(errors, np.cumsum(sizes)[:-1], axis=1)

    def frames(self, bodies: Pose) -> Frame:
        """Rows of the gaps and inertia along poses of the bodies."""
        return Frame(*self._run(step_functions.frames, None, bodies))

    def axes(self, bodies: Pose) -> Axes:
        """Free axes of the joints along poses of the bodies."""
        return Axes(*self._run(step_functions.axes, None, bodies))

    def gaps(self, nodes: Nodes) -> StartGaps:
        """Gaps of states with their derivatives, and the bodies' masses; along the nodes."""
        return StartGaps(*self._run(step_functions.start_gaps, None, nodes))

    def follow(self, weights: np.ndarray, first: Pose, targets: tuple[np.ndarray, ...]) -> Iterate:
        """Poses of nodes after each iteration of inverse kinematics, one per target, and errors before it."""
        call = Call(step_functions.follow, self.values, weights, targets, first)
        position, orientation, error = self.kernels.run(call)
        return Iterate(Pose(position, orientation), error)

    def placed(self, poses: Pose) -> Placed:
        """Bodies at the poses of nodes, and how they move with them."""
        position, orientation, twists, centers = self._run(step_functions.placed, None, poses)
        return Placed(Pose(position, orientation), twists, centers)

    def motions(self, bodies: Pose) -> Pose:
        """Poses of nodes at poses of the bodies, computed from the joints."""
        return Pose(*self._run(step_functions.motions, None, bodies))

    def closer(self, poses: Pose) -> tuple[Pose, Float[np.ndarray, "n m"]]:
        """Poses of nodes with their loops closed a little better, and the gaps before that."""
        position, orientation, gap = self._run(step_functions.closer, None, poses)
        return Pose(position, orientation), gap

    def closings(self, poses: Pose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gaps of loops at the poses of nodes, their derivatives by coordinates, and those by parameters."""
        gap, rows, by_parameters = self._run(step_functions.closings, None, poses)
        return gap, rows, by_parameters

    def closed(self, poses: Pose) -> Pose:
        """Poses of nodes that satisfy what a node must by itself, not a number where that failed."""
        return self.kernels.plan.unknowns.closed(poses, self)

    def bodies(self, poses: Pose) -> Pose:
        """Poses of the bodies at the poses of nodes, whatever the unknowns are."""
        return self.kernels.plan.unknowns.bodies_at(poses, self)

    def nodes(self, bodies: Pose) -> Pose:
        """Poses of nodes at given poses of the bodies, whatever the unknowns are."""
        return self.kernels.plan.unknowns.nodes_at(bodies, self)

    def _run(self, function: Callable[..., Any], constants: Any, varying: Any) -> list[np.ndarray]:
        return self.kernels.run(Call(function, self.values, constants, varying))
