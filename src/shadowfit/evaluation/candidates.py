"""Elements that a model may lack: each is added to the mechanism switched off, and is one candidate.

What a model has already with a number that is not estimated is a candidate, too: the number may be wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.mechanism import ConstantForce, Drag, Joint, Mechanism, Rotor, Servo, Spring, Stribeck
from shadowfit.mechanism.leaves import Parts
from shadowfit.records import record

# Speed at which the Stribeck effect has decayed by a factor e, as a fraction of the joint's typical speed.
NEAR_REST = 0.1

# Last words of the numbers of a joint → what they are.
JOINT_NUMBERS = {
    "viscous": "viscous friction",
    "coulomb": "Coulomb friction",
    "dry": "friction in proportion to the load",
    "gear_loss": "loss of the gear",
    "load_loss": "friction of the gear under its load",
    "stribeck_coulomb": "static friction (Stribeck)",
}
# Of these, those of a gear, which only driven joints have.
OF_GEARS = ("gear_loss", "load_loss")
# Laws that are added where a joint has none of their kind: numbers that are candidates, and what they are.
LAWS: tuple[tuple[str, type, dict[str, str]], ...] = (
    ("drag", Drag, {"coefficient": "quadratic drag"}),
    ("spring", Spring, {"stiffness": "spring", "quadratic": "spring that pulls to one side"}),
    ("constant", ConstantForce, {"force": "constant force"}),
    ("rotor", Rotor, {"shaft_inertia": "inertia of the axis"}),
)
SENSOR_NUMBERS = {"offset": "offset of the sensor", "scale": "scale of the sensor"}
ECCENTRIC = ("eccentric_sin", "eccentric_cos")
INPUT_NUMBERS = {"delay": "delay of the input", "offset": "offset of the input", "gain": "gain of the input"}


@record(frozen=True)
class Candidate:
    """An element that can be switched on."""

    what: str
    """In words."""
    part: str
    """Joint, sensor or input that it belongs to."""
    names: tuple[str, ...]
    """Its parameters in the extended mechanism."""

    @property
    def name(self) -> str:
        """All of them."""
        return " + ".join(self.names)


def extended(
    mechanism: Mechanism, free: Collection[str], speeds: Mapping[str, float]
) -> tuple[Mechanism, tuple[Candidate, ...]]:
    """The mechanism with everything added, switched off, that a model may lack.

    Args:
        mechanism: the model.
        free: names of its parameters that are estimated already.
        speeds: typical speed of each joint with a free axis [rad/s, m/s].
    """
    joints = {
        name: _extended_joint(joint, speeds[name]) if name in speeds else joint
        for name, joint in mechanism.joints.items()
    }
    whole = mechanism.having(joints=Parts(joints))
    candidates = [candidate for name in speeds for candidate in _of_joint(name, whole.joints[name])]
    candidates += [
        Candidate(what, name, (f"{name}.{key}",)) for name in whole.inputs for key, what in INPUT_NUMBERS.items()
    ]
    for name, sensor in whole.sensors.items():
        candidates += [Candidate(what, name, (f"{name}.{key}",)) for key, what in SENSOR_NUMBERS.items()]
        if getattr(sensor, "rotary", False):
            candidates.append(Candidate("eccentric encoder", name, tuple(f"{name}.{key}" for key in ECCENTRIC)))
    known = whole.leaves()
    kept = [one for one in candidates if all(name in known and name not in free for name in one.names)]
    if float(whole.gravity.acceleration) > 0.0 and "gravity.tilt" not in free:
        kept.append(Candidate("tilt of the stand", "gravity", ("gravity.tilt",)))
    return whole, tuple(kept)


@record(frozen=True)
class OwnForces:
    """What a joint did in the recordings, and how strong the forces were that it did it with."""

    position: Float[np.ndarray, " n"]
    speed: Float[np.ndarray, " n"]
    strongest: float
    """Root mean square of the largest of inertia, weight and drive [N m, N]."""


def contradicts(
    mechanism: Mechanism, candidate: Candidate, values: Sequence[float], own: Mapping[str, OwnForces]
) -> bool:
    """Whether an element on a joint's axis would pull more than all that the machine moves by.

    Such a spring explains a recording only together with a friction or a motor that fights it, which no machine has.
    """
    joint = candidate.part
    if joint not in own:
        return False
    forces = own[joint]

    def pull(machine: Mechanism) -> Float[np.ndarray, " n"]:
        laws = [law for law in machine.joints[joint].laws.values if not law.drives]
        return sum((np.asarray(law.torque(forces.position, forces.speed, 0.0)) for law in laws), np.zeros(1))

    added = pull(mechanism.write(dict(zip(candidate.names, values, strict=True)))) - pull(mechanism)
    return bool(np.sqrt(np.mean(added**2)) > forces.strongest)


def _extended_joint(joint: Joint, speed: float) -> Joint:
    laws = dict(joint.laws.items())
    for word, kind, numbers in LAWS:
        if not any(hasattr(law, number) for law in laws.values() for number in numbers):
            laws[_free_name(word, laws)] = kind()
    return dataclasses.replace(joint, laws=Parts(laws), friction=_extended_friction(joint.friction, speed))


def _extended_friction(friction: Any, speed: float) -> Any:
    """Dry friction that may be larger near rest; as it is where it is so already, or of another kind."""
    rate = (NEAR_REST * speed) ** -2 if speed > 0.0 else 1.0
    if friction is None:
        return Stribeck(stribeck_rate=rate)
    if isinstance(friction, Stribeck) or not hasattr(friction, "coulomb"):
        return friction
    kept = {field.name: getattr(friction, field.name) for field in dataclasses.fields(friction)}
    return Stribeck(**kept, stribeck_rate=rate)


def _free_name(word: str, laws: Mapping[str, Any]) -> str:
    number, name = 2, word
    while name in laws:
        number, name = number + 1, f"{word}_{number}"
    return name


def _of_joint(name: str, joint: Joint) -> list[Candidate]:
    driven = any(law.drives for law in joint.laws.values)
    numbers = {key: what for key, what in JOINT_NUMBERS.items() if driven or key not in OF_GEARS}
    candidates = [Candidate(what, name, (f"{name}.{key}",)) for key, what in numbers.items()]
    # By itself an asymmetry is a constant force, which is a candidate already.
    candidates.append(
        Candidate("Coulomb friction that differs by direction", name, (f"{name}.coulomb", f"{name}.asymmetry"))
    )
    for law_name, law in joint.laws.items():
        if isinstance(law, Servo) and law.temperature_input is not None:
            candidates.append(Candidate("warming of the winding", name, (f"{name}.{law_name}.heating",)))
        numbers = {key: what for _, _, words in LAWS for key, what in words.items() if hasattr(law, key)}
        candidates += [Candidate(what, name, (f"{name}.{law_name}.{key}",)) for key, what in numbers.items()]
    springs, forces = ([law for law in joint.laws if hasattr(joint.laws[law], key)] for key in ("stiffness", "force"))
    # F − k x is a spring with the rest position F/k, which no number of a spring without stiffness says.
    pairs = [(f"{name}.{spring}.stiffness", f"{name}.{force}.force") for spring in springs for force in forces]
    return candidates + [Candidate("spring with a rest of its own", name, pair) for pair in pairs]
