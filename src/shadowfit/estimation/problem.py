"""The estimation problem: recordings on a time grid, the unknowns, and the weights. Built once, on the host.

Everything that does not change during a fit is decided here: the grid of each recording, which samples belong to
which step, the commands, which numbers of the mechanism depend on which parameters. Linearising then only evaluates
compiled functions on chunks of fixed size.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView
from shadowfit.dynamics.simulate import Discretization
from shadowfit.dynamics.state import State
from shadowfit.errors import ShadowfitError, UnknownNameError, nearest
from shadowfit.estimation import transition
from shadowfit.estimation.linearise import ChunkData, Plan, Truncation, Unknowns, write
from shadowfit.estimation.parameters import ParameterSet, Values
from shadowfit.estimation.step_kernels import StepKernels
from shadowfit.geometry import Pose
from shadowfit.kernels import TooLargeError, UnsupportedError, fingerprint, is_own, reach, remembered
from shadowfit.mechanism.contacts import PlaneContact
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import BodyRate, JointPosition, JointSpeed, PointPosition
from shadowfit.recordings import Recording, check_recording, held_input_average

# Steps in one call of the compiled functions; a multiple of 6 so that windows of 2, 3 and 4 nodes divide it.
CHUNK = 504
# A sample this close to a time of the grid (in steps) is on it.
ON_GRID = 1e-6

Correction = Literal["none", "deferred"]


class ProblemError(ShadowfitError):
    """An estimation problem that cannot be set up."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of the method. Defaults are chosen by measurement; docs/choosing.md says why."""

    timestep: float | None = None
    """Time-step of the model [s]; None: the sampling interval, made a whole multiple of it of at most 10 ms."""
    residual: transition.Residual = "implicit"
    """Dynamics residual: ``implicit`` (mass times the error of the predicted velocity) or the paper's ``inverse``."""
    discretization: str = "exact"
    """``exact`` for physical parameters, ``spook`` for those of a SPOOK simulator at this time-step."""
    unknowns: Unknowns = "configuration"
    """``configuration`` (velocities enforced by the stepper) or ``full`` (the paper's)."""
    correction: Correction = "none"
    """``deferred``: errors of the discretisation, of second order in the time-step, are computed from the estimated
    motion and taken off the residuals (:mod:`truncation`)."""
    state_weight: float | Literal["auto"] = 100.0
    """κ: weight of the squared impulse residual relative to a squared reading of the reference standard deviation;
    ``auto`` estimates it and the sensors' noise from the data."""
    impulse_covariance: Sequence[float] | Sequence[Sequence[float]] | None = None
    """Ω: how the errors of the impulses [N s, N m s] are distributed over the six components of each body in turn, as a
    symmetric positive matrix or its diagonal. Only its shape matters: the weight is κ Ω⁻¹ with Ω⁻¹ scaled to a mean
    diagonal of one. None: all alike."""
    huber: float | None = None
    """Robust loss: residuals beyond this many standard deviations count linearly."""
    stick_time: float | None = 5e-3
    """Regularisation of sticking during the fit [s]; None: the mechanism's own. Dry friction fades at speeds that it
    would stop within this time. Less than half a step counts as that in fits of the exact equations; in others too
    small a value makes the cost creep along the kinks of friction."""
    cutoff: float = 10.0
    """Cut-off frequency [Hz] of the low-pass filter behind the initial trajectory."""


@dataclasses.dataclass(frozen=True)
class Track:
    """One recording on its time grid."""

    recording: Recording
    start_time: float
    steps: int
    fraction: np.ndarray
    """``(steps, samples)``: time of each sample after its step's, in steps; of the step before, or of the nearest."""
    measured: tuple[np.ndarray, ...]
    """For each sensor ``(steps, samples, d)``; some reading where missing."""
    present: tuple[np.ndarray, ...]
    """For each sensor ``(steps, samples)``: whether there is a sample."""

    def times(self, timestep: float) -> np.ndarray:
        """Times of the steps [s]."""
        return self.start_time + timestep * np.arange(self.steps)


