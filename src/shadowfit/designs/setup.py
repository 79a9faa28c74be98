"""A machine made ready for a design: where it rests, what drives it, and limits where none are given."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.drives import Drive, JointMotion, Release, Signals, command_of_force
from shadowfit.designs.ending import Ending
from shadowfit.designs.errors import DesignError
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.limits import REACH, InputLimits, JointLimits, Limits
from shadowfit.designs.motions import single_axes
from shadowfit.designs.settings import DesignSettings
from shadowfit.designs.waves import Waves
from shadowfit.dynamics.tree import coordinate_names, tree_of
from shadowfit.errors import MechanismError
from shadowfit.mechanism.contacts import JointLimit
from shadowfit.mechanism.laws import AxisLaw, DcMotor, PositionMotor, Servo, TorqueMotor, VelocityMotor
from shadowfit.mechanism.leaves import Parts
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.scales import scales_of
from shadowfit.models import Start
from shadowfit.records import record

# Highest frequency, in swings of a pendulum as long as the machine.
BAND_SWINGS = 4.0
# Part of a recording at whose end signals rest; position loops settle, passive joints swing out.
QUIET = 0.1
# Part of a joint's speed that counts as rest when a recording ends.
REST = 0.01
# A machine at rest that drifts by this [rad, lengths], or in which a deviation grows by this factor, does not stay.
DRIFT, GROWTH, DEVIATION = 1e-2, 1e3, 1e-6


def without_stops(mechanism: Mechanism, limits: Limits) -> tuple[Mechanism, Limits]:
    """The machine without its end stops, which a motion does not touch, and limits that keep it away from them.

    Raises:
        DesignError: it has other contacts, or loops.
    """
    joints = dict(limits.joints)
    for name, contact in mechanism.contacts.items():
        if not isinstance(contact, JointLimit):
            raise DesignError(f"{mechanism.name!r} touches things ({name}); a design is for machines that move freely")
        stated = joints.get(contact.joint, JointLimits())
        stops = float(contact.lower), float(contact.upper)
        stated_range = stated.position or (-np.inf, np.inf)
        room = max(stops[0], stated_range[0]), min(stops[1], stated_range[1])
        if np.all(np.isfinite(room)):
            joints[contact.joint] = dataclasses.replace(stated, position=room)
    free = mechanism.having(contacts=Parts({}))
    try:
        tree = tree_of(free)
    except MechanismError as error:
        raise DesignError(f"{error}; a design is for machines whose joints form a tree") from error
    if tree.loops:
        closing = mechanism.joints.names[tree.loops[0]]
        raise DesignError(f"joint {closing!r} closes a loop; a design is for machines whose joints form a tree")
    return free, dataclasses.replace(limits, joints=joints)


@record(frozen=True)
class Setup:
    """What a design varies, and within which limits."""

    drive: Drive
    limits: Limits
    assumed: tuple[str, ...]
    """Limits that were not given, in words."""


def driven_joints(mechanism: Mechanism) -> dict[str, tuple[str, AxisLaw]]:
    """Input → joint and law that it drives."""
    return {
        law.input: (name, law)
        for name, joint in mechanism.joints.items()
        for law in joint.laws.values
        if law.input is not None
    }


def set_up(experiment: Experiment, limits: Limits, settings: DesignSettings) -> Setup:
    """The drive of a machine, with limits from its own size where none are given."""
    mechanism, sampling = experiment.mechanism, experiment.sampling
    if mechanism.conditions:
        name = min(mechanism.conditions)
        raise DesignError(f"{name!r} is a condition of a drive, which no motion decides: give a number in its place")
    scales = scales_of(mechanism)
    top = BAND_SWINGS / (2.0 * np.pi * scales.time) if settings.band is None else settings.band
    top = min(max(top, 3.0 / sampling.duration), 0.1 / sampling.timestep)
    motors = driven_joints(mechanism)
    completed = _Completed(experiment, limits)
    if not len(mechanism.inputs):
        for name in _single_names(experiment):
            completed.position(name)
        return Setup(Release(completed.amplitudes(np.inf)), *completed.done())
    waves = Waves(0, sampling.duration, top, seed=settings.seed)
    matrix = None
    if all(isinstance(law, TorqueMotor | DcMotor) for _, law in motors.values()) and not len(mechanism.forces):
        matrix = command_of_force(experiment)
    if matrix is not None:
        completed.ended_anyway()
        for name in _single_names(experiment):
            completed.position(name)
            completed.speed(name)
        waves = waves.for_channels(experiment.tree.size, settings.frequencies)
        return Setup(JointMotion(waves, completed.amplitudes(top), matrix), *completed.done())
    for name, _ in motors.values():
        completed.position(name)
    for name in _moved_by_inputs(experiment):
        completed.end_speed(name)
    for name in mechanism.inputs:
        completed.range(name, motors.get(name))
    waves = dataclasses.replace(waves, quiet=QUIET)
    waves = waves.for_channels(len(mechanism.inputs), settings.frequencies)
    ranges = np.array([completed.inputs[name].range for name in mechanism.inputs])
    center = np.array([_at_rest(experiment, motors.get(name)) for name in mechanism.inputs])
    drive = Signals(waves, center, 0.5 * (ranges[:, 1] - ranges[:, 0]), completed.ending())
    return Setup(drive, *completed.done())


def _moved_by_inputs(experiment: Experiment) -> list[str]:
    """Joints with one axis that inputs drive, by a motor or by a force on the body that they carry."""
    mechanism = experiment.mechanism
    pushed = {force.body for force in mechanism.forces.values if force.input is not None}
    motors = {name for name, _ in driven_joints(mechanism).values()}
    driven = motors | {name for name, joint in mechanism.joints.items() if joint.child in pushed}
    return [name for name in _single_names(experiment) if name in driven]


def _single_names(experiment: Experiment) -> list[str]:
    names = coordinate_names(experiment.tree, experiment.mechanism)
    return [names[place] for place, _, _ in single_axes(experiment.tree)]


def _at_rest(experiment: Experiment, driven: tuple[str, AxisLaw] | None) -> float:
    """An input while the machine rests: the target of a position loop is where its joint is."""
    if driven is None or not isinstance(driven[1], PositionMotor | Servo):
        return 0.0
    names = coordinate_names(experiment.tree, experiment.mechanism)
    part = experiment.mechanism.inputs[str(driven[1].input)]
    return (float(experiment.rest_coordinates[names.index(driven[0])]) - float(part.offset)) / float(part.gain)


class _Completed:
    """Limits that are filled in where none are given, and what was assumed."""

    def __init__(self, experiment: Experiment, limits: Limits) -> None:
        self.experiment, self.limits = experiment, limits
        self.joints, self.inputs = dict(limits.joints), dict(limits.inputs)
        self.assumed: list[str] = []
        self.scales = scales_of(experiment.mechanism)
        self.names = coordinate_names(experiment.tree, experiment.mechanism)

    def position(self, name: str) -> None:
        """Around where the joint rests."""
        stated = self.joints.get(name, JointLimits())
        if stated.position is None:
            rotary = self._rotary(name)
            reach = REACH if rotary else self.scales.length
            rest = float(self.experiment.rest_coordinates[self.names.index(name)])
            self._joint(name, dataclasses.replace(stated, position=(rest - reach, rest + reach)))
            self._say(f"{name} from {rest - reach:.3g} to {rest + reach:.3g} {'rad' if rotary else 'm'}")

    def speed(self, name: str) -> None:
        """That of a fall over the machine's length."""
        stated = self.joints.get(name, JointLimits())
        if stated.speed is None:
            rotary = self._rotary(name)
            speed = self._fall(name)
            self._joint(name, dataclasses.replace(stated, speed=speed))
            self._say(f"{name} up to {speed:.3g} {'rad/s' if rotary else 'm/s'}")

    def end_speed(self, name: str) -> None:
        """What counts as rest: a small part of the speed of a fall over the machine's length, or of the joint's own."""
        stated = self.joints.get(name, JointLimits())
        if stated.end_speed is None:
            speed = min(self._fall(name), stated.speed or np.inf)
            self._joint(name, dataclasses.replace(stated, end_speed=REST * speed))

    def ended_anyway(self) -> None:
        """Joint motions that are designed end at rest by their shape: nothing is to be asked for."""
        self.joints = {name: dataclasses.replace(joint, end_speed=None) for name, joint in self.joints.items()}

    def ending(self) -> Ending:
        """Joints whose speed is limited at the end."""
        speeds = {self.names.index(name): joint.end_speed for name, joint in self.joints.items() if joint.end_speed}
        return Ending(tuple(speeds), tuple(speeds.values()))

    def range(self, name: str, driven: tuple[str, AxisLaw] | None) -> None:
        """A force as large as the machine's weight, a speed as of its fall, or a target within the joint's limits."""
        stated = self.inputs.get(name, InputLimits())
        if stated.range is None:
            lower, upper = self._range(name, driven)
            self.inputs[name] = dataclasses.replace(stated, range=(lower, upper))
            self._say(f"{name} from {lower:.3g} to {upper:.3g} {self.experiment.mechanism.inputs[name].unit}")

    def _range(self, name: str, driven: tuple[str, AxisLaw] | None) -> tuple[float, float]:
        gain = abs(float(self.experiment.mechanism.inputs[name].gain)) or 1.0
        weight = self.scales.mass * self.scales.length / self.scales.time**2
        if driven is None:
            return -weight / gain, weight / gain
        joint, law = driven
        rotary = self._rotary(joint)
        force = weight * (self.scales.length if rotary else 1.0)
        if isinstance(law, PositionMotor | Servo):
            pair = self.joints[joint].position
            assert pair is not None
            return pair
        if isinstance(law, VelocityMotor):
            size = self._fall(joint)
        elif isinstance(law, DcMotor):
            size = force * abs(float(law.resistance) / float(law.torque_constant) / float(law.ratio))
        else:
            size = force / (abs(float(getattr(law, "gain", 1.0))) or 1.0)
        return -size / gain, size / gain

    def amplitudes(self, frequency: float) -> Float[np.ndarray, " d"]:
        """Of each coordinate: half its range, or what its speed allows at half a frequency; zero where it has none."""
        sizes = np.zeros(self.experiment.tree.size)
        for place, name in enumerate(self.names):
            stated = self.joints.get(name)
            if stated is not None and stated.position is not None:
                sizes[place] = 0.5 * (stated.position[1] - stated.position[0])
                if stated.speed is not None and np.isfinite(frequency):
                    sizes[place] = min(sizes[place], stated.speed / (np.pi * frequency))
        return sizes

    def done(self) -> tuple[Limits, tuple[str, ...]]:
        """All limits, and what was assumed."""
        return dataclasses.replace(self.limits, joints=self.joints, inputs=self.inputs), tuple(self.assumed)

    def _fall(self, name: str) -> float:
        """Speed of a fall over the machine's length [rad/s, m/s]."""
        return (1.0 if self._rotary(name) else self.scales.length) / self.scales.time

    def _joint(self, name: str, stated: JointLimits) -> None:
        self.joints[name] = stated

    def _say(self, text: str) -> None:
        self.assumed.append(text)

    def _rotary(self, name: str) -> bool:
        return self.experiment.mechanism.joints[name].kind.axis_kind == "rotation"


