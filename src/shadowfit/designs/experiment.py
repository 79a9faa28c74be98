"""The fit that a motion is recorded for: its parameters, rates and noise, ready to be linearised along any motion."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.designs.motions import Motions, coordinates_of, moved
from shadowfit.dynamics import observe, rigid
from shadowfit.dynamics.requests import step_commands
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.tree import Tree, tree_of
from shadowfit.estimation.linear.threads import in_threads
from shadowfit.estimation.problem.error_model import ErrorModel
from shadowfit.estimation.problem.evaluator import Evaluator
from shadowfit.estimation.problem.options import Options
from shadowfit.estimation.problem.parameters import FreeParameters, parameter_set
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.track import Track
from shadowfit.estimation.problem.weights import Weights, default_weights
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.solve.first_weights import typical_impulses
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import BodyOrientation
from shadowfit.models import Start
from shadowfit.recordings import Recording
from shadowfit.records import record
from shadowfit.trees import map_leaves

# Error of a joint's force, as a part of what the motion needs, where nothing is known about it.
FORCE_ERROR = 0.01
# Motions whose forces are computed in one call.
IN_A_ROW = 16


@record(frozen=True)
class Sampling:
    """How a motion is recorded, and how finely it is looked at."""

    duration: float
    """[s]."""
    interval: float
    """Time between samples of the recording [s]."""
    timestep: float
    """Time-step of the equations of motion [s], a sample interval or more."""

    @property
    def nodes(self) -> int:
        """Times at which a motion is known: the steps of the fit, and one before and behind them."""
        return round(self.duration / self.timestep) + 1

    @property
    def times(self) -> Float[np.ndarray, " n"]:
        """Of the nodes [s]."""
        return self.timestep * np.arange(self.nodes)


@record(frozen=True)
class Experiment:
    """What is asked of a recording: parameters of a machine, at a rate of sampling and with its noise."""

    mechanism: Mechanism
    """As it is simulated."""
    rest: Pose
    """Motions of the joints where the machine rests."""
    sampling: Sampling
    problem: Problem
    """The fit, of a machine at rest; other motions take its place (`posed`)."""
    plain: Problem
    """The same without free parameters, which spares their derivatives where only forces are asked for."""
    weights: Weights
    """Of the noise."""

    @property
    def tree(self) -> Tree:
        """How the bodies hang together."""
        return tree_of(self.mechanism)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parameters' increments."""
        return tuple(self.problem.parameters.labels())

    @property
    def scale(self) -> Float[np.ndarray, " p"]:
        """Typical sizes of the parameters: their values, where they have one."""
        parameters = self.problem.parameters
        return np.maximum(parameters.scales, np.abs(parameters.flat(parameters.start())))

    @property
    def here(self) -> Evaluator:
        """Compiled functions of the machine."""
        return self.problem.at(self.problem.parameters.start(), 0)

    @property
    def rest_coordinates(self) -> Float[np.ndarray, " d"]:
        """Coordinates at rest [rad, m]."""
        rest = Pose(np.asarray(self.rest.position)[None], np.asarray(self.rest.orientation)[None])
        return coordinates_of(self.tree, rest)[0]

    def with_force_noise(self, levels: Mapping[str, float]) -> Experiment:
        """The same with given errors of the joints' forces [N m, N], white at the sampling rate."""
        coarser = np.sqrt(self.sampling.interval / self.sampling.timestep)
        noise = {name: coarser * level for name, level in levels.items()}
        errors = ErrorModel(noise)
        problem = dataclasses.replace(self.problem, options=dataclasses.replace(self.problem.options, errors=errors))
        errors.check(problem.plan.unknowns.axis_names(problem.mechanism), problem.mechanism.sensors)
        vars(problem)["kernels"] = self.problem.kernels
        return dataclasses.replace(self, problem=problem, weights=default_weights(problem, 1.0))

    def shortened(self, nodes: int) -> Experiment:
        """The same of a recording that ends earlier."""
        track = self.problem.tracks[0]
        steps = nodes - 2
        recording = track.recording.between(
            -np.inf, float(self.sampling.times[nodes - 2]) + 0.5 * self.sampling.timestep
        )
        shorter = dataclasses.replace(
            track,
            recording=recording,
            steps=steps,
            fraction=track.fraction[:steps],
            measured=tuple(values[:steps] for values in track.measured),
            present=tuple(values[:steps] for values in track.present),
        )
        problem = dataclasses.replace(self.problem, tracks=(shorter,))
        vars(problem)["kernels"] = self.problem.kernels
        sampling = dataclasses.replace(self.sampling, duration=(nodes - 1) * self.sampling.timestep)
        return dataclasses.replace(self, problem=problem, sampling=sampling)

    def posed(self, motions: Motions) -> tuple[Problem, Point]:
        """The fit of a recording of each motion, at the truth."""
        tracks = tuple(self._track(motions, i) for i in range(len(motions)))
        nodes = tuple(Nodes(Pose(*pose), None) for pose in zip(*_parts(motions.pose), strict=True))
        return self._of_tracks(tracks), Point(self.problem.parameters.start(), nodes)

    def in_a_row(self, motions: Motions) -> tuple[Problem, Point]:
        """The fit of one recording of all motions, one behind the other: motion i has the nodes from i·nodes on.

        Steps from one motion into the next mean nothing, and are for the caller to leave out.
        """
        tracks = [self._track(motions, i) for i in range(len(motions))]
        steps = len(motions) * self.sampling.nodes - 2
        recordings = [track.recording for track in tracks]
        channels = {name: _joined([one.channels[name] for one in recordings]) for name in recordings[0].channels}
        time = np.asarray(self.sampling.timestep * np.arange(1, steps + 1), dtype=np.float64)
        recording = dataclasses.replace(recordings[0], time=time, channels=channels)
        joined = dataclasses.replace(
            tracks[0],
            recording=recording,
            steps=steps,
            fraction=_joined([track.fraction for track in tracks]),
            measured=tuple(map(_joined, zip(*(track.measured for track in tracks), strict=True))),
            present=tuple(map(_joined, zip(*(track.present for track in tracks), strict=True))),
        )
        nodes = Nodes(Pose(*(x.reshape(-1, *x.shape[2:]) for x in _parts(motions.pose))), None)
        return self._of_tracks((joined,)), Point(self.problem.parameters.start(), (nodes,))

    def _track(self, motions: Motions, index: int) -> Track:
        """A recording of one motion, on the grid of the fit."""
        template = self.problem.tracks[0]
        inputs = motions.inputs[index, 1:-1]
        channels = {**template.recording.channels, **dict(zip(self.mechanism.inputs, inputs.T, strict=True))}
        recording = dataclasses.replace(template.recording, channels=channels)
        measured = template.measured
        if self._readings_matter:
            measured = self.readings(Pose(*(x[index] for x in _parts(motions.pose))))
        return dataclasses.replace(template, recording=recording, measured=measured)

    def _of_tracks(self, tracks: tuple[Track, ...]) -> Problem:
        """The fit of other recordings; the compiled functions do not depend on them."""
        problem = dataclasses.replace(self.problem, tracks=tracks)
        vars(problem)["kernels"] = self.problem.kernels
        return problem

    @property
    def _readings_matter(self) -> bool:
        """Whether derivatives depend on what is measured: distances of orientations do, differences do not."""
        return any(isinstance(sensor, BodyOrientation) for sensor in self.mechanism.sensors.values)

    def readings(self, pose: Pose) -> tuple[np.ndarray, ...]:
        """What the sensors read at the steps."""
        bodies = self.bodies(pose)
        pieces = (bodies.position, bodies.orientation)
        ahead, behind = (Pose(*(x[s] for x in pieces)) for s in (slice(2, None), slice(None, -2)))
        velocity = differences(ahead, behind) / (2.0 * self.sampling.timestep)
        states = State(Pose(*(x[1:-1] for x in pieces)), velocity)
        steps = len(velocity)
        # Of accelerations and commands only differences from readings are asked for, whose derivatives they are not in.
        read = observe.readings(self.mechanism, states, at_rest(self.mechanism, steps))
        return tuple(np.asarray(read[name]).reshape(steps, 1, -1) for name in self.mechanism.sensors)

    def bodies(self, pose: Pose) -> Pose:
        """Poses of the bodies at motions of the joints, with any number of axes before that of the bodies."""
        shape = pose.position.shape[:-2]
        flat = Pose(*(x.reshape(-1, *x.shape[-2:]) for x in (pose.position, pose.orientation)))
        pose_flat = self.here.bodies(flat)
        return Pose(*(np.asarray(x).reshape(*shape, *x.shape[1:]) for x in (pose_flat.position, pose_flat.orientation)))

    def commands(self, inputs: Float[np.ndarray, "count n inputs"]) -> Float[np.ndarray, "count n-1 inputs"]:
        """Of the steps, with inputs that are held from sample to sample as the model says."""
        each = [step_commands(self.mechanism, one[:-1].T, self.sampling.timestep, "exact")[:-1] for one in inputs]
        return np.array(each).reshape(len(inputs), self.sampling.nodes - 1, -1)

    def simulated(self, start: Float[np.ndarray, "count d"], inputs: Float[np.ndarray, "count n inputs"]) -> Motions:
        """Motions from rest at given coordinates, with inputs that are held from sample to sample."""
        bodies = self.bodies(moved(self.tree, self.rest, start))
        state = State(bodies, np.zeros((*bodies.position.shape[:-1], 6)))
        run, good = self.onward(state, self.commands(inputs))
        pose = self.joint_motions(run)
        acted = np.where(good[:, None, None], inputs, 0.0)
        return Motions(self.sampling.times, pose, coordinates_of(self.tree, pose), acted, good)

    def onward(
        self, state: State, command: Float[np.ndarray, "count steps inputs"]
    ) -> tuple[Pose, Bool[np.ndarray, " count"]]:
        """Poses of the bodies from states on, and which can be simulated that long; others stand still."""
        with np.errstate(all="ignore"):
            run = rigid.run(self.tree, self.mechanism, state, command, self.sampling.timestep)
            parts = [run.position, run.orientation]
            good = np.all(run.status == 0, axis=1) & np.all([np.all(np.isfinite(x), axis=(1, 2, 3)) for x in parts], 0)
        for part in parts:
            part[~good] = part[~good][:, :1]
        return Pose(*parts), good

    def joint_motions(self, bodies: Pose) -> Pose:
        """Motions of the joints at poses of the bodies, with any number of axes before that of the bodies."""
        shape = bodies.position.shape[:-2]
        flat = self.here.motions(Pose(*(x.reshape(-1, *x.shape[-2:]) for x in _parts(bodies))))
        return Pose(*(np.asarray(x).reshape(*shape, *x.shape[1:]) for x in (flat.position, flat.orientation)))

    def state_at(self, motions: Motions, node: int) -> State:
        """States of motions at one of their nodes, inside their ends."""
        near = self.bodies(Pose(*(x[:, node - 1 : node + 2] for x in _parts(motions.pose))))
        before, here, after = (Pose(near.position[:, k], near.orientation[:, k]) for k in range(3))
        return State(here, differences(after, before) / (2.0 * self.sampling.timestep))

    def prescribed(
        self, coordinates: Float[np.ndarray, "count n d"], command_of_force: Float[np.ndarray, "k d"]
    ) -> Motions:
        """Given motions of all joints, with the inputs that they need (inverse dynamics).

        ``command_of_force`` is the inverse of what a command adds to the forces that the joints lack [N m, N].
        """
        pose = moved(self.tree, self.rest, coordinates)
        lacking = self.lacking(pose, np.zeros(len(self.mechanism.inputs)))
        gain, offset = (
            np.array([float(getattr(i, k)) for i in self.mechanism.inputs.values]) for k in ("gain", "offset")
        )
        inner = (-lacking @ command_of_force.T - offset) / gain
        inputs = np.concatenate([inner[:, :1], inner, inner[:, -1:]], axis=1)
        return Motions(self.sampling.times, pose, coordinates, inputs, np.ones(len(coordinates), bool))

    def lacking(self, pose: Pose, command: Float[np.ndarray, " inputs"]) -> Float[np.ndarray, "count n-2 d"]:
        """Forces of the joints [N m, N] that motions need beyond those of a constant command, inside their ends."""
        count, nodes = pose.position.shape[:2]
        here = self.plain.at(self.plain.parameters.start(), 0)

        def some(first: int) -> np.ndarray:
            # One behind the other, which takes fewer calls; steps from one into the next are left out.
            part = Pose(*(x[first : first + IN_A_ROW].reshape(-1, *x.shape[2:]) for x in _parts(pose)))
            rows = len(part.position) - 2
            commands = np.tile(command, (rows, 1)), np.zeros((rows, len(command), 0))
            missing = np.asarray(here.dynamics_residuals(part, commands, self.sampling.timestep))
            return np.pad(missing, ((0, 2), (0, 0))).reshape(-1, nodes, missing.shape[1])[:, :-2]

        forces = list(in_threads(some, range(0, count, IN_A_ROW)))
        return np.concatenate(forces) / self.sampling.timestep


