"""A Python module with machines and the code that puts them into a framework."""

from __future__ import annotations

import pprint
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.models.frameworks.dialects import Dialect
from shadowfit.models.frameworks.terms import Terms, columns
from shadowfit.records import record

# Of lines of numbers.
WIDTH = 116


@record(frozen=True)
class Module:
    """A module's text, and what it could not hold."""

    text: str
    homeless: Mapping[str, Any]


def module(dialect: Dialect, calibrated: Terms, drawn: Sequence[Terms], level: float, title: str) -> Module:
    """The module of a framework.

    Args:
        dialect: the framework.
        calibrated: the machine that was found.
        drawn: possible ones: those that the framework is to have, or whose ranges are to be drawn from.
        level: part of the machines within the ranges.
        title: what the module says of where it comes from.
    """
    if dialect.ranges:
        links, joints = _ranges(calibrated, drawn, level)
        what = f"{100.0 * level:.6g} % of possible machines are within (least, calibrated, greatest), each number alone"
    else:
        links, joints = columns(drawn or [calibrated])
        what = f"{len(drawn)} possible machines" if drawn else "The calibrated machine"
    held = [{part: _held(words, dialect) for part, words in table.items()} for table in (links, joints)]
    links, joints = ({part: words for part, words in table.items() if words} for table in held)
    parts = [
        f'"""{title}\n\n{what}. Written for {dialect.written_for}.\n"""\n',
        f"COUNT = {max(len(drawn), 1)}" if not dialect.ranges else "",
        f"LINKS = {pprint.pformat(links, width=WIDTH, sort_dicts=False)}",
        f"JOINTS = {pprint.pformat(joints, width=WIDTH, sort_dicts=False)}\n",
        dialect.code,
    ]
    return Module("\n".join(part for part in parts if part), _homeless(calibrated, dialect))


def _held(words: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    return {word: value for word, value in words.items() if word in dialect.holds}


def _homeless(machine: Terms, dialect: Dialect) -> dict[str, Any]:
    """Numbers of a machine that a framework has no place for."""
    missing: dict[str, Any] = {
        f"{joint}.{word}": value
        for joint, words in machine.joints.items()
        for word, value in words.items()
        if word not in dialect.holds
    }
    if "inertia" not in dialect.holds:
        missing |= {f"{link}.inertia": one.inertia for link, one in machine.links.items()}
        missing |= {f"{link}.com": one.com for link, one in machine.links.items()}
    return {**machine.others, **missing}


def _ranges(
    calibrated: Terms, drawn: Sequence[Terms], level: float
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Least, calibrated and greatest value of each number; of links their mass."""
    links, joints = columns(drawn)
    ends = (0.5 - 0.5 * level, 0.5 + 0.5 * level)

    def around(value: float, values: Sequence[float]) -> tuple[float, float, float]:
        low, high = np.quantile(values, ends).tolist()
        return min(low, value), value, max(high, value)

    masses = {link: {"mass": around(calibrated.links[link].mass, words["mass"])} for link, words in links.items()}
    numbers = {
        joint: {word: around(calibrated.joints[joint][word], values) for word, values in words.items()}
        for joint, words in joints.items()
    }
    return masses, numbers