@dataclasses.dataclass(frozen=True)
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

    @functools.cached_property
    def kernels(self) -> StepKernels:
        """Compiled functions of the time steps."""
        return StepKernels(self.plan, self.mechanism)

    @functools.cached_property
    def gap_count(self) -> int:
        """Number of gap rows of all joints."""
        return sum(joint.kind.row_count() for joint in self.mechanism.joints.values)

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors, in order."""
        return self.mechanism.sensors.names

    def node_count(self, recording: int) -> int:
        """Number of unknown states of a recording."""
        return self.tracks[recording].steps + self.plan.window - 1

    def sample_count(self) -> int:
        """Number of scalar observations of all recordings."""
        sizes = [sensor.error_size() for sensor in self.mechanism.sensors.values]
        return sum(int(p.sum()) * size for t in self.tracks for p, size in zip(t.present, sizes, strict=True))

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
        if self.plan.input_columns:
            return self._commands(recording, finer, self.written(values, recording))
        key = (recording, finer)
        if key not in self._fixed_commands:
            self._fixed_commands[key] = self._commands(recording, finer, self.mechanism)
        return self._fixed_commands[key]

    def _commands(self, recording: int, finer: int, mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
        track, timestep = self.tracks[recording], self.timestep / finer
        times = track.start_time - self.timestep + timestep * np.arange(1, (track.steps + 1) * finer)
        return commands(self.plan, track.recording, mechanism, times, timestep)

    def current(self, values: Values, recording: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and rotations of a recording, in the order of the plan."""
        named = self.parameters.named(values, recording)
        numbers = np.array([named[name] for name in self.plan.numbers])
        turns = np.array([named[name] for name in self.plan.turns]).reshape(-1, 4)
        return numbers, turns


def build_problem(
    mechanism: Mechanism, recordings: Sequence[Recording], parameters: ParameterSet, options: Options
) -> Problem:
    """Check the parts against each other and lay the recordings on the grid."""
    _check_recordings(recordings)
    _check_options(options)
    _check_mechanism(mechanism)
    _check_impulse_covariance(options, mechanism)
    given = mechanism
    mechanism = _with_stick_time(mechanism, options.stick_time).write(parameters.named(parameters.start()))
    timestep = default_timestep(recordings) if options.timestep is None else options.timestep
    # With the interpolation's error taken off, the three nodes around the nearest step are enough for any sample.
    centred = options.correction != "none"
    tracks = tuple(_track(mechanism, recording, timestep, centred) for recording in recordings)
    on_grid = all(np.all(np.abs(track.fraction) < ON_GRID) for track in tracks)
    window = 4 if not (on_grid or centred) else (3 if options.unknowns == "configuration" else 2)
    plan = _plan(mechanism, parameters, options, window, on_grid)
    return Problem(mechanism, given, parameters, tracks, timestep, plan, options)


def default_timestep(recordings: Sequence[Recording], largest: float = 0.01) -> float:
    """The sampling interval [s], or the largest whole multiple of it that does not exceed ``largest``."""
    interval = min(recording.sample_interval for recording in recordings)
    # Twelve digits: time stamps that are written in decimals give intervals like 0.0099999999999998.
    return float(f"{interval * max(1, int(largest / interval * (1.0 + 1e-9))):.12g}")


def _check_recordings(recordings: Sequence[Recording]) -> None:
    if not recordings:
        raise ProblemError("there is no recording; an estimation needs at least one")
    for recording in recordings:
        if not isinstance(recording, Recording):
            raise ProblemError(f"a {type(recording).__name__} is no recording; read a file or build a Recording")


