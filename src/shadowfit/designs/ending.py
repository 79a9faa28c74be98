"""The end of a motion that inputs drive: its last part brings joints to rest, and holds them there.

Inputs that fade out leave a cart rolling. In the last part of the time smooth humps are therefore added to every input,
so large that the speeds v of the joints that are to end at rest vanish when the motion has come to its end,

    min over b of  mean (v/s)² + |b|²,

with s the speeds that count as rest, and b the sizes of the humps over the amplitudes of the inputs. Humps go on to the
end: a cart under a pole that still swings is held by its force. Speeds are nearly linear in b: rounds of Gauss–Newton
share the slopes of the first, and there are always as many, so that the end is a smooth function of what came before.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline

from shadowfit.arrays import Bool, Float
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.motions import Motions, coordinates_of
from shadowfit.dynamics.state import State
from shadowfit.geometry import Pose
from shadowfit.mechanism.scales import scales_of
from shadowfit.records import record

# The last part of a recording, in which joints come to rest: a swing of the machine, in times of a fall by its length,
# but no more than this part of the recording, and no fewer samples.
FALLS, MOST, LEAST = 6.0, 0.2, 20
# Part of it, at its end, in which they rest: what only turns round is not at rest.
RESTING = 0.25
# What is slower than this part of what counts as rest needs no help.
AT_ONCE = 0.5
# Humps of each input: a pole that still turns pulls at its cart some times in a swing.
HUMPS = 10
# Degree of the splines that humps are.
DEGREE = 3
# Rounds of Gauss–Newton, and the step of its differences.
ROUNDS, DIFFERENCE = 3, 1e-3


@record(frozen=True)
class Ending:
    """Which joints end at rest."""

    places: tuple[int, ...]
    """Among the coordinates."""
    speeds: tuple[float, ...]
    """That count as rest [rad/s, m/s]."""

    def late(self, experiment: Experiment, motions: Motions) -> Bool[np.ndarray, " count"]:
        """Motions that do not come to rest by themselves, as those of good position loops do."""
        speeds = np.abs(motions.speeds[:, resting(experiment)][:, :, list(self.places)]) / np.array(self.speeds)
        return np.max(speeds, axis=(1, 2), initial=0.0) > AT_ONCE

    def humps(
        self, experiment: Experiment, motions: Motions, shapes: Float[np.ndarray, "k n inputs"]
    ) -> Float[np.ndarray, "count n inputs"]:
        """What is to be added to the inputs of motions, made of given shapes."""
        brake = _Brake.of(self, experiment, motions, shapes)
        sizes = np.zeros((len(motions), len(shapes)))
        slopes = brake.slopes(sizes)
        normal = slopes @ np.swapaxes(slopes, 1, 2) + np.eye(len(shapes))
        for _ in range(ROUNDS):
            gradient = slopes @ brake.speeds(sizes[:, None])[:, 0, :, None] + sizes[:, :, None]
            sizes = sizes - np.linalg.solve(normal, gradient)[:, :, 0]
        return np.einsum("bk,kni->bni", sizes, shapes)


def braking_time(experiment: Experiment) -> float:
    """Length of the last part of a recording, in which joints come to rest [s]."""
    sampling = experiment.sampling
    swings = max(FALLS * scales_of(experiment.mechanism).time, LEAST * sampling.interval)
    return min(swings, MOST * sampling.duration)


def resting(experiment: Experiment) -> Bool[np.ndarray, " n"]:
    """Times at which joints are to have come to rest."""
    time = experiment.sampling.times
    return time >= time[-1] - RESTING * braking_time(experiment)


def hump_shapes(experiment: Experiment, amplitude: Float[np.ndarray, " inputs"]) -> Float[np.ndarray, "k n inputs"]:
    """Splines that begin one after the other in the last part of the time, of each input by itself."""
    time, width = experiment.sampling.times, braking_time(experiment) / HUMPS
    knots = time[-1] + width * np.arange(-HUMPS, DEGREE + 1)
    curves = [BSpline.basis_element(knots[i : i + DEGREE + 2], extrapolate=False)(time) for i in range(HUMPS)]
    return np.einsum("hn,ij->hinj", np.nan_to_num(curves), np.diag(amplitude)).reshape(-1, len(time), len(amplitude))


@record(frozen=True)
class _Brake:
    """The last part of motions as a function of humps."""

    ending: Ending
    experiment: Experiment
    state: State
    """Where the last part begins."""
    command: Float[np.ndarray, "count steps inputs"]
    """Of its steps without humps."""
    pushes: Float[np.ndarray, "k steps inputs"]
    """What each hump adds to it."""

    @classmethod
    def of(
        cls, ending: Ending, experiment: Experiment, motions: Motions, shapes: Float[np.ndarray, "k n inputs"]
    ) -> _Brake:
        first = int(np.argmax(np.any(shapes != 0.0, axis=(0, 2)))) - 1
        idle = experiment.commands(np.zeros((1, *shapes.shape[1:])))
        pushes = experiment.commands(shapes) - idle
        command = experiment.commands(motions.inputs)
        return cls(ending, experiment, experiment.state_at(motions, first), command[:, first:], pushes[:, first:])

    def slopes(self, sizes: Float[np.ndarray, "count k"]) -> Float[np.ndarray, "count k r"]:
        """Of the speeds, in each size."""
        identity = np.eye(sizes.shape[1])
        tried = self.speeds(sizes[:, None] + DIFFERENCE * np.concatenate([0.0 * identity[:1], identity]))
        return (tried[:, 1:] - tried[:, :1]) / DIFFERENCE

    def speeds(self, sizes: Float[np.ndarray, "count trials k"]) -> Float[np.ndarray, "count trials r"]:
        """Of the joints at the end, over what counts as rest and the root of their number."""
        count, trials = sizes.shape[:2]
        command = self.command[:, None] + np.einsum("btk,ksi->btsi", sizes, self.pushes)
        start = self.state[np.repeat(np.arange(count), trials)]
        run, _ = self.experiment.onward(start, command.reshape(-1, *command.shape[2:]))
        last = resting(self.experiment)[-run.position.shape[1] :]
        bodies = Pose(run.position[:, last], run.orientation[:, last])
        coordinates = coordinates_of(self.experiment.tree, self.experiment.joint_motions(bodies))
        speeds = np.diff(coordinates[:, :, self.ending.places], axis=1) / self.experiment.sampling.timestep
        relative = speeds / np.array(self.ending.speeds) / np.sqrt(speeds[0].size)
        return relative.reshape(count, trials, -1)
