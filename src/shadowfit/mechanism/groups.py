"""Groups of numbers under one word: ``link1.inertial`` is all ten inertial numbers of a body.

A group is asked for as ``PART.word``, where the part may be a pattern; what a part lacks is left out.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

GROUPS: dict[str, tuple[str, ...]] = {
    "inertial": ("mass", "com.?", "inertia.??"),
    "friction": ("viscous", "coulomb", "stribeck_coulomb"),
    "armature": ("shaft_inertia", "*.shaft_inertia"),
    "gain": ("gain", "*.gain"),
}
"""Word → patterns of the numbers behind the part's name."""


def members(pattern: str, names: Iterable[str]) -> list[str]:
    """Those of the names that a group holds; empty where the pattern asks for none."""
    part, _, word = pattern.rpartition(".")
    return [name for name in names if part and word in GROUPS and _is_member(name, part, GROUPS[word])]


def _is_member(name: str, part: str, patterns: tuple[str, ...]) -> bool:
    first, _, rest = name.partition(".")
    return fnmatch.fnmatchcase(first, part) and any(fnmatch.fnmatchcase(rest, one) for one in patterns)
