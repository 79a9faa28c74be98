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

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import StateView
from shadowfit.dynamics.simulate import Discretization
from shadowfit.dynamics.state import State
from shadowfit.errors import ShadowfitError, UnknownNameError, nearest
from shadowfit.estimation import transition
from shadowfit.estimation.linearise import ChunkData, Plan, Unknowns, write
from shadowfit.estimation.parameters import ParameterSet, Values
from shadowfit.estimation.step_kernels import StepKernels, is_own
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import fingerprint, remembered
from shadowfit.mechanism.contacts import PlaneContact
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import BodyRate, JointPosition, JointSpeed, PointPosition
from shadowfit.recordings import Recording, check_recording, held_input_average

# Steps in one call of the compiled functions; a multiple of 6 so that windows of 2, 3 and 4 nodes divide it.
CHUNK = 504
# A sample this close to a time of the grid (in steps) is on it.
ON_GRID = 1e-6


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
    """Regularisation of sticking during the fit [s]; None: the mechanism's own. Too small a value makes the cost creep
    along the kinks of friction for many iterations, to the same estimates."""
    cutoff: float = 10.0
    """Cut-off frequency [Hz] of the low-pass filter behind the initial trajectory."""


@dataclasses.dataclass(frozen=True)
class Track:
    """One recording on its time grid."""

    recording: Recording
    start_time: float
    steps: int
    fraction: np.ndarray
    """``(steps, samples)``: time of each sample after its step's, in steps."""
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
    def fixed_commands(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Commands of each recording at the start values: they stay unless a parameter acts on an input."""
        return tuple(commands(self, track, self.mechanism) for track in self.tracks)

    def commands_at(self, values: Values, recording: int) -> tuple[np.ndarray, np.ndarray]:
        """Commands of one recording, and their derivatives, at given parameter values."""
        if not self.plan.input_columns:
            return self.fixed_commands[recording]
        return commands(self, self.tracks[recording], self.written(values, recording))

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
    tracks = tuple(_track(mechanism, recording, timestep) for recording in recordings)
    on_grid = all(np.all(np.abs(track.fraction) < ON_GRID) for track in tracks)
    window = 4 if not on_grid else (3 if options.unknowns == "configuration" else 2)
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
    )
    for name, allowed in choices:
        value = getattr(options, name)
        if value not in allowed:
            raise UnknownNameError(f"there is no {name} {value!r}{nearest(str(value), allowed)}")
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


def _track(mechanism: Mechanism, recording: Recording, timestep: float) -> Track:
    start = float(recording.time[0])
    place = (recording.time - start) / timestep
    nearest_step = np.round(place)
    place = np.where(np.abs(place - nearest_step) < ON_GRID, nearest_step, place)
    step = np.floor(place).astype(int)
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
    found = _remembered_dependencies(draft, mechanism, parameters)
    acting = transition.Columns(tuple(found["geometry"]), tuple(found["bodies"]), tuple(found["contacts"]))
    return dataclasses.replace(draft, columns=acting, sensor_columns=tuple(found["sensors"]))


def _remembered_dependencies(plan: Plan, mechanism: Mechanism, parameters: ParameterSet) -> dict[str, list[int]]:
    """The same for every problem of this plan and structure; kept from run to run like compiled code."""
    leaves, structure = jax.tree.flatten(mechanism)
    if not is_own(mechanism):
        return _dependencies(plan, mechanism, parameters)
    zeros = [(np.asarray(leaf) == 0.0).tolist() for leaf in leaves]
    name = fingerprint("dependencies", f"{plan} {structure} {zeros}")
    return remembered(name, lambda: _dependencies(plan, mechanism, parameters))


def _dependencies(plan: Plan, mechanism: Mechanism, parameters: ParameterSet) -> dict[str, list[int]]:
    """Which parameters change the geometry, the bodies and the sensors' readings, found by differentiation."""
    named = parameters.named(parameters.start())
    # General values: at the start a derivative may vanish that does not later (turning gravity about the vertical).
    numbers = np.array([named[name] for name in plan.numbers]) + np.linspace(0.1, 0.2, len(plan.numbers))
    turns = np.array([named[name] for name in plan.turns]).reshape(-1, 4)
    tangents, readings = _dependency_jacobians(plan, mechanism, numbers, turns)
    geometry = [(group.kind, group.a, group.b) for group in tangents.groups]
    bodies = (tangents.bodies, tangents.gravity, tangents.forces)
    touching = (tangents.contacts, tangents.bodies, geometry) if tangents.contacts else ()
    return {
        "geometry": _moved(geometry),
        "bodies": _moved(bodies),
        "contacts": _moved(touching),
        "sensors": _moved(readings),
    }


def _moved(tangents: object) -> list[int]:
    """Columns (last axis) with an entry that is not zero."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tangents)]
    if not leaves or leaves[0].shape[-1] == 0:
        return []
    moved = np.any([np.any(leaf.reshape(-1, leaf.shape[-1]) != 0.0, axis=0) for leaf in leaves if leaf.size], axis=0)
    return [int(i) for i in np.flatnonzero(moved)]


@eqx.filter_jit
def _dependency_jacobians(plan: Plan, mechanism: Mechanism, numbers: Array, turns: Array) -> tuple[Elements, Array]:
    bodies = len(mechanism.bodies)
    # A general position, velocity and rotation: no derivative vanishes by symmetry.
    turns = rotations.plus(turns, jnp.tile(jnp.array([0.3, -0.2, 0.1]), (turns.shape[0], 1)))
    angle = jnp.linspace(0.3, 1.1, bodies * 6).reshape(bodies, 6)
    state = State(Pose(angle[:, :3], jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (bodies, 1))).plus(angle), angle)

    def everything(increments: Array) -> tuple[Elements, Array]:
        now = write(plan, mechanism, numbers, turns, increments)
        view = StateView(now, state)
        readings = jnp.concatenate([sensor.read(view) for sensor in now.sensors.values])
        return assemble(now), readings

    return jax.jacfwd(everything)(jnp.zeros(plan.parameters))


# --- data of a chunk ---


def commands(problem: Problem, track: Track, mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Command of each step, ``gain·mean(u, delayed) + offset``, and derivatives by the free ones of those three."""
    times = track.times(problem.timestep)
    shift = 0.0 if problem.plan.discretization == "spook" else -0.5
    first, last = times + shift * problem.timestep, times + (shift + 1.0) * problem.timestep
    free = set(problem.plan.numbers)
    table, slopes = np.zeros((track.steps, len(mechanism.inputs))), []
    for column, (name, part) in enumerate(mechanism.inputs.items()):
        gain, offset, delay = float(part.gain), float(part.offset), float(part.delay)
        time, signal = _finite_input(track.recording, name)
        mean = held_input_average(time, signal, first, last, hold=part.hold, delay=delay)
        table[:, column] = gain * mean + offset
        # Just before the ends: a delay can only grow from zero, and a sample may lie exactly on an end.
        early = ON_GRID * problem.timestep if part.hold == "zero" else 0.0
        at_ends = [_held(time, signal, ends - delay - early, part.hold) for ends in (first, last)]
        by_delay = -gain * (at_ends[1] - at_ends[0]) / problem.timestep
        for leaf, slope in (("gain", mean), ("offset", np.ones_like(mean)), ("delay", by_delay)):
            if f"{name}.{leaf}" in free:
                spread = np.zeros((track.steps, len(mechanism.inputs)))
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


def chunk_data(track: Track, table: tuple[np.ndarray, np.ndarray], std: Sequence[float], start: int) -> ChunkData:
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
    )
