"""The same machine in other units: every number of a mechanism multiplied by what its unit says."""

import re

import numpy as np

# Mass, length and time in a unit; angle and voltage stay. A volt ampere is a watt.
_FACTORS = {"kg": (1, 0, 0), "m": (0, 1, 0), "s": (0, 0, 1), "N": (1, 1, -2), "A": (1, 2, -3), "Ohm": (-1, -2, 3)}
_POWERS = {"²": 2, "³": 3, "": 1}


def factor(unit, mass, length, time=1.0):
    """What a number in ``unit`` is multiplied by when the units of mass, length and time shrink by these factors."""
    over, _, under = unit.partition("/")
    total = 1.0
    for text, sign in ((over, 1), (under.strip("()"), -1)):
        for symbol, power in re.findall(r"([A-Za-z]+)([²³]?)", text):
            kilogrammes, metres, seconds = _FACTORS.get(symbol, (0, 0, 0))
            total *= (mass**kilogrammes * length**metres * time**seconds) ** (sign * _POWERS[power])
    return total


def in_other_units(mechanism, mass, length, time=1.0):
    """The mechanism with masses, lengths and times in units that are smaller by these factors."""
    changed = {}
    for name, leaf in mechanism.leaves().items():
        if leaf.kind != "rotation":
            changed[name] = np.asarray(mechanism.get(name)) * factor(mechanism.unit(name), mass, length, time)
    return mechanism.write(changed)
