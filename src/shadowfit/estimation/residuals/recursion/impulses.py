"""Missing impulses of a tree without their derivatives, for a fraction of the work of :mod:`rows`.

    τ_j = S_j · W_j − l_j

with W the sum of what the bodies that hang on a joint miss (:mod:`sweep`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.residuals.parameter_layout import Layout, Values
from shadowfit.estimation.residuals.recursion.lanes import POSE, RECORD
from shadowfit.estimation.residuals.recursion.links import Outwards, TreeLinks
from shadowfit.estimation.residuals.recursion.shaft_rows import ShaftRows
from shadowfit.estimation.residuals.stopping import Braked
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism.mechanism import Mechanism


class TreeImpulses(TreeLinks):
    """What the steps of one tree lack."""

    def __init__(self, layout: Layout, tree: Tree, mechanism: Mechanism, shafts: ShaftRows) -> None:
        super().__init__(layout, tree, mechanism, slopes=False)
        self.shafts = shafts

    def missing(
        self, values: Values, poses: Pose, command: Array, timestep: float, widths: Float[np.ndarray, "steps a"]
    ) -> Float[np.ndarray, "steps d"]:
        """Missing impulses [N s, N m s]; arguments are those of `TreeRows.rows`."""
        steps, size = len(poses.position) - 2, self.tree.size
        at = self.outwards(values, poses, command, timestep)
        carried, _ = self.carried(at)
        axes = self.along_axes(at, carried, widths)
        missing = np.zeros((steps, size))
        for place, wrench in enumerate(carried if self.rubs else self.sums(at)):
            first, count = (int(self.records.links[place, RECORD.index(name)]) for name in ("first", "freedom"))
            twists = at.links[place][1 : steps + 1, POSE : POSE + 6 * count].reshape(steps, count, 6)
            missing[:, first : first + count] = np.einsum("kcx,kx->kc", twists, wrench[:steps])
            if (axis := axes[place]) is not None:
                missing[:, first] -= axis[:steps, 0]
        self.shafts.take_off(missing, values, at.motions, widths[:, size:], timestep)
        return missing

    def braked(self, values: Values, poses: Pose, command: Array, timestep: float) -> Braked:
        """Stopping speeds ``d L`` of each coordinate and shaft, and their speeds."""
        steps, size = len(poses.position) - 2, self.tree.size
        at = self.outwards(values, poses, command, timestep)
        carried, mobility = self.carried(at)
        limits = self.limits(self.along_axes(at, carried, np.ones((steps, size))), steps)
        rates = self.rates(poses, timestep)
        stopped, speeds = self.shafts.braked(values, mobility[:, :steps], rates, timestep)
        return Braked(np.hstack([mobility[:, :steps].T * limits, stopped]), np.hstack([rates, speeds]), limits)

    def limits(self, axes: Sequence[np.ndarray | None], steps: int) -> Float[np.ndarray, "steps d"]:
        """Largest impulses of dry friction along the coordinates; no width matters to them."""
        limits = np.zeros((steps, self.tree.size))
        for place, axis in enumerate(axes):
            if axis is not None:
                limits[:, int(self.records.links[place, RECORD.index("first")])] = axis[:steps, 1]
        return limits

    def rates(self, poses: Pose, timestep: float) -> Float[np.ndarray, "steps d"]:
        """Of the coordinates, before each step."""
        moved = differences(poses[1:-1], poses[:-2])
        return moved.reshape(len(moved), -1) @ self.tree.selection().T / timestep

    def sums(self, at: Outwards) -> list[Float[np.ndarray, "steps 6"]]:
        """What all that hangs on each joint misses."""
        sums = [body[:, :6].copy() for body in at.bodies]
        for place in range(len(sums) - 1, -1, -1):
            before = int(self.records.links[place, RECORD.index("base")])
            if before >= 0:
                sums[before] += sums[place]
        return sums
