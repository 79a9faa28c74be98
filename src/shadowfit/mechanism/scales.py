"""Typical sizes of a machine's numbers, from its own masses, lengths and gravity.

A number that starts at zero says nothing about how large it may become. Its unit does, together with the machine: a
torque is compared with the weight of the machine times its length, a friction coefficient with that over the time of a
swing. Sizes are then the same machine's in any units.
"""

from __future__ import annotations

import re

import numpy as np

from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record

# Powers of mass, length and time in a unit's symbols; angles, volts and the user's own units have none.
_POWERS = {"kg": (1, 0, 0), "m": (0, 1, 0), "s": (0, 0, 1), "N": (1, 1, -2), "A": (1, 2, -3), "Ohm": (-1, -2, 3)}
_EXPONENTS = {"": 1, "²": 2, "³": 3}


@record(frozen=True)
class Scales:
    """What is large for a machine."""

    mass: float
    """Of its heaviest body [kg]."""
    length: float
    """Its longest lever or radius of gyration [m]."""
    time: float
    """In which it falls by its length, √(length/gravity) [s]; a second where nothing falls."""

    def of(self, unit: str) -> float:
        """What is large for a number in ``unit``, such as ``N m s/rad``."""
        above, _, below = unit.partition("/")
        powers = np.zeros(3)
        for text, sign in ((above, 1), (below, -1)):
            for symbol, exponent in re.findall(r"([A-Za-z]+)([²³]?)", text):
                powers += sign * _EXPONENTS[exponent] * np.array(_POWERS.get(symbol, (0, 0, 0)))
        return float(np.prod(np.array([self.mass, self.length, self.time]) ** powers))


def scales_of(mechanism: Mechanism) -> Scales:
    """Sizes of a mechanism."""
    masses, lengths = [], []
    for body in mechanism.bodies.values:
        mass, moments = float(body.mass), [float(getattr(body.inertia, axis)) for axis in ("xx", "yy", "zz")]
        masses.append(mass)
        lengths += [np.sqrt(max(sum(moments), 0.0) / (2.0 * mass)) if mass > 0.0 else 0.0, _norm(body.com)]
    for joint in mechanism.joints.values:
        # Where the machine stands in the world is none of its lengths.
        lengths += [_norm(joint.parent_point)] if joint.parent != WORLD else []
        lengths += [_norm(joint.child_point)] if joint.child != WORLD else []
    mass, length = max(masses, default=0.0) or 1.0, float(max(lengths, default=0.0)) or 1.0
    gravity = float(mechanism.gravity.acceleration)
    return Scales(mass, length, float(np.sqrt(length / gravity)) if gravity > 0.0 else 1.0)


def _norm(vector: object) -> float:
    return float(np.linalg.norm(np.asarray(vector, float)))
