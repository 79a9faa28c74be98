"""The links of a tree over time: where they are, what their bodies miss, what joints carry, what their axes give.

Code is made once for each *kind* of link (:mod:`elements`) and run over time for each link, outwards for poses. What
is found of the links is put together as impulses alone (:mod:`impulses`) or with all derivatives (:mod:`rows`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.residuals.parameter_layout import Layout, Values
from shadowfit.estimation.residuals.recursion import elements
from shadowfit.estimation.residuals.recursion.elements import TIMES, Kind
from shadowfit.estimation.residuals.recursion.kinds import (
    Element,
    Role,
    all_numbers,
    has_dry_friction,
    parameter_places,
    take_apart,
)
from shadowfit.estimation.residuals.recursion.lanes import POSE, RECORD
from shadowfit.estimation.residuals.recursion.sweep import library, scratch_size
from shadowfit.geometry import Pose
from shadowfit.kernels import Kernel, OverTime, Workspace, is_own, over_time, windowed
from shadowfit.kernels.loops import LANES
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record

Arrays = list[np.ndarray]
_NO_SETTINGS: Arrays = []
_STANDING = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@record(frozen=True)
class Records:
    """The tree as integers (:mod:`lanes`)."""

    links: np.ndarray
    lists: np.ndarray
    places: np.ndarray
    """Column of each number of geometry."""
    width: int
    """Columns of the table, those of inputs behind the residual not counted."""
    extra: int
    """Further columns: inputs whose derivatives are wanted, and one for what is not."""


@record(frozen=True)
class Outwards:
    """The first part of all work over some steps."""

    flat: np.ndarray
    """All numbers of the mechanism."""
    motions: np.ndarray
    given: np.ndarray
    """Values of the inputs."""
    links: Arrays
    bodies: Arrays
    steps: int
    """Filled up to whole vectors."""
    timestep: float


class TreeLinks:
    """The links of one tree with free parameters; ``slopes``: with the derivatives of all that they give."""

    def __init__(self, layout: Layout, tree: Tree, mechanism: Mechanism, *, slopes: bool) -> None:
        self.layout, self.tree, self.mechanism = layout, tree, mechanism
        self.links, self.bodies, self.axes = (take_apart(layout, tree, mechanism, role, slopes) for role in _ROLES)
        self.rubs = has_dry_friction(mechanism)
        self.own = is_own(mechanism)
        self._flat = all_numbers(mechanism)
        self._where = parameter_places(layout, mechanism)
        self._made: dict[tuple[Role, Kind], OverTime] = {}
        self._lock = threading.Lock()
        self._of_thread = threading.local()

    def prepare(self) -> None:
        """Have all code made in the background."""
        library.prepare()
        for role, listed in zip(_ROLES, (self.links, self.bodies, self.axes), strict=True):
            for element in listed:
                if element is not None:
                    self._kernel(role, element)

    def outwards(self, values: Values, poses: Pose, command: Array, timestep: float) -> Outwards:
        """All links where they are, and what their bodies miss."""
        steps = len(poses.position) - 2
        whole = -(-steps // LANES) * LANES
        flat = self._flat.copy()
        flat[self._where[0]], flat[self._where[1]] = values.numbers, values.turns
        motions = padded(np.concatenate([poses.position, poses.orientation], axis=2), whole + 2)
        given = padded(command, whole)
        links = self._place(flat, motions)
        bodies = []
        for element, frames in zip(self.bodies, links, strict=True):
            assert element is not None
            varying = [windowed(frames[:, :7], TIMES, whole), given[:, element.inputs]]
            bodies.append(self._run("body", element, flat, [np.asarray(timestep)], varying))
        return Outwards(flat, motions, given, links, bodies, whole, timestep)

    def _place(self, flat: np.ndarray, motions: np.ndarray) -> Arrays:
        """Outwards: frames of all links, with the twists of their coordinates."""
        frames: Arrays = []
        for place, (element, link) in enumerate(zip(self.links, self.tree.links, strict=True)):
            assert element is not None
            frames.append(
                self._run("link", element, flat, [], [self._base(frames, place, motions), motions[:, link.body]])
            )
        return frames

    def _base(self, links: Sequence[np.ndarray], place: int, motions: np.ndarray) -> np.ndarray:
        """Frames of what a link hangs on; the world stands."""
        before = int(self.records.links[place, RECORD.index("base")])
        return np.broadcast_to(_STANDING, (len(motions), 7)) if before < 0 else links[before][:, :7]

    def carried(self, at: Outwards) -> tuple[Float[np.ndarray, "links steps 6"], Float[np.ndarray, "d steps"]]:
        """Wrench of each joint, mobility of each coordinate; zeros where there is no dry friction to need them."""
        count, size, steps = len(at.links), self.tree.size, at.steps
        wrenches, mobility = np.zeros((count, steps, 6)), np.zeros((size, steps))
        if not self.rubs:
            return wrenches, mobility
        scratch = np.empty(scratch_size(count, size, len(self.records.places)))
        tables = addresses([at.links, at.bodies, at.links])
        library("carried", self.records.links, tables, scratch, wrenches, mobility, steps // LANES, count, size, steps)
        return wrenches, mobility

    def along_axes(
        self,
        at: Outwards,
        wrenches: Float[np.ndarray, "links steps 6"],
        widths: Float[np.ndarray, "steps a"],
    ) -> list[np.ndarray | None]:
        """Inwards: laws and friction of each link's axis, which carries a wrench; None for links without one."""
        axes: list[np.ndarray | None] = []
        # A link without coordinates has no axis, and may stand behind the last of them.
        first = np.minimum(self.records.links[:, RECORD.index("first")], self.tree.size - 1)
        carried = np.ones((len(first), at.steps, 7))
        carried[:, :, :6] = wrenches
        if self.rubs:
            carried[:, :, 6] = padded(widths, at.steps).T[first]
        for place, (element, link) in enumerate(zip(self.axes, self.tree.links, strict=True)):
            if element is None:
                axes.append(None)
                continue
            frames = [self._base(at.links, place, at.motions), at.motions[:, link.body]]
            varying = [*(windowed(x, TIMES, at.steps) for x in frames), at.given[:, element.inputs], carried[place]]
            axes.append(self._run("axis", element, at.flat, [np.asarray(at.timestep)], varying))
        return axes

    @functools.cached_property
    def records(self) -> Records:
        """The tree as integers."""
        tree, count = self.tree, len(self.tree.links)
        order = {link.body: place for place, link in enumerate(tree.links)}
        starts = np.cumsum([0, *(len(link.freedom) for link in tree.links)])
        geometry = [[] if element is None else element.columns.tolist() for element in self.links]
        first_place = np.cumsum([0, *(len(columns_here) for columns_here in geometry)])
        driven = len(self.mechanism.inputs) if self.layout.inputs else 0
        start = TIMES * tree.size
        records = np.zeros((count, len(RECORD)), np.int64)
        lists: list[int] = []
        for place, link in enumerate(tree.links):
            within = _ancestors(tree.links, order, place)
            support = [c for other in within for c in range(starts[other], starts[other + 1])]
            above = [g for other in within for g in range(first_place[other], first_place[other + 1])]
            body, axis = self.bodies[place], self.axes[place]
            assert body is not None
            body_pairs = _pairs(body, 6 * TIMES, start, driven, self.layout.size)
            axis_pairs = [] if axis is None else _pairs(axis, 0, start, driven, self.layout.size)
            values = {
                "base": order.get(link.base, -1),
                "first": starts[place],
                "freedom": len(link.freedom),
                "first_place": first_place[place],
                "places": len(geometry[place]),
                "has_axis": axis is not None,
                "common": 0 if axis is None or axis.kind.grounded else 6 * TIMES,
                "wrench": 6 if axis is not None and elements.rubs(axis.kind) else 0,
                "body_width": body.kind.slopes * (6 * TIMES + sum(body.kind.sizes) + len(body.inputs)),
                "shaft": _shaft_place(len(link.freedom), len(geometry[place]), body.kind.slopes),
            }
            for name, many, entries, each in (
                ("support", "supports", support, 1),
                ("above", "aboves", above, 1),
                ("body_pairs", "body_count", body_pairs, 2),
                ("axis_pairs", "axis_count", axis_pairs, 2),
            ):
                values[name], values[many] = len(lists), len(entries) // each
                lists.extend(entries)
            records[place] = [values[name] for name in RECORD]
        # A number that is no parameter in this link, though in another of its kind, goes to a column behind all others.
        aside = start + self.layout.size + driven
        places = [start + column if column >= 0 else aside for columns_here in geometry for column in columns_here]
        extra = driven + (aside in places)
        columns = start + self.layout.size + 1
        return Records(records, np.array(lists, np.int64), np.array(places, np.int64), columns, extra)

    def _run(self, role: Role, element: Element, flat: np.ndarray, constants: Arrays, varying: Arrays) -> np.ndarray:
        """Numbers of an element over time; they lie in memory that this thread uses again at its next call."""
        kept = self._of_thread.__dict__.setdefault("kept", {})
        if id(element) not in kept:
            kept[id(element)] = self._kernel(role, element), Workspace()
        made, workspace = kept[id(element)]
        # Machine code sees all constants as one row of numbers.
        numbers = [flat[element.row]] if isinstance(made, Kernel) else element.numbers(flat)
        return made(_NO_SETTINGS, [*numbers, *constants], varying, None, workspace)[0]

    def _kernel(self, role: Role, element: Element) -> OverTime:
        kind, inputs = element.kind, len(element.inputs)
        with self._lock:
            if (role, kind) not in self._made:
                function, constants, varying = _TRACED[role]
                numbers = [np.empty(place.shape) for place in element.places]
                shapes = [np.empty(inputs if shape is None else shape) for shape in varying]
                key = (function, kind) if self.own else None
                one = functools.partial(function, kind, len(numbers))
                given = [*numbers, *(np.empty(()) for _ in range(constants))]
                self._made[role, kind] = over_time(one, [], given, shapes, key)
            return self._made[role, kind]