def _check_options(options: Options) -> None:
    """Raise unless every setting has a value that the method knows."""
    choices = (
        ("residual", get_args(transition.Residual)),
        ("discretization", get_args(Discretization)),
        ("unknowns", get_args(Unknowns)),
        ("correction", get_args(Correction)),
    )
    for name, allowed in choices:
        value = getattr(options, name)
        if value not in allowed:
            raise UnknownNameError(f"there is no {name} {value!r}{nearest(str(value), allowed)}")
    physical = (options.residual, options.discretization, options.unknowns) == ("implicit", "exact", "configuration")
    if options.correction != "none" and not physical:
        raise ProblemError(
            f"the option correction {options.correction!r} needs the residual 'implicit', the discretization 'exact' "
            "and the unknowns 'configuration'"
        )
    units = {"timestep": " s", "state_weight": "", "huber": "", "stick_time": " s", "cutoff": " Hz"}
    for name, unit in units.items():
        value = getattr(options, name)
        if value is None or (name == "state_weight" and value == "auto"):
            continue
        if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0.0):
            raise ProblemError(f"the option {name} is {value}{unit}; it must be a positive number")


def _check_impulse_covariance(options: Options, mechanism: Mechanism) -> None:
    if options.impulse_covariance is None:
        return
    covariance, size = np.asarray(options.impulse_covariance, float), 6 * len(mechanism.bodies)
    if covariance.shape not in ((size,), (size, size)):
        raise ProblemError(
            f"the option impulse_covariance has shape {covariance.shape}; for {size // 6} bodies it must "
            f"be {size} variances or a matrix of {size} rows"
        )
    matrix = np.diag(covariance) if covariance.ndim == 1 else covariance
    possible = np.all(np.isfinite(matrix)) and np.allclose(matrix, matrix.T) and np.linalg.eigvalsh(matrix)[0] > 0.0
    if not possible:
        raise ProblemError("the option impulse_covariance must be symmetric and positive definite")


def _check_mechanism(mechanism: Mechanism) -> None:
    """Raise where a mechanism that can be simulated cannot be estimated."""
    if len(mechanism.sensors) == 0:
        raise ProblemError(f"{mechanism.name!r} has no sensors; add those that the recording's channels come from")
    for name, sensor in mechanism.sensors.items():
        if not float(sensor.std) > 0.0:
            raise ProblemError(f"{name}.std is {float(sensor.std):g}; a sensor's standard deviation must be positive")
    for name, joint in mechanism.joints.items():
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


def _check_seen(mechanism: Mechanism, recording: Recording, seen: Sequence[str]) -> None:
    """Raise if some bodies, with all that joints tie to them, are seen by no sensor: nothing tells where they are."""
    group = {name: name for name in mechanism.bodies}
    for joint in mechanism.joints.values:
        if WORLD not in (joint.parent, joint.child):
            kept, merged = group[joint.parent], group[joint.child]
            group = {name: kept if own == merged else own for name, own in group.items()}
    sensed = {group[body] for name in seen for body in _sensed_bodies(mechanism, name)}
    unseen = [name for name in mechanism.bodies if group[name] not in sensed]
    if unseen:
        raise ProblemError(
            f"recording {recording.name!r}: no sensor with samples sees {', '.join(unseen)} (or anything tied to it by "
            "joints), so its motion cannot be estimated; add a sensor, or leave it out of the model"
        )


def _sensed_bodies(mechanism: Mechanism, name: str) -> tuple[str, ...]:
    """Bodies that a sensor looks at; one of a kind that is not known here may look at any."""
    sensor = mechanism.sensors[name]
    if hasattr(sensor, "joint"):
        joint = mechanism.joints[sensor.joint]
        return tuple(body for body in (joint.parent, joint.child) if body != WORLD)
    return (sensor.body,) if hasattr(sensor, "body") else mechanism.bodies.names


# What each sensor measures, as the checks of recordings call it: turning, then straight motion.
_KINDS: dict[type, tuple[str, str]] = {
    JointPosition: ("angle", "length"),
    JointSpeed: ("angular_velocity", "velocity"),
    PointPosition: ("position", "position"),
    BodyRate: ("angular_velocity", "angular_velocity"),
}


