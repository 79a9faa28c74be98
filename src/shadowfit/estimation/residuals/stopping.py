"""Over what speeds dry friction reverses in a fit: held while it moves, and found anew where it stands.

The width w of dry friction (:mod:`shadowfit.dynamics.sliding`) follows from the speed ``d L`` from which friction stops
an axis within a step, and so from poses, inertias and friction itself. It belongs to the method, not to the machine:
were it to follow the unknowns, a fit would be told by a width how large inertias and friction are, and rows would have
to be differentiated by mobilities. So a point holds stopping speeds, with limits from its first motion, and gradients
are those of the cost.

All ways to the rows of a step have their widths from here: one for each *axis*, which are the coordinates of the
tree, then the axes of joints that close its loops, then the shafts that several joints turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics import loops, sliding
from shadowfit.dynamics.tree import Tree
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree


class Braked(NamedTuple):
    """All axes before some steps."""

    stopped: Float[np.ndarray, "steps a"]
    """Speeds from which friction stops them within a step, ``d L`` [rad/s, m/s],"""
    speeds: Float[np.ndarray, "steps a"]
    """and those that they have."""
    levels: Float[np.ndarray, "steps d"]
    """Largest impulses L of dry friction along the coordinates of the tree [N m s, N s]."""


class Stopping(PyTree):
    """Speeds from which friction stops each axis within a step, along one recording or a part of it."""

    speeds: Float[np.ndarray, "steps a"]
    """``d L`` [rad/s, m/s]."""
    most: Float[np.ndarray, "a 2"] | None = None
    """Largest widths, by :func:`sliding.widest`; None: no limit, as in a simulation."""
    open: Float[np.ndarray, "steps r"] | None = None
    """Standard deviation [N m s, N s] of what friction at rest may be in each equation (:mod:`sticking`)."""

    def limited(self, most: Float[np.ndarray, "a 2"]) -> Stopping:
        """With limits. An axis without friction, which has no width yet, gets the largest that half a step may have."""
        return Stopping(np.where(self.speeds > 0.0, self.speeds, 2.0 * most[:, 1]), most)

    def finer(self, at: Float[np.ndarray, " n"], parts: int) -> Stopping:
        """Those of steps that are so many times shorter, centred at times counted in steps."""
        if not self.speeds.shape[1]:
            return Stopping(np.zeros((len(at), 0)), self.most)
        times = np.arange(len(self.speeds))
        speeds = np.stack([np.interp(at, times, one) for one in np.asarray(self.speeds).T], axis=1) / parts
        # What half a step asks for is less in finer ones, also where there is a limit to it: else the errors of the
        # discretisation, which are found from these, would leave it in.
        return Stopping(speeds, None if self.most is None else self.most / np.array([1.0, parts]))

    def widths(self, stick_times: Float[np.ndarray, "a"], timestep: float) -> Float[np.ndarray, "steps a"]:
        """w [rad/s, m/s]."""
        return np.asarray(sliding.stick_width(stick_times, self.speeds, timestep, self.most, library=np))


def stick_times(tree: Tree, mechanism: Mechanism) -> list[Any]:
    """How long a stuck axis creeps [s], of all axes; zero without friction."""
    joints = mechanism.joints.values
    times: list[Any] = [0.0] * tree.size
    for place, joint in enumerate(joints):
        if joint.friction is not None and place not in tree.loops:
            times[tree.coordinate(place)] = joint.friction.stick_time
    for group in loops.closing(tree, mechanism).groups if tree.loops else ():
        if group.has_axis:
            closing = (joints[tree.loops[joint]] for joint in group.joints)
            times += [0.0 if joint.friction is None else joint.friction.stick_time for joint in closing]
    return times + [0.0] * len(mechanism.shafts)


def alike(first: Stopping, other: Stopping, part: float) -> bool:
    """Whether no speed differs by more than a part of itself."""
    return bool(np.all(np.abs(first.speeds - other.speeds) <= part * np.abs(other.speeds)))