def check_rest(experiment: Experiment, setup: Setup) -> None:
    """Raise where the machine starts outside its limits, or does not stay where it is without being driven."""
    names = coordinate_names(experiment.tree, experiment.mechanism)
    for name, stated in setup.limits.joints.items():
        at = float(experiment.rest_coordinates[names.index(name)])
        if stated.position is not None and not stated.position[0] <= at <= stated.position[1]:
            raise DesignError(
                f"joint {name!r} starts at {round(at, 6):.4g}, outside its limits from {stated.position[0]:.4g} to "
                f"{stated.position[1]:.4g}; choose another start, or other limits"
            )
    if isinstance(setup.drive, Signals):
        _check_stays(experiment, setup.drive, names)


def check_angles(mechanism: Mechanism, start: Start) -> None:
    """Raise where a start is further than half a turn from zero: motions are counted from the nearest turn."""
    for name, value in start.positions.items():
        joint = mechanism.joints[name] if name in mechanism.joints.names else None
        if joint is not None and joint.kind.axis_kind == "rotation" and abs(float(value)) > np.pi:
            same = float(np.remainder(float(value) + np.pi, 2.0 * np.pi) - np.pi)
            raise DesignError(
                f"joint {name!r} starts at {float(value):.4g} rad, more than half a turn from zero; write {same:.4g}, "
                "and limits around it"
            )


