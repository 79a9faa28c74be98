"""A machine in the words that simulators share: mass properties of links, and numbers of joints.

Links and joints have the names of the user's robot file where there is one, and a link has what is its own there
(:mod:`robots.changes`); else those of the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.mechanism import Mechanism
from shadowfit.models.robots.build import MOTOR, Robot
from shadowfit.models.robots.changes import changes_of
from shadowfit.models.robots.inertia import MassProperties
from shadowfit.records import record

# What numbers of a mechanism's joint are called between simulators.
WORDS = {
    "viscous": "viscous",
    "coulomb": "coulomb",
    f"{MOTOR}.shaft_inertia": "armature",
    "rotor.shaft_inertia": "armature",
    "spring.stiffness": "stiffness",
}
LINK_WORDS = ("mass", "com", "inertia")


@record(frozen=True)
class Terms:
    """One machine."""

    links: Mapping[str, MassProperties]
    """Link → what it has about its centre of mass, in its own frame."""
    joints: Mapping[str, Mapping[str, float]]
    """Joint → word (``viscous``, ``coulomb``, ``armature``, ``stiffness``) → number."""
    others: Mapping[str, Any]
    """Numbers for which there is no such word."""


def terms_of(values: Mapping[str, Any], mechanism: Mechanism, robot: Robot | None) -> Terms:
    """Values by the names of a mechanism, in these words; the mechanism has them."""
    if robot is None:
        return _of_mechanism(values, mechanism)
    known = {name: value for name, value in values.items() if name in robot.mechanism.leaves()}
    changes = changes_of(robot, known)
    joints: dict[str, dict[str, float]] = {}
    others = {name: value for name, value in values.items() if name not in known or name in changes.other}
    others |= {name: values[name] for name in changes.impossible}
    for joint, fields in changes.joints.items():
        for field, value in fields.items():
            if field in WORDS:
                joints.setdefault(joint, {})[WORDS[field]] = float(value)
            else:
                others |= {name: values[name] for name in changes.names[f"{joint}.{field}"]}
    return Terms(changes.links, joints, others)


def _of_mechanism(values: Mapping[str, Any], mechanism: Mechanism) -> Terms:
    links: dict[str, MassProperties] = {}
    joints: dict[str, dict[str, float]] = {}
    others: dict[str, Any] = {}
    for name, value in values.items():
        part, _, field = name.partition(".")
        if part in mechanism.bodies and field.split(".")[0] in LINK_WORDS:
            body = mechanism.bodies[part]
            links[part] = MassProperties(
                float(body.mass), np.asarray(body.com, float), np.array(body.inertia.rows(), float)
            )
        elif part in mechanism.joints and field in WORDS:
            joints.setdefault(part, {})[WORDS[field]] = float(value)
        else:
            others[name] = value
    return Terms(links, joints, others)


def columns(machines: Sequence[Terms]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Links and joints of several machines: word → a list with the value of each."""
    first = machines[0]
    whole = [link for link in first.links if all(link in one.links for one in machines)]
    links = {
        link: {
            "mass": [one.links[link].mass for one in machines],
            "com": [one.links[link].com.tolist() for one in machines],
            "inertia": [one.links[link].inertia.tolist() for one in machines],
        }
        for link in whole
    }
    joints = {
        joint: {word: [one.joints[joint][word] for one in machines] for word in words}
        for joint, words in first.joints.items()
    }
    return links, joints