def _warn_about(mechanism: Mechanism, recording: Recording, seen: Sequence[str]) -> None:
    """Say what about the samples would spoil a fit: gaps, constant channels, degrees, ..."""
    kinds, stds = {}, {}
    for name in seen:
        sensor = mechanism.sensors[name]
        turning, straight = _KINDS.get(type(sensor), ("", ""))
        kind = turning if getattr(sensor, "rotary", True) else straight
        channels = sensor_channels(mechanism, name)
        kinds.update(dict.fromkeys(channels, kind))
        stds.update(dict.fromkeys(channels, float(sensor.std)))
    for text in check_recording(recording, kinds, assumed_std=stds):
        warnings.warn(f"recording {recording.name!r}: {text}", stacklevel=5)


def _with_stick_time(mechanism: Mechanism, stick_time: float | None) -> Mechanism:
    if stick_time is None:
        return mechanism
    names = [f"{name}.stick_time" for name, joint in mechanism.joints.items() if joint.friction is not None]
    names += [f"{name}.stick_time" for name, contact in mechanism.contacts.items() if isinstance(contact, PlaneContact)]
    # Not checked again: estimated inertias need not belong to any body, and their states can be estimated all the same.
    return mechanism.write(dict.fromkeys(names, stick_time))


def sensor_channels(mechanism: Mechanism, name: str) -> list[str]:
    """Channels of a recording that hold a sensor's readings."""
    components = mechanism.sensors[name].components
    return [name if component == "" else f"{name}.{component}" for component in components]


def _track(mechanism: Mechanism, recording: Recording, timestep: float, centred: bool) -> Track:
    """The recording on its grid; a sample belongs to the nearest step (``centred``), or to the one before it."""
    start = float(recording.time[0])
    place = (recording.time - start) / timestep
    nearest_step = np.round(place)
    place = np.where(np.abs(place - nearest_step) < ON_GRID, nearest_step, place)
    step = (np.round(place) if centred else np.floor(place)).astype(int)
    steps = int(step[-1]) + 1
    if steps < 3:
        raise ProblemError(
            f"recording {recording.name!r} spans {steps} steps of {timestep:g} s; at least 3 are needed: "
            "use a smaller time-step or a longer recording"
        )
    rank = np.arange(len(step)) - np.searchsorted(step, step, side="left")
    samples = int(rank.max()) + 1
    fraction = np.zeros((steps, samples))
    fraction[step, rank] = place - step
    measured, present = [], []
    for name, sensor in mechanism.sensors.items():
        table = np.full((steps, samples, len(sensor.components)), np.nan)
        columns = sensor_channels(mechanism, name)
        if any(column in recording.channels for column in columns):
            for component, column in enumerate(columns):
                table[step, rank, component] = recording.channel(column)
        here = np.all(np.isfinite(table), axis=2)
        # Any reading will do where none counts, but it must be one: a quaternion of zeros has no distance from others.
        measured.append(np.where(here[..., None], table, table[here][0] if here.any() else 1.0))
        present.append(here)
    if not any(p.any() for p in present):
        wanted = [c for name in mechanism.sensors for c in sensor_channels(mechanism, name)]
        raise UnknownNameError(
            f"recording {recording.name!r} has none of the sensors' channels ({', '.join(wanted)})"
            f"{nearest(wanted[0], recording.channels)}"
        )
    seen = [name for name, here in zip(mechanism.sensors, present, strict=True) if here.any()]
    for name in mechanism.sensors:
        if name not in seen:
            warnings.warn(f"recording {recording.name!r} has no samples of sensor {name!r}", stacklevel=4)
    _check_seen(mechanism, recording, seen)
    _warn_about(mechanism, recording, seen)
    for name in mechanism.inputs:
        if name not in recording.channels:
            raise UnknownNameError(
                f"recording {recording.name!r} has no channel for input {name!r}{nearest(name, recording.channels)}"
            )
    return Track(recording, start, steps, fraction, tuple(measured), tuple(present))


# --- which numbers depend on which parameters ---