def _parts(pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(pose.position), np.asarray(pose.orientation)


def _joined(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Tables of the steps of motions that follow each other; those in between are filled with any."""
    filled = [np.concatenate([table, table[-2:]]) for table in tables]
    return np.concatenate(filled)[:-2]


def experiment(mechanism: Mechanism, start: Start, free: FreeParameters, sampling: Sampling) -> Experiment:
    """The fit of a recording of a machine at rest, with the noise of the sensors as the model states it.

    Several samples in a step count as their mean. Errors of the joints' forces are still to be given
    (`Experiment.with_force_noise`).
    """
    coarser = np.sqrt(sampling.interval / sampling.timestep)
    scaled = {f"{name}.std": coarser * float(sensor.std) for name, sensor in mechanism.sensors.items()}
    measured = mechanism.set(scaled)
    options = Options(timestep=sampling.timestep, unknowns="joint")
    state = start.state(mechanism)
    recording = _recording(mechanism, state, sampling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a machine at rest tells nothing, and is not meant to
        plain = build_problem(measured, [recording], parameter_set(measured, ()), options)
        problem = build_problem(measured, [recording], parameter_set(measured, free), options) if free else plain
    bodies = Pose(np.asarray(state.pose.position)[None], np.asarray(state.pose.orientation)[None])
    rest = problem.at(problem.parameters.start(), 0).motions(bodies)
    return Experiment(mechanism, rest[0], sampling, problem, plain, default_weights(problem, 1.0))


def at_rest(mechanism: Mechanism, steps: int) -> Instant:
    """No accelerations, no commands."""
    return Instant(np.zeros((steps, len(mechanism.bodies), 6)), np.zeros((steps, len(mechanism.inputs))))


def _recording(mechanism: Mechanism, state: State, sampling: Sampling) -> Recording:
    """What is recorded of a machine that stays in a state."""
    steps = sampling.nodes - 2
    still = map_leaves(lambda x: np.broadcast_to(np.asarray(x), (steps, *np.shape(x))).copy(), state)
    read = observe.readings(mechanism, still, at_rest(mechanism, steps))
    channels: dict[str, np.ndarray] = {}
    for name, sensor in mechanism.sensors.items():
        values = np.asarray(read[name]).reshape(steps, -1)
        channels |= dict(zip(sensor.channels(name), values.T, strict=True))
    channels |= {name: np.zeros(steps) for name in mechanism.inputs}
    return Recording(sampling.times[1:-1], channels, name="design")


def typical_force_noise(exact: Experiment, motions: Motions) -> dict[str, float]:
    """Errors of the joints' forces [N m, N]: a hundredth of what a motion needs, root mean square.

    That is the force of the joint's motor, or the inertial force where that is larger, as in joints without one. White
    at the sampling rate: an impulse of variance ``s² Δt h`` in a step h.
    """
    problem, point = exact.posed(motions)
    sampling, names = exact.sampling, problem.level_names
    assert names is not None
    inertial = typical_impulses(problem, point) / sampling.timestep
    acting = exact.lacking(motions.pose, np.zeros(len(exact.mechanism.inputs)))
    force = np.maximum(inertial, np.sqrt(np.mean(acting**2, axis=(0, 1))))
    levels = FORCE_ERROR * force * np.sqrt(sampling.timestep / sampling.interval)
    return dict(zip(names, levels.tolist(), strict=True))