def _check_stays(experiment: Experiment, drive: Signals, names: tuple[str, ...]) -> None:
    """At rest, and after a small push: signals that are designed beforehand must have the same effect every time."""
    rest, size = experiment.rest_coordinates, experiment.tree.size
    inputs = np.broadcast_to(drive.center, (size + 1, experiment.sampling.nodes, len(drive.center))).copy()
    start = rest + DEVIATION * np.concatenate([np.zeros((1, size)), np.eye(size)])
    motions = experiment.simulated(start, inputs)
    held = any(isinstance(law, PositionMotor | Servo) for _, law in driven_joints(experiment.mechanism).values())
    # A start that is nearly where it balances drifts because it is unstable: that is said first.
    growth = np.max(np.abs(motions.coordinates[1:] - motions.coordinates[:1]), initial=0.0) / DEVIATION
    if growth > GROWTH:
        raise DesignError(
            f"{experiment.mechanism.name!r} is unstable at its start: a small deviation grows {growth:.1g} times in "
            f"{experiment.sampling.duration:g} s, and no signal that is computed beforehand would be followed twice. "
            "Start where it hangs still, or give the model its controller (a motor of type 'position') and design the "
            "targets"
        )
    away = np.max(np.abs(motions.coordinates[0] - rest), axis=0)
    if not motions.good.all() or (not held and np.max(away, initial=0.0) > DRIFT):
        joint = names[int(np.argmax(away))]
        raise DesignError(
            f"{experiment.mechanism.name!r} does not rest at its start: without input {joint!r} moves by "
            f"{np.max(away):.3g} in {experiment.sampling.duration:g} s; start where it hangs still (--start {joint}=…)"
        )
