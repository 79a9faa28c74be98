"""The estimation problem: recordings on a time grid, the unknowns, and the weights. Built once, on the host.

Everything that does not change during a fit is decided here: the grid of each recording (:mod:`track`), the commands
(:mod:`commands`), which numbers of the mechanism depend on which parameters (:mod:`dependencies`). Linearising then
only evaluates compiled functions on chunks of fixed size (:mod:`chunks`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import MechanismError
from shadowfit.estimation.problem.commands import commands
from shadowfit.estimation.problem.dependencies import make_plan
from shadowfit.estimation.problem.evaluator import Evaluator
from shadowfit.estimation.problem.initial import followed
from shadowfit.estimation.problem.noise_floor import noise_floor
from shadowfit.estimation.problem.options import (
    Options,
    ProblemError,
    check_impulse_covariance,
    check_options,
    check_stick_time,
)
from shadowfit.estimation.problem.pacing import default_cutoff, default_timestep, pace_of
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.size import check_size
from shadowfit.estimation.problem.step_kernels import StepKernels, step_kernels
from shadowfit.estimation.problem.track import ON_GRID, Track, lay_on_grid
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.estimation.residuals.unknowns.interface import Along
from shadowfit.geometry.differences import differences
from shadowfit.mechanism.contacts import PlaneContact
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.surroundings import Input
from shadowfit.recordings import Recording
from shadowfit.records import record


@record(frozen=True)
class Problem:
    """An estimation problem, ready to be linearised."""

    mechanism: Mechanism
    """The mechanism of the fit: at the start values, with the fit's regularisation of sticking."""
    given: Mechanism
    """The mechanism as it was given."""
    parameters: ParameterSet
    tracks: tuple[Track, ...]
    timestep: float
    plan: Plan
    options: Options
    followed: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Numbers that are held, and have given way to what was estimated (:mod:`solids`)."""
    delay_reach: float = 0.0
    """Derivatives by delays of held inputs are secants over so long to each side [s]; zero: derivatives."""
    stepwise: bool = False
    """Inputs are means over steps, with deferred correction, too (:mod:`commands`)."""

    def holding(self, numbers: Mapping[str, float]) -> Problem:
        """The same problem beside other values of numbers that are held."""
        return dataclasses.replace(
            self,
            mechanism=self.mechanism.write(numbers),
            parameters=self.parameters.holding(numbers),
            followed={**self.followed, **numbers},
        )

    @property
    def rubs(self) -> bool:
        """Whether a joint has dry friction whose turn at rest was left to the method."""
        rubbing = any(joint.friction is not None for joint in self.mechanism.joints.values)
        return rubbing and self.options.stick_time == "half a step" and self.options.correction != "none"

    def creeping(self, stick_time: Mapping[str, float]) -> Problem:
        """The same problem with some joints that creep so long [s] near rest."""
        options = dataclasses.replace(self.options, stick_time=stick_time)
        return dataclasses.replace(self, mechanism=_creeping(self.mechanism, options, self.timestep), options=options)

    def over_stairs(self) -> Problem:
        """The same problem with secants over a time step to each side by free delays of held inputs, if any are."""
        free = set(self.plan.layout.numbers)
        if not any(f"{name}.delay" in free and part.hold == "zero" for name, part in self.mechanism.inputs.items()):
            return self
        return dataclasses.replace(self, delay_reach=self.timestep)

    def without_inputs(self) -> Problem:
        """The same recordings with all inputs at zero."""
        tracks = tuple(
            dataclasses.replace(track, recording=_silenced(track.recording, self.mechanism.inputs.names))
            for track in self.tracks
        )
        return dataclasses.replace(self, tracks=tracks)

    @functools.cached_property
    def noise_floors(self) -> np.ndarray:
        """The most noise that each sensor's readings can have by themselves (:mod:`noise_floor`)."""
        return np.array([noise_floor(self.tracks, i) for i in range(len(self.error_sizes))])

    @functools.cached_property
    def kernels(self) -> StepKernels:
        """Compiled functions of the time steps."""
        return step_kernels(self.plan, self.mechanism)

    @functools.cached_property
    def start_count(self) -> int:
        """Number of independent residuals of the initial state of a recording."""
        return self.plan.unknowns.start_count(self.mechanism)

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors, in order."""
        return self.mechanism.sensors.names

    def node_count(self, recording: int) -> int:
        """Number of unknown states of a recording."""
        return self.tracks[recording].steps + self.plan.window - 1

    @functools.cached_property
    def error_sizes(self) -> tuple[int, ...]:
        """Components of each sensor's residual."""
        return tuple(sensor.error_size() for sensor in self.mechanism.sensors.values)

    @functools.cached_property
    def level_names(self) -> tuple[str, ...] | None:
        """Names of the impulses of a step where the errors of each have a level of their own; None: one for all."""
        return self.plan.unknowns.level_names(self.mechanism)

    def sample_count(self) -> int:
        """Number of scalar observations of all recordings."""
        return self._sample_count

    @functools.cached_property
    def _sample_count(self) -> int:
        present = (zip(track.present, self.error_sizes, strict=True) for track in self.tracks)
        return sum(int(here.sum()) * size for sensors in present for here, size in sensors)

    def written(self, values: Values, recording: int = 0) -> Mechanism:
        """The mechanism at given parameter values, as one recording sees it."""
        return self.mechanism.write(self.parameters.named(values, recording))

    @functools.cached_property
    def _fixed_commands(self) -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
        """Commands at the start values, by recording and fineness: they stay unless a parameter acts on an input."""
        return {}

    def commands_at(self, values: Values, recording: int, finer: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Commands of one recording, and their derivatives, at given parameter values.

        One for each step, or for steps that are ``finer`` times as short, over the same time: from one step before the
        first to one behind the last, both ends left out.
        """
        if self.plan.layout.inputs:
            return self._commands(recording, finer, self._inputs_at(values, recording))
        key = (recording, finer)
        if key not in self._fixed_commands:
            self._fixed_commands[key] = self._commands(recording, finer, dict(self.mechanism.inputs.items()))
        return self._fixed_commands[key]

    def _inputs_at(self, values: Values, recording: int) -> dict[str, Input]:
        """The inputs at given parameter values: writing a whole machine's numbers would take longer than its rows."""
        inputs = dict(self.mechanism.inputs.items())
        for name, value in self.parameters.named(values, recording).items():
            part, _, field = name.partition(".")
            if part in inputs:
                inputs[part] = dataclasses.replace(inputs[part], **{field: value})
        return inputs

    def _commands(self, recording: int, finer: int, inputs: Mapping[str, Input]) -> tuple[np.ndarray, np.ndarray]:
        track, timestep = self.tracks[recording], self.timestep / finer
        times = track.start_time - self.timestep + timestep * np.arange(1, (track.steps + 1) * finer)
        hat = self.options.correction != "none" and not self.stepwise
        return commands(self.plan, track.recording, inputs, times, timestep, self.delay_reach, hat)

    def at(self, values: Values, recording: int) -> Evaluator:
        """The compiled functions at the parameters of a recording."""
        return Evaluator(self.kernels, self.parameters.of_recording(values, recording))

    def moved(self, nodes: Nodes) -> Float[np.ndarray, "N-1 b"]:
        """How far each node is from the one before, along each of their directions [rad, m]."""
        directions = np.asarray(self.plan.unknowns.directions(np.eye(self.plan.node_size)))
        return differences(nodes.pose[1:], nodes.pose[:-1]).reshape(len(nodes.pose.position) - 1, -1) @ directions.T

    def revalued(self, point: Point, values: Values) -> Point:
        """The point with other values of the parameters; nodes move along where they must."""
        closed = (self.at(values, i).closed(old.pose) for i, old in enumerate(point.nodes))
        nodes = tuple(Nodes(pose, old.velocity) for pose, old in zip(closed, point.nodes, strict=True))
        return dataclasses.replace(point, values=values, nodes=nodes)

    def bodies(self, point: Point, recording: int) -> Nodes:
        """States of the bodies at all nodes of a recording, whatever the unknowns are."""
        nodes = point.nodes[recording]
        return Nodes(self.at(point.values, recording).bodies(nodes.pose), nodes.velocity)


def _silenced(recording: Recording, inputs: Sequence[str]) -> Recording:
    channels = {key: np.zeros_like(values) if key in inputs else values for key, values in recording.channels.items()}
    return dataclasses.replace(recording, channels=channels)


def build_problem(
    mechanism: Mechanism, recordings: Sequence[Recording], parameters: ParameterSet, options: Options
) -> Problem:
    """Check the parts against each other and lay the recordings on the grid."""
    _check_recordings(recordings)
    options = options.resolved(mechanism)
    check_options(options)
    check_stick_time(options, mechanism)
    _check_mechanism(mechanism, options)
    given = mechanism
    options, timestep = _paced(options, mechanism, recordings)
    mechanism = _creeping(mechanism, options, timestep).write(parameters.named(parameters.start()))
    check_size(mechanism, recordings, parameters.local_size, timestep, options)
    # With the interpolation's error taken off, the three nodes around the nearest step are enough for any sample.
    centred = options.correction != "none"
    tracks = tuple(lay_on_grid(mechanism, recording, timestep, centred) for recording in recordings)
    on_grid = all(np.all(np.abs(track.fraction) < ON_GRID) for track in tracks)
    window = options.kind.reach if on_grid or centred else 4
    plan = make_plan(mechanism, parameters, options, window, on_grid)
    problem = _suited(Problem(mechanism, given, parameters, tracks, timestep, plan, options))
    check_impulse_covariance(options, mechanism, problem.plan.unknowns)
    options.errors.check(problem.plan.unknowns.axis_names(mechanism), mechanism.sensors)
    return problem


def _paced(options: Options, mechanism: Mechanism, recordings: Sequence[Recording]) -> tuple[Options, float]:
    """The options with a filter that the motion passes, and the time-step; both as its pace asks for, unless given."""
    if options.timestep is not None and options.cutoff is not None:
        return options, options.timestep
    quickest = min(pace_of(mechanism, recording) for recording in recordings)
    if options.cutoff is None:
        options = dataclasses.replace(options, cutoff=default_cutoff(quickest))
    if options.timestep is not None:
        return options, options.timestep
    return options, default_timestep([recording.sample_interval for recording in recordings], quickest)


def _suited(problem: Problem) -> Problem:
    """The problem with the unknowns that suit the motion it starts with."""
    if problem.plan.unknowns.settled:
        return problem
    values = problem.parameters.start()
    names = [parameter.name for parameter in problem.parameters.parameters for _ in range(parameter.size)]
    along = [
        Along(followed(problem, values, i), track.times(problem.timestep), problem.at(values, i))
        for i, track in enumerate(problem.tracks)
    ]
    try:
        unknowns = problem.plan.unknowns.suited(problem.mechanism, names, along)
    except MechanismError as error:
        raise ProblemError(str(error)) from error
    return dataclasses.replace(problem, plan=dataclasses.replace(problem.plan, unknowns=unknowns))


def _check_recordings(recordings: Sequence[Recording]) -> None:
    if not recordings:
        raise ProblemError("there is no recording; an estimation needs at least one")
    for recording in recordings:
        if not isinstance(recording, Recording):
            raise ProblemError(f"a {type(recording).__name__} is no recording; read a file or build a Recording")


def _check_mechanism(mechanism: Mechanism, options: Options) -> None:
    """Raise where a mechanism that can be simulated cannot be estimated."""
    if len(mechanism.sensors) == 0:
        raise ProblemError(f"{mechanism.name!r} has no sensors; add those that the recording's channels come from")
    for name, sensor in mechanism.sensors.items():
        if not float(sensor.std) > 0.0:
            raise ProblemError(f"{name}.std is {float(sensor.std):g}; a sensor's standard deviation must be positive")
    for name, joint in () if options.kind.scope.rigid else mechanism.joints.items():
        for kind in ("linear", "rotational"):
            if not float(getattr(joint.compliance, kind)) > 0.0:
                raise ProblemError(
                    f"{name}.compliance.{kind} is zero; an estimation needs a positive compliance (1e-9 is fine)"
                )
    for name, contact in mechanism.contacts.items():
        if not float(contact.compliance) > 0.0:
            raise ProblemError(
                f"{name}.compliance is zero; an estimation needs a positive compliance of contacts (1e-9 is fine)"
            )


def _creeping(mechanism: Mechanism, options: Options, timestep: float) -> Mechanism:
    """The mechanism with what the options say of how long joints and contacts creep near rest.

    Left to the method, a joint creeps as its model says. Deferred correction takes no less than half of each step
    (:mod:`sliding`), also of the fine ones by which it goes: what that speed did to the estimate is taken off with the
    other errors of the step. Without it there are no finer steps, and half a step is the least.
    """
    given, names = options.stick_time, _creepers(mechanism)
    if given is None:
        return mechanism
    # Not checked again: a start need not belong to any body beside what is held (:mod:`solids`).
    if isinstance(given, Mapping):
        return mechanism.write({f"{name}.stick_time": time for name, time in given.items()})
    if given != "half a step":
        return mechanism.write(dict.fromkeys(names, given))
    least = 0.5 * timestep if options.correction == "none" else 0.0
    return mechanism.write({name: max(float(mechanism.get(name)), least) for name in names})


def _creepers(mechanism: Mechanism) -> list[str]:
    """Names of the times that joints with dry friction and contacts creep."""
    names = [f"{name}.stick_time" for name, joint in mechanism.joints.items() if joint.friction is not None]
    contacts = mechanism.contacts.items()
    return names + [f"{name}.stick_time" for name, contact in contacts if isinstance(contact, PlaneContact)]
