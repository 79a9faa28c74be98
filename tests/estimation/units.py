"""The same machine in other units: every number of a mechanism multiplied by what its unit says."""

import re

import numpy as np

# Mass and length of the base units of a unit; time, angle and voltage stay. A volt ampere is a watt.
_FACTORS = {"kg": (1, 0), "m": (0, 1), "N": (1, 1), "A": (1, 2), "Ohm": (-1, -2)}
_POWERS = {"²": 2, "³": 3, "": 1}


def factor(unit, mass, length):
    """What a number in ``unit`` is multiplied by when the units of mass and length become smaller by these factors."""
    over, _, under = unit.partition("/")
    total = 1.0
    for text, sign in ((over, 1), (under.strip("()"), -1)):
        for symbol, power in re.findall(r"([A-Za-z]+)([²³]?)", text):
            kilogrammes, metres = _FACTORS.get(symbol, (0, 0))
            total *= (mass**kilogrammes * length**metres) ** (sign * _POWERS[power])
    return total


def in_other_units(mechanism, mass, length):
    """The mechanism with masses and lengths in units that are smaller by these factors, and the same seconds."""
    changed = {}
    for name, leaf in mechanism.leaves().items():
        if leaf.kind != "rotation":
            changed[name] = np.asarray(mechanism.get(name)) * factor(mechanism.unit(name), mass, length)
    return mechanism.write(changed)
