"""How a machine is made to move, as a function of coefficients: the variables of a design.

* `JointMotion`: every joint has a motor of its own, and a controller that is not part of the model follows any motion.
  Joint motions are designed; the inputs that they need follow by inverse dynamics.
* `Signals`: some joints are passive, or motors are position loops. Inputs are designed, the motion is simulated;
  its last part brings driven joints to rest (:mod:`ending`).
* `Release`: nothing drives the machine. It is held somewhere, and let go.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.ending import Ending, hump_shapes
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.motions import Motions, single_axes
from shadowfit.designs.waves import USUAL, Waves
from shadowfit.records import record

# Releases that are usual: all joints turned (or shifted) by this much of their amplitude.
RELEASES = {"small": 0.1, "half": 0.5, "far": 0.9}


class Drive(Protocol):
    """Motions by coefficients, of about one in size; zero is rest."""

    @property
    def size(self) -> int:
        """Number of coefficients."""
        ...

    def motions(self, experiment: Experiment, coefficients: Float[np.ndarray, "count size"]) -> Motions:
        """The motions of some sets of coefficients."""
        ...

    def usual(self) -> dict[str, Float[np.ndarray, " size"]]:
        """Coefficients of what people record without a design."""
        ...

    def drawn(self, random: np.random.Generator) -> Float[np.ndarray, " size"]:
        """Random coefficients."""
        ...


@record(frozen=True)
class _Waved:
    """What is driven by waves: coefficients are theirs."""

    waves: Waves

    @property
    def size(self) -> int:
        return self.waves.size

    def usual(self) -> dict[str, Float[np.ndarray, " size"]]:
        return {name: self.waves.usual(name) for name in USUAL}

    def drawn(self, random: np.random.Generator) -> Float[np.ndarray, " size"]:
        return self.waves.drawn(random)


@record(frozen=True)
class JointMotion(_Waved):
    """Motions of all joints, which a controller follows."""

    amplitude: Float[np.ndarray, " d"]
    """Of each joint [rad, m]."""
    command_of_force: Float[np.ndarray, "inputs d"]
    """Commands per force that the joints lack."""

    def motions(self, experiment: Experiment, coefficients: Float[np.ndarray, "count size"]) -> Motions:
        return experiment.prescribed(self.coordinates(experiment, coefficients), self.command_of_force)

    def coordinates(
        self, experiment: Experiment, coefficients: Float[np.ndarray, "count size"]
    ) -> Float[np.ndarray, "count n d"]:
        """Of all joints over time [rad, m]."""
        away = self.waves.signals(coefficients, experiment.sampling.times) * self.amplitude
        return experiment.rest_coordinates + away


@record(frozen=True)
class Signals(_Waved):
    """Inputs over time; the machine answers."""

    center: Float[np.ndarray, " inputs"]
    """Inputs at rest, in their units."""
    amplitude: Float[np.ndarray, " inputs"]
    ending: Ending
    """What their last part brings to rest."""

    def motions(self, experiment: Experiment, coefficients: Float[np.ndarray, "count size"]) -> Motions:
        inputs = self.center + self.waves.signals(coefficients, experiment.sampling.times) * self.amplitude
        start = np.tile(experiment.rest_coordinates, (len(coefficients), 1))
        rolling = experiment.simulated(start, inputs)
        late = self.ending.late(experiment, rolling)
        if not late.any():
            return rolling
        inputs[late] += self.ending.humps(experiment, rolling[late], hump_shapes(experiment, self.amplitude))
        return experiment.simulated(start, inputs)


@record(frozen=True)
class Release:
    """Where the joints are let go."""

    amplitude: Float[np.ndarray, " d"]
    """Of each joint [rad, m]; zero for joints of several axes."""

    @property
    def size(self) -> int:
        return len(self.amplitude)

    def motions(self, experiment: Experiment, coefficients: Float[np.ndarray, "count size"]) -> Motions:
        start = experiment.rest_coordinates + coefficients * self.amplitude
        return experiment.simulated(start, np.zeros((len(start), experiment.sampling.nodes, 0)))

    def usual(self) -> dict[str, Float[np.ndarray, " size"]]:
        return {name: np.full(self.size, part) for name, part in RELEASES.items()}

    def drawn(self, random: np.random.Generator) -> Float[np.ndarray, " size"]:
        return random.uniform(-1.0, 1.0, self.size)


def command_of_force(experiment: Experiment) -> Float[np.ndarray, "inputs d"] | None:
    """What turns forces that joints lack into commands, where every coordinate has an input of its own; else None.

    Motors whose force is not proportional to their input alone (position loops) have none.
    """
    count = len(experiment.mechanism.inputs)
    tree = experiment.tree
    if count != tree.size or len(single_axes(tree)) != tree.size:
        return None
    coordinates = np.tile(experiment.rest_coordinates, (1, 3, 1))
    pose = experiment.prescribed(coordinates, np.zeros((count, count))).pose
    idle = experiment.lacking(pose, np.zeros(count))[0, 0]
    columns = np.stack([experiment.lacking(pose, one)[0, 0] - idle for one in np.eye(count)], axis=1)
    strength = np.abs(np.linalg.det(columns)) / max(np.prod(np.linalg.norm(columns, axis=0)), 1e-300)
    if not strength > 1e-6:
        return None
    return np.linalg.inv(columns)