def _plan(mechanism: Mechanism, parameters: ParameterSet, options: Options, window: int, on_grid: bool) -> Plan:
    numbers = tuple(p.name for p in parameters.parameters if not p.is_rotation)
    turns = tuple(p.name for p in parameters.parameters if p.is_rotation)
    places: dict[str, list[int]] = {}
    start = 0
    for parameter in parameters.parameters:
        places[parameter.name] = list(range(start, start + parameter.size))
        start += parameter.size
    order = tuple(i for name in (*numbers, *turns) for i in places[name])
    inputs = [f"{name}.{leaf}" for name in mechanism.inputs for leaf in ("gain", "offset", "delay")]
    columns = tuple(places[name][0] for name in inputs if name in places)
    draft = Plan(
        numbers,
        turns,
        order,
        transition.Columns(),
        columns,
        (),
        window,
        on_grid,
        options.residual,
        options.discretization,
        options.unknowns,
        options.huber,
    )
    found = _remembered_dependencies(draft, mechanism)
    acting = transition.Columns(tuple(found["geometry"]), tuple(found["bodies"]), tuple(found["contacts"]))
    return dataclasses.replace(draft, columns=acting, sensor_columns=tuple(found["sensors"]))


def _remembered_dependencies(plan: Plan, mechanism: Mechanism) -> dict[str, list[int]]:
    """The same for every problem of this plan and structure; kept from run to run like compiled code."""
    if not is_own(mechanism):
        return _dependencies(plan, mechanism)
    leaves, structure = jax.tree.flatten(mechanism)
    special = [np.where(np.isin(leaf, (0.0, 1.0)), leaf, np.nan).tolist() for leaf in leaves]
    name = fingerprint("dependencies", f"{plan} {structure} {special}")
    return remembered(name, lambda: _dependencies(plan, mechanism))


def _dependencies(plan: Plan, mechanism: Mechanism) -> dict[str, list[int]]:
    """Which parameters change the geometry, the bodies and the sensors' readings, read off the operations."""
    leaves, structure = jax.tree.flatten(mechanism)
    # Zeros and ones shape the operations; all other numbers are as good as any, and must not cancel by chance.
    rng = np.random.default_rng(0)
    general = [np.where(np.isin(leaf, (0.0, 1.0)), leaf, rng.uniform(2.0, 3.0, np.shape(leaf))) for leaf in leaves]
    numbers = rng.uniform(2.0, 3.0, len(plan.numbers))
    turns = np.tile([0.5, 0.1, 0.7, 0.5], (len(plan.turns), 1))
    bodies = len(mechanism.bodies)

    def everything(given: Array) -> tuple[list[Array], ...]:
        moving = [part.reshape(bodies, -1) for part in jnp.split(given[plan.parameters :], [bodies * 3, bodies * 7])]
        now = write(plan, jax.tree.unflatten(structure, general), numbers, turns, given[: plan.parameters])
        view = StateView(now, State(Pose(moving[0], moving[1]), moving[2]))
        elements = assemble(now)
        geometry = [(group.kind, group.a, group.b) for group in elements.groups]
        acting = (elements.bodies, elements.gravity, elements.forces)
        touching = (elements.contacts, elements.bodies, geometry) if elements.contacts else ()
        readings = [sensor.read(view) for sensor in now.sensors.values]
        return tuple(jax.tree.leaves(part) for part in (geometry, acting, touching, readings))

    names = ("geometry", "bodies", "contacts", "sensors")
    counts = [len(part) for part in jax.eval_shape(everything, np.zeros(plan.parameters + 13 * bodies))]
    try:
        found = reach(everything, np.zeros(plan.parameters + 13 * bodies))
    except (UnsupportedError, TooLargeError):
        return {name: list(range(plan.parameters)) for name in names}
    places = np.split(np.array(found)[:, : plan.parameters], np.cumsum(counts)[:-1])
    return {name: np.flatnonzero(part.any(axis=0)).tolist() for name, part in zip(names, places, strict=True)}