_ROLES: tuple[Role, ...] = ("link", "body", "axis")


def _link(kind: Kind, count: int, _: Arrays, constants: Arrays, varying: Arrays) -> Any:
    return elements.place_link(kind, constants[:count], *varying)


def _body(kind: Kind, count: int, _: Arrays, constants: Arrays, varying: Arrays) -> Any:
    return elements.body_wrench(kind, constants[:count], constants[count], *varying)


def _axis(kind: Kind, count: int, _: Arrays, constants: Arrays, varying: Arrays) -> Any:
    return elements.axis_impulse(kind, constants[:count], constants[count], *varying)


_TRACED: dict[Role, tuple[Callable[..., Any], int, tuple[tuple[int, ...] | None, ...]]] = {
    "link": (_link, 0, ((7,), (7,))),
    "body": (_body, 1, ((TIMES, 7), None)),
    "axis": (_axis, 1, ((TIMES, 7), (TIMES, 7), None, (7,))),
}
"""Function, constants besides numbers, and shapes of what varies over time (None: the element's inputs)."""


def _pairs(element: Element, first: int, start: int, driven: int, parameters: int) -> list[int]:
    """(Column of the element's derivatives, column of the table) of its parameters, and of its inputs if wanted."""
    pairs = [(first + i, start + column) for i, column in enumerate(element.columns.tolist()) if column >= 0]
    behind = first + len(element.columns)
    if driven:
        pairs += [(behind + i, start + parameters + which) for i, which in enumerate(element.inputs)]
    return [entry for pair in pairs for entry in pair]


def _shaft_place(freedom: int, places: int, slopes: bool) -> int:
    """Where a shaft's inertia stands among the numbers of a link: behind twists and, with slopes, their changes."""
    causes = freedom + places
    return POSE + (6 * causes + 6 * freedom * causes if slopes else 6 * freedom)


def _ancestors(links: Sequence[Any], order: dict[int, int], place: int) -> list[int]:
    """Links that one hangs on."""
    ancestors: list[int] = []
    before = order.get(links[place].base)
    while before is not None:
        ancestors.append(before)
        before = order.get(links[before].base)
    return ancestors


def addresses(groups: Sequence[Sequence[np.ndarray | None]]) -> np.ndarray:
    """Addresses and strides of what the elements gave, for each link; nothing is 0."""
    entries = [
        [entry for table in row for entry in ((0, 0) if table is None else (table.ctypes.data, table.strides[0] // 8))]
        for row in zip(*groups, strict=True)
    ]
    return np.array(entries, np.int64)


def padded(values: Array, length: int) -> np.ndarray:
    """As many times, the last one repeated."""
    values, missing = np.asarray(values), length - len(values)
    return values if missing <= 0 else np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
