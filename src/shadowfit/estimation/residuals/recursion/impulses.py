"""Missing impulses of a tree without their derivatives, for a fraction of the work of :mod:`rows`.

    τ_j = S_j · W_j − l_j

with W the sum of what the bodies that hang on a joint miss (:mod:`sweep`).
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.residuals.fading import PRESENT, Fading
from shadowfit.estimation.residuals.parameter_layout import Layout, Values
from shadowfit.estimation.residuals.recursion.lanes import POSE, RECORD
from shadowfit.estimation.residuals.recursion.links import Outwards, TreeLinks
from shadowfit.estimation.residuals.recursion.shaft_rows import ShaftRows
from shadowfit.geometry import Pose
from shadowfit.mechanism.mechanism import Mechanism


class TreeImpulses(TreeLinks):
    """What the steps of one tree lack."""

    def __init__(self, layout: Layout, tree: Tree, mechanism: Mechanism, shafts: ShaftRows) -> None:
        super().__init__(layout, tree, mechanism, slopes=False)
        self.shafts = shafts

    def missing(
        self, values: Values, poses: Pose, command: Array, timestep: float, fading: Fading = PRESENT
    ) -> Float[np.ndarray, "steps d"]:
        """Missing impulses [N s, N m s]; arguments are those of `TreeRows.rows`."""
        steps, size = len(poses.position) - 2, self.tree.size
        at = self.outwards(values, poses, command, timestep)
        carried, easily = self.carried(at)
        widths = fading.widths(size, self.shafts.count, at.steps)
        axes = self.along_axes(at, carried, easily, widths)
        missing = np.zeros((steps, size))
        for place, wrench in enumerate(carried if self.rubs else self.sums(at)):
            first, count = (int(self.records.links[place, RECORD.index(name)]) for name in ("first", "freedom"))
            twists = at.links[place][1 : steps + 1, POSE : POSE + 6 * count].reshape(steps, count, 6)
            missing[:, first : first + count] = np.einsum("kcx,kx->kc", twists, wrench[:steps])
            if (axis := axes[place]) is not None:
                missing[:, first] -= axis[:steps, 0]
        self.shafts.take_off(missing, values, at.motions, easily, widths, timestep)
        return missing

    def stopped(self, values: Values, poses: Pose, command: Array, timestep: float) -> Fading:
        """Speeds ``d L`` from which friction stops each coordinate and shaft within a step."""
        steps, size = len(poses.position) - 2, self.tree.size
        at = self.outwards(values, poses, command, timestep)
        carried, easily = self.carried(at)
        limits = np.zeros((size, steps))
        axes = self.along_axes(at, carried, easily, PRESENT.widths(size, self.shafts.count, at.steps))
        for place, axis in enumerate(axes):
            if axis is not None:
                limits[int(self.records.links[place, RECORD.index("first")])] = axis[:steps, 1]
        return Fading((easily[:, :steps] * limits).T, self.shafts.stopped(values, easily[:, :steps], timestep))

    def sums(self, at: Outwards) -> list[Float[np.ndarray, "steps 6"]]:
        """What all that hangs on each joint misses."""
        sums = [body[:, :6].copy() for body in at.bodies]
        for place in range(len(sums) - 1, -1, -1):
            before = int(self.records.links[place, RECORD.index("base")])
            if before >= 0:
                sums[before] += sums[place]
        return sums
