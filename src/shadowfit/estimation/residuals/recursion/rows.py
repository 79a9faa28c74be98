"""Rows of the dynamics in joint coordinates for trees of any size: elements link by link, then a sweep over the tree.

The residual and its derivatives are those of :mod:`joint_transition`, which writes the whole step out. Here what is
found of the links (:mod:`links`) is put together by :mod:`sweep`. Work grows with the number of pairs of joints that
hang on each other, and the code does not grow at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.residuals.parameter_layout import Layout, Values
from shadowfit.estimation.residuals.recursion.elements import TIMES
from shadowfit.estimation.residuals.recursion.impulses import TreeImpulses
from shadowfit.estimation.residuals.recursion.links import Outwards, TreeLinks, addresses
from shadowfit.estimation.residuals.recursion.shaft_rows import ShaftRows
from shadowfit.estimation.residuals.recursion.sweep import library, scratch_size
from shadowfit.estimation.residuals.stopping import Braked
from shadowfit.geometry import Pose
from shadowfit.kernels.loops import LANES
from shadowfit.kernels.recycled import recycled
from shadowfit.mechanism.mechanism import Mechanism


class TreeRows(TreeLinks):
    """The dynamics of one tree with free parameters."""

    def __init__(self, layout: Layout, tree: Tree, mechanism: Mechanism) -> None:
        super().__init__(layout, tree, mechanism, slopes=True)
        self.shafts = ShaftRows(layout, tree, mechanism)
        self.alone = TreeImpulses(layout, tree, mechanism, self.shafts)

    def prepare(self) -> None:
        """Have all code made in the background."""
        super().prepare()
        self.alone.prepare()
        self.shafts.prepare()

    def rows(
        self,
        values: Values,
        poses: Pose,
        command: tuple[Array, Array],
        timestep: float,
        widths: Float[np.ndarray, "steps a"],
    ) -> Float[np.ndarray, "steps d 3*d+p+1"]:
        """``[by three configurations | by parameters | missing impulse]`` [N s, N m s] of each step.

        ``poses`` are the motions of the joints at all nodes, two more than there are steps; ``command`` are the
        values of the inputs and their derivatives by the parameters that act through them; ``widths`` are
        those of dry friction (:mod:`stopping`).
        """
        steps = len(poses.position) - 2
        at = self.outwards(values, poses, command[0], timestep)
        wrenches, _ = self.carried(at)
        table = self.together(at, self.along_axes(at, wrenches, widths), command[1], steps)
        self.shafts.add(table, values, at.motions, widths[:, self.tree.size :], timestep)
        return table

    def missing(
        self, values: Values, poses: Pose, command: Array, timestep: float, widths: Float[np.ndarray, "steps a"]
    ) -> Float[np.ndarray, "steps d"]:
        """The last column of `rows` alone."""
        return self.alone.missing(values, poses, command, timestep, widths)

    def braked(self, values: Values, poses: Pose, command: Array, timestep: float) -> Braked:
        """What the widths of dry friction follow from."""
        return self.alone.braked(values, poses, command, timestep)

    def together(
        self, at: Outwards, axes: Sequence[np.ndarray | None], command_slopes: Array, steps: int
    ) -> Float[np.ndarray, "steps d 3*d+p+1"]:
        """All that was found of the links, as rows."""
        layout, size, times = self.records, self.tree.size, at.steps
        width = layout.width + layout.extra
        out = recycled(times, size, width)
        out.fill(0.0)
        scratch = np.empty(scratch_size(len(layout.links), size, len(layout.places)))
        # The residual is the last column of the sweep; inputs come before it.
        library(
            "rows",
            layout.links,
            addresses([at.links, at.bodies, axes]),
            layout.lists,
            layout.places,
            scratch,
            out,
            times // LANES,
            len(layout.links),
            size,
            width,
        )
        table = out[:steps]
        if not layout.extra:
            return table
        whole = np.concatenate([table[:, :, : layout.width - 1], table[:, :, -1:]], axis=2)
        if self.layout.inputs:
            inputs = slice(layout.width - 1, layout.width - 1 + command_slopes.shape[1])
            columns = TIMES * size + np.array(self.layout.inputs, int)
            whole[:, :, columns] += table[:, :, inputs] @ command_slopes[:, :]
        return whole
