"""Units as people write them (`deg`, `rad/s`, `rad s^-1`, `N·m`): SI value = factor × written value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from shadowfit.records import record

DEGREE = math.pi / 180.0  # [rad]


@record(frozen=True)
class Unit:
    """A unit of a column."""

    symbol: str
    """SI unit after conversion: `rad`, `m`, `s`, `rad/s`, `m/s`, `N m`, ..."""
    factor: float
    """SI value = factor × written value."""


_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
_ANGLE = {"rad": 1.0, "mrad": 1e-3, "deg": DEGREE, "rev": 2.0 * math.pi}
_LENGTH = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "km": 1e3}


def _rates(units: Mapping[str, float], symbol: str) -> dict[str, Unit]:
    """The units themselves, per second and per second squared."""
    return {
        unit + written: Unit(symbol + si, factor)
        for unit, factor in units.items()
        for written, si in (("", ""), ("/s", "/s"), ("/s2", "/s^2"))
    }


_UNITS: dict[str, Unit] = {
    **{unit: Unit("s", factor) for unit, factor in _TIME.items()},
    **_rates(_ANGLE, "rad"),
    **_rates(_LENGTH, "m"),
    "rpm": Unit("rad/s", 2.0 * math.pi / 60.0),
    "V": Unit("V", 1.0),
    "mV": Unit("V", 1e-3),
    "A": Unit("A", 1.0),
    "mA": Unit("A", 1e-3),
    "N": Unit("N", 1.0),
    "mN": Unit("N", 1e-3),
    "kN": Unit("N", 1e3),
    "Nm": Unit("N m", 1.0),
    "mNm": Unit("N m", 1e-3),
    "Ncm": Unit("N m", 1e-2),
    "kg": Unit("kg", 1.0),
    "Hz": Unit("Hz", 1.0),
}

_SPELLINGS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("°", "degree", "degrees"), "deg"),
    **dict.fromkeys(("°/s", "degrees/s", "dps"), "deg/s"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("radians/s", "radian/s", "rad/sec"), "rad/s"),
    **dict.fromkeys(("turn", "turns", "revolution", "revolutions"), "rev"),
    **dict.fromkeys(("rev/min", "1/min", "min-1"), "rpm"),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
    "deg/sec": "deg/s",
    "m/sec": "m/s",
    **dict.fromkeys(("v", "volt", "volts"), "V"),
    **dict.fromkeys(("a", "amp", "amps", "ampere", "amperes"), "A"),
    **dict.fromkeys(("n", "newton", "newtons"), "N"),
    "hz": "Hz",
}

_PLAIN = str.maketrans({"µ": "u", "μ": "u", "²": "2", "¹": "1", "⁻": "-", "º": "°", "·": "*", "⋅": "*"})
_INVERSE_SECONDS = re.compile(r"s(?:ec)?\^?-([12])$")


def parse_unit(text: str) -> Unit | None:
    """The unit that a text means, or None: `deg`, `rad/s`, `rad s^-1`, `m/s²`, `N·m`, `mm`, `RPM`.

    Capitals are read as small letters where the text is no unit otherwise (`Deg`), never the reverse: `mN` is
    not `MN`.
    """
    spelling = _INVERSE_SECONDS.sub(r"/s\1", text.strip().translate(_PLAIN)).replace("/s1", "/s")
    spelling = re.sub(r"[\s*.^]", "", spelling.replace("N-m", "Nm"))
    for candidate in (spelling, spelling.lower()):
        unit = _UNITS.get(_SPELLINGS.get(candidate, candidate))
        if unit is not None:
            return unit
    return None
