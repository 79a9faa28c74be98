"""The mechanism: named bodies, joints, contacts, sensors, inputs and forces, and gravity."""

from __future__ import annotations

import fnmatch
import functools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.errors import MechanismError, UnknownNameError, nearest
from shadowfit.lazy_jax import namespace
from shadowfit.magnitudes import LARGEST, is_usable
from shadowfit.mechanism import leaves
from shadowfit.mechanism.body import Body
from shadowfit.mechanism.contacts import JointLimit, PlaneContact
from shadowfit.mechanism.groups import members
from shadowfit.mechanism.joint import WORLD, Joint
from shadowfit.mechanism.laws import AxisLaw
from shadowfit.mechanism.leaves import Leaf, Parts
from shadowfit.mechanism.sensors import JointPosition, JointSpeed, JointTorque, Sensor
from shadowfit.mechanism.shaft import Shaft
from shadowfit.mechanism.surroundings import Gravity, Input, Wrench
from shadowfit.mechanism.units import in_own_unit
from shadowfit.pytrees import PyTree, field
from shadowfit.runtime import double_precision
from shadowfit.trees import structure_of, unflatten

# A quaternion further from unit length than this was not meant as a rotation.
UNIT_TOLERANCE = 1e-6


@functools.lru_cache(maxsize=64)
def _leaves_of(structure: Any) -> dict[str, Leaf]:
    """The named numbers of all mechanisms of one structure, whatever their values."""
    blank = unflatten(structure, [None] * structure.size)
    return {leaf.name: leaf for leaf in leaves.walk(blank)}