# --- data of a chunk ---


def commands(
    plan: Plan, recording: Recording, mechanism: Mechanism, times: np.ndarray, timestep: float
) -> tuple[np.ndarray, np.ndarray]:
    """Command of steps at given times [s], ``gain·mean(u, delayed) + offset``, and derivatives by what is free of it.

    The mean is over the interval of a step [s]: from its time on for SPOOK, around it otherwise.
    """
    shift = 0.0 if plan.discretization == "spook" else -0.5
    first, last = times + shift * timestep, times + (shift + 1.0) * timestep
    free = set(plan.numbers)
    table, slopes = np.zeros((len(times), len(mechanism.inputs))), []
    for column, (name, part) in enumerate(mechanism.inputs.items()):
        gain, offset, delay = float(part.gain), float(part.offset), float(part.delay)
        time, signal = _finite_input(recording, name)
        mean = held_input_average(time, signal, first, last, hold=part.hold, delay=delay)
        table[:, column] = gain * mean + offset
        # Just before the ends: a delay can only grow from zero, and a sample may lie exactly on an end.
        early = ON_GRID * timestep if part.hold == "zero" else 0.0
        at_ends = [_held(time, signal, ends - delay - early, part.hold) for ends in (first, last)]
        by_delay = -gain * (at_ends[1] - at_ends[0]) / timestep
        for leaf, slope in (("gain", mean), ("offset", np.ones_like(mean)), ("delay", by_delay)):
            if f"{name}.{leaf}" in free:
                spread = np.zeros_like(table)
                spread[:, column] = slope
                slopes.append(spread)
    derivatives = np.stack(slopes, axis=2) if slopes else np.zeros((*table.shape, 0))
    return table, derivatives


def _finite_input(recording: Recording, name: str) -> tuple[np.ndarray, np.ndarray]:
    """An input's samples without the missing ones, over which the signal is held."""
    values = recording.channel(name)
    finite = np.isfinite(values)
    return recording.time[finite], values[finite]


def _held(time: np.ndarray, values: np.ndarray, at: np.ndarray, hold: str) -> np.ndarray:
    if hold == "linear":
        return np.interp(at, time, values)
    index = np.clip(np.searchsorted(time, at, side="right") - 1, 0, len(time) - 1)
    return values[index]


def chunk_starts(nodes: int) -> range:
    """First step of each chunk; together the chunks have at least as many steps as there are nodes."""
    return range(0, nodes, CHUNK)


def no_truncation(problem: Problem, recording: int) -> Truncation:
    """Zeros in place of the errors of the discretisation."""
    track, sensors = problem.tracks[recording], problem.mechanism.sensors.values
    size = 6 * len(problem.mechanism.bodies) * (2 if problem.plan.unknowns == "full" else 1)
    return Truncation(
        np.zeros((track.steps, size)), tuple(np.zeros((*track.fraction.shape, s.error_size())) for s in sensors)
    )


def chunk_data(
    track: Track, table: tuple[np.ndarray, np.ndarray], std: Sequence[float], known: Truncation, start: int
) -> ChunkData:
    """Data of the chunk that begins at step ``start``, filled up behind the recording with what does not count."""

    def cut(values: np.ndarray) -> Float[np.ndarray, "chunk ..."]:
        return filled(values, 0.0)

    def filled(values: np.ndarray, filling: Any) -> Float[np.ndarray, "chunk ..."]:
        part = values[start : start + CHUNK]
        if len(part) == CHUNK:
            return part
        return np.concatenate([part, np.broadcast_to(filling, (CHUNK - len(part), *values.shape[1:]))])

    weight = tuple(cut(here) / s for here, s in zip(track.present, std, strict=True))
    return ChunkData(
        cut(table[0]),
        cut(table[1]),
        tuple(filled(values, values[-1]) for values in track.measured),
        weight,
        cut(track.fraction),
        cut(known.dynamics),
        tuple(cut(values) for values in known.readings),
    )
