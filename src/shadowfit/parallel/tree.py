"""Sums whose digits do not depend on who adds what: over a fixed binary tree of the places.

The node (l, i) is the sum of the places from ``i·2ˡ`` to before ``(i + 1)·2ˡ``, and that of its two halves; where the
second half lies beyond the last place, it is the first. Whoever has some places in a row adds up the nodes that lie
within them (``begun``), at most two of each level are left, and the rest is added where these meet (``ended``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Node = tuple[int, int]


def begun(values: Sequence[Any], first: int = 0) -> dict[Node, Any]:
    """The largest nodes within places in a row, of which the first one is given."""
    nodes: dict[Node, Any] = {}
    level, alone = 0, {first + place: value for place, value in enumerate(values)}
    while alone:
        above = {}
        for place in sorted(alone):
            if place % 2 == 0 and place + 1 in alone:
                above[place // 2] = alone.pop(place) + alone.pop(place + 1)
        nodes |= {(level, place): value for place, value in alone.items()}
        level, alone = level + 1, above
    return nodes


def ended(nodes: Mapping[Node, Any], count: int) -> Any:
    """The sum of all places, from nodes that cover each of them once."""
    left, level, width = dict(nodes), 0, count
    while width > 1:
        level, width = level + 1, -(-width // 2)
        for place in range(width):
            if (level, place) not in left and (level - 1, 2 * place) in left:
                half, other = left.pop((level - 1, 2 * place)), left.pop((level - 1, 2 * place + 1), None)
                left[level, place] = half if other is None else half + other
    return left[level, 0]