class Mechanism(PyTree):
    """A rigid multibody system. Checked when built; frozen; every numeric leaf has a dotted name.

    Numbers are read with :meth:`get` and replaced, in a new mechanism, with :meth:`set`. Names of parts must differ
    from one another, since a leaf is addressed as ``part.leaf``.
    """

    bodies: Parts
    joints: Parts
    contacts: Parts
    forces: Parts
    shafts: Parts
    sensors: Parts
    inputs: Parts
    gravity: Gravity
    name: str = field(static=True)

    def __init__(
        self,
        bodies: Mapping[str, Any],
        joints: Mapping[str, Joint] | None = None,
        *,
        contacts: Mapping[str, JointLimit | PlaneContact] | None = None,
        forces: Mapping[str, Wrench] | None = None,
        shafts: Mapping[str, Shaft] | None = None,
        sensors: Mapping[str, Sensor] | None = None,
        inputs: Mapping[str, Input] | None = None,
        gravity: Gravity | None = None,
        name: str = "mechanism",
    ):
        self.bodies = Parts(bodies)
        self.joints = Parts(joints)
        self.contacts = Parts(contacts)
        self.forces = Parts(forces)
        self.shafts = Parts(shafts)
        self.sensors = Parts(sensors)
        self.inputs = Parts(inputs)
        self.gravity = gravity or Gravity()
        self.name = name
        self.check()

    def leaves(self) -> dict[str, Leaf]:
        """All named numbers, in order."""
        return dict(self._named)

    @functools.cached_property
    def _named(self) -> dict[str, Leaf]:
        return _leaves_of(structure_of(self))

    def leaf(self, name: str) -> Leaf:
        """One named number; an unknown name raises with the nearest valid ones."""
        known = self._named
        if name not in known:
            raise UnknownNameError(f"{self.name} has no parameter {name!r}{nearest(name, known)}")
        return known[name]

    def match(self, pattern: str) -> list[str]:
        """Names of tunable numbers that match a shell-style pattern such as ``*.inertia.*``, or a group of them."""
        names = self._tunable()
        matches = members(pattern, names) or fnmatch.filter(names, pattern)
        if not matches:
            raise UnknownNameError(f"{self.name} has no parameter {pattern!r}{nearest(pattern, self.leaves())}")
        return matches

    def expand(self, name: str) -> list[str]:
        """The names that a pattern or a group (``arm.inertial``) stands for; a plain name as it is, known or not."""
        if any(c in name for c in "*?["):
            return self.match(name)
        group = [] if name in self.leaves() else members(name, self._tunable())
        return group or [name]

    def _tunable(self) -> list[str]:
        """Names of the numbers that can be fitted; without friction of joints that have no free axis to rub on."""
        idle = {f"{name}.viscous" for name, joint in self.joints.items() if joint.kind.axis_kind is None}
        return [name for name, leaf in self.leaves().items() if leaf.tunable and name not in idle]

    def get(self, name: str) -> Any:
        """Value of a named number: a float, or four quaternion components."""
        value = np.asarray(leaves.read(self, self.leaf(name)))
        return float(value) if value.ndim == 0 else value

    def set(self, values: Mapping[str, Any]) -> Mechanism:
        """A mechanism with some numbers replaced, checked like a new one: ``m.set({"hinge1.viscous": 1e-3})``."""
        replaced = self.write(values)
        replaced.check()
        return replaced

    def write(self, values: Mapping[str, Any]) -> Mechanism:
        """As :meth:`set` without checks; the values may be traced."""
        known = self.leaves()
        return leaves.write(self, {known.get(name) or self.leaf(name): value for name, value in values.items()})

    def unit(self, name: str) -> str:
        """Unit of a named number; where it depends on joint (``N m | N``) or input (``N m/unit``), as it is there."""
        return self.applicable(self.leaf(name).unit, name)

    def applicable(self, unit: str, name: str) -> str:
        """The one of two units (``N m | N``) that applies to a number of this name, in the unit of its input."""
        part, *rest = name.split(".")
        rotary, _, linear = (text.strip() for text in unit.partition("|"))
        return in_own_unit(linear if linear and self._is_translation(part) else rotary, self._unit_behind(part, rest))

    def _unit_behind(self, part: str, rest: list[str]) -> str:
        """Unit of what an input or a sensor gives, or of the input that a joint's law follows; 1 where none is said."""
        if part in self.inputs:
            return self.inputs[part].unit
        if part in self.sensors:
            return self.sensors[part].unit()
        laws = self.joints[part].laws if part in self.joints else {}
        source = laws[rest[0]].input if rest and rest[0] in laws else None
        return "1" if source is None or source not in self.inputs else self.inputs[source].unit

    @property
    def conditions(self) -> frozenset[str]:
        """Inputs that tell laws their conditions (supply, gains), and none of them what to do."""
        laws = [law for joint in self.joints.values for law in joint.laws.values]
        told = {source for law in laws for source in law.sources[1:] if source is not None}
        return frozenset(told - {law.input for law in laws})

    def command_of(self, law: AxisLaw, commands: Any) -> Any:
        """What a law is told, of the commands of all inputs (last axis)."""
        columns = [
            0.0 * commands[..., 0] if one is None else commands[..., self.inputs.index(one)] for one in law.sources
        ]
        return columns[0] if len(columns) == 1 else namespace(*columns).stack(columns, axis=-1)

    def _is_translation(self, part: str) -> bool:
        if part in self.sensors:
            return not getattr(self.sensors[part], "rotary", True)
        if part in self.contacts:
            part = getattr(self.contacts[part], "joint", part)
        return part in self.joints and self.joints[part].kind.axis_kind == "translation"

    def check(self) -> None:
        """Raise a named error where the mechanism is not physical or not consistent."""
        # Everything begins with a mechanism, and what is computed from it needs its numbers as they are.
        double_precision()
        self._check_parts()
        self._check_names()
        self._check_references()
        self._check_numbers()
        for parts in (self.bodies, self.joints, self.contacts, self.forces, self.shafts, self.inputs):
            for name, part in parts.items():
                part.check(name)

    def _check_parts(self) -> None:
        groups = (
            (self.bodies, Body),
            (self.joints, Joint),
            (self.contacts, JointLimit | PlaneContact),
            (self.forces, Wrench),
            (self.shafts, Shaft),
            (self.sensors, Sensor),
            (self.inputs, Input),
            (Parts({"gravity": self.gravity}), Gravity),
        )
        for parts, allowed in groups:
            for name, part in parts.items():
                if not isinstance(part, allowed):
                    expected = getattr(allowed, "__name__", str(allowed))
                    raise MechanismError(f"{name!r} is a {type(part).__name__}; a {expected} is expected there")
        for name, joint in self.joints.items():
            joint.check_types(name)

    def _check_names(self) -> None:
        groups = (self.bodies, self.joints, self.contacts, self.forces, self.shafts, self.sensors, self.inputs)
        seen: set[str] = {WORLD, "gravity"}
        for name in (name for parts in groups for name in parts):
            if not name.isidentifier():
                raise MechanismError(f"{name!r} is not a valid name; use letters, digits and underscores")
            if name in seen:
                raise MechanismError(f"the name {name!r} is used twice (or is reserved); part names must be unique")
            seen.add(name)
        if len(self.bodies) == 0:
            raise MechanismError("a mechanism needs at least one body")
        names = [leaf.name for leaf in leaves.walk(self)]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise MechanismError(f"two numbers share the name {twice[0]!r}; rename the law that brings one of them")

    def _check_references(self) -> None:
        bodies = (*self.bodies.names, WORLD)
        for name, joint in self.joints.items():
            self._require(joint.parent, bodies, f"parent of joint {name!r}")
            self._require(joint.child, bodies, f"child of joint {name!r}")
            for law_name, law in joint.laws.items():
                for channel, source in zip(law.channels, law.sources, strict=True):
                    if source is not None:
                        self._require(source, self.inputs.names, f"{channel} of {name}.{law_name}")
                self._check_rotary(law, name, f"{name}.{law_name}")
        for name, contact in self.contacts.items():
            if isinstance(contact, JointLimit):
                self._require_axis(contact.joint, f"contact {name!r}")
                self._check_range(name, contact)
            else:
                self._require(contact.body, self.bodies.names, f"body of contact {name!r}")
                self._require(contact.plane, bodies, f"plane of contact {name!r}")
        for name, force in self.forces.items():
            self._require(force.body, self.bodies.names, f"body of force {name!r}")
            if force.input is not None:
                self._require(force.input, self.inputs.names, f"input of force {name!r}")
        for name, shaft in self.shafts.items():
            for joint in shaft.ratios:
                self._require_axis(joint, f"shaft {name!r}")
        for name, sensor in self.sensors.items():
            for joint in getattr(sensor, "ratios", ()):
                self._require_axis(joint, f"sensor {name!r}")
            if isinstance(sensor, JointPosition | JointSpeed):
                self._require_axis(sensor.joint, f"sensor {name!r}")
                self._check_rotary(sensor, sensor.joint, f"sensor {name!r}")
                self._check_scale(sensor, name)
            elif isinstance(sensor, JointTorque):
                self._require_axis(sensor.joint, f"sensor {name!r}")
                self._check_rotary(sensor, sensor.joint, f"sensor {name!r}")
                if all(law.input is None for law in self.joints[sensor.joint].laws.values):
                    raise MechanismError(
                        f"sensor {name!r} reads the torque of joint {sensor.joint!r}, which no input drives"
                    )
            elif getattr(sensor, "body", None) is not None:
                self._require(sensor.body, self.bodies.names, f"body of sensor {name!r}")

    def _check_rotary(self, part: Any, joint: str, where: str) -> None:
        if getattr(part, "rotary", None) == self._is_translation(joint):
            raise MechanismError(f"{where}: rotary must be {not part.rotary} for joint {joint!r}")

    def _check_scale(self, sensor: JointPosition | JointSpeed, name: str) -> None:
        if float(sensor.scale) == 0.0:
            raise MechanismError(f"{name}.scale is zero: the sensor would not see its joint")
        if not sensor.rotary and any(
            float(getattr(sensor, key, 0.0)) != 0.0 for key in ("eccentric_sin", "eccentric_cos")
        ):
            raise MechanismError(f"{name}: a slider's encoder has no eccentricity, which is that of a turning disk")

    def _check_range(self, name: str, limit: JointLimit) -> None:
        stops = np.array([limit.lower, limit.upper], float)
        if self._is_translation(limit.joint) or not np.any(np.abs(stops[np.isfinite(stops)]) >= np.pi):
            return
        given = f"{stops[0]:g} and {stops[1]:g}"
        raise MechanismError(f"contact {name!r}: the stops of a hinge must lie between −π and π rad, not at {given}")

    def _require_axis(self, joint: str, where: str) -> None:
        self._require(joint, self.joints.names, f"joint of {where}")
        if self.joints[joint].kind.axis_kind is None:
            raise MechanismError(f"{where} refers to joint {joint!r}, which has no free axis")

    @staticmethod
    def _require(name: str, valid: tuple[str, ...], what: str) -> None:
        if name not in valid:
            raise UnknownNameError(f"the {what} is {name!r}, which does not exist{nearest(name, valid)}")

    def _check_numbers(self) -> None:
        for name, leaf in self.leaves().items():
            leaves.check_shape(self, leaf)
            value = np.asarray(leaves.read(self, leaf), float)
            if leaf.kind == "rotation":
                if not abs(np.linalg.norm(value) - 1.0) < UNIT_TOLERANCE:
                    raise MechanismError(f"{name} is {value}; a rotation is a unit quaternion (w x y z)")
            elif not is_usable(value) and not (np.isinf(value) and _may_be_infinite(name)):
                what = "a finite number" if np.isnan(value) or np.isinf(value) else f"smaller than {LARGEST:g}"
                raise MechanismError(f"{name} is {value}; it must be {what} [{leaf.unit}]")
            elif value < leaf.lower:
                raise MechanismError(f"{name} is {value:g}; it must be at least {leaf.lower:g} [{leaf.unit}]")


def _may_be_infinite(name: str) -> bool:
    return name.endswith(("lower", "upper", "limit"))
