"""A mechanism taken apart into links: the kinds of code they need, and where the numbers of each one are.

All numbers of a mechanism lie in one vector. A mechanism whose numbers are their own places in it, taken apart in the
same way, tells for every link which numbers it has, and which of them are parameters.
"""

from __future__ import annotations

import copy
import functools
from typing import Any, Literal

import numpy as np

from shadowfit.dynamics.tree import Link, Tree
from shadowfit.estimation.residuals.parameter_layout import Layout
from shadowfit.estimation.residuals.recursion.elements import BASE, BODY, Kind
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.leaves import Leaf, Parts, read
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.surroundings import Input
from shadowfit.records import record
from shadowfit.trees import flatten, leaves_of, structure_of, unflatten

Role = Literal["link", "body", "axis"]
_GEOMETRY = ("kind", "parent_point", "child_point", "parent_rotation", "child_rotation")
_RIGID = ("compliance", "damping")
"""Fields of a joint that place its bodies, and those that rigid joints do not have."""


@record(frozen=True)
class Element:
    """One role of one link."""

    kind: Kind
    places: tuple[np.ndarray, ...]
    """Where each array of its numbers is found in the vector of all."""
    inputs: np.ndarray
    """Inputs of the mechanism that act on it."""
    columns: np.ndarray
    """For each increment of its kind's free numbers, the parameter that it is; −1: none."""

    @functools.cached_property
    def row(self) -> np.ndarray:
        """All these places, one after another."""
        return np.concatenate([place.ravel() for place in self.places])

    def numbers(self, flat: np.ndarray) -> list[np.ndarray]:
        """Its numbers, of all."""
        return [flat[place] for place in self.places]


def take_apart(
    layout: Layout, tree: Tree, mechanism: Mechanism, role: Role, slopes: bool = True
) -> list[Element | None]:
    """The elements of all links in one role, in the order of the tree; None for a link that has none.

    Without ``slopes`` nothing is differentiated, and no number counts as a parameter.
    """
    places = _numbered(mechanism)
    columns = _parameters(layout, places) if slopes else {}
    parts = [_part(places, link, role) for link in tree.links]
    free: dict[Any, dict[str, None]] = {}
    for part in parts:
        if part is not None:
            known = part.mechanism.leaves()
            names = [n for n in _names(known, part.mechanism, role) if _place(part.mechanism, known[n]) in columns]
            free.setdefault(structure_of(part.mechanism), {}).update(dict.fromkeys(names))
    rubs = has_dry_friction(mechanism)
    elements: list[Element | None] = []
    for part, link in zip(parts, tree.links, strict=True):
        if part is None:
            elements.append(None)
            continue
        structure, known = structure_of(part.mechanism), part.mechanism.leaves()
        wanted = tuple(name for name in known if name in free[structure])
        single = Link(BODY, BASE, None if link.joint is None else 0, link.forward, link.freedom)
        kind = Kind(structure, single, wanted, rubs, slopes)
        element_columns = [
            column
            for name, size in zip(wanted, kind.sizes, strict=True)
            for column in columns.get(_place(part.mechanism, known[name]), [-1] * size)
        ]
        indices = tuple(np.asarray(leaf, int) for leaf in leaves_of(part.mechanism))
        elements.append(Element(kind, indices, np.array(part.inputs, int), np.array(element_columns, int)))
    return elements


def has_dry_friction(mechanism: Mechanism) -> bool:
    """Whether anything rubs, of which mobilities have to be known."""
    return len(mechanism.shafts) > 0 or any(joint.friction is not None for joint in mechanism.joints.values)


def all_numbers(mechanism: Mechanism) -> np.ndarray:
    """The vector of all numbers of a mechanism."""
    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in leaves_of(mechanism)])


def parameter_places(layout: Layout, mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Where the free numbers, and the free rotations, are in the vector of all numbers."""
    places, known = _numbered(mechanism), mechanism.leaves()
    numbers = np.array([read(places, known[name]) for name in layout.numbers], int)
    turns = np.array([read(places, known[name]) for name in layout.turns], int).reshape(-1, 4)
    return numbers, turns


def _numbered(mechanism: Mechanism) -> Mechanism:
    """The mechanism with the place of each number in the vector of all instead of its value."""
    leaves, structure = flatten(mechanism)
    starts = np.cumsum([0, *(int(np.size(leaf)) for leaf in leaves)])
    numbered = [start + np.arange(np.size(x)).reshape(np.shape(x)) for start, x in zip(starts, leaves, strict=False)]
    return unflatten(structure, numbered)


def _parameters(layout: Layout, places: Mechanism) -> dict[int, list[int]]:
    """Columns of each parameter, by the place of its (first) number."""
    count, known = len(layout.numbers), places.leaves()
    columns = {_place(places, known[name]): [layout.order[i]] for i, name in enumerate(layout.numbers)}
    for i, name in enumerate(layout.turns):
        columns[_place(places, known[name])] = list(layout.order[count + 3 * i : count + 3 * i + 3])
    return columns


def _place(places: Mechanism, leaf: Leaf) -> int:
    return int(np.ravel(read(places, leaf))[0])


def _names(known: dict[str, Leaf], part: Mechanism, role: Role) -> list[str]:
    """Numbers of a link's own mechanism that matter in a role."""
    chosen = []
    for name, leaf in known.items():
        group, field = leaf.path[0], leaf.path[3] if len(leaf.path) > 3 else None
        if role == "body":
            wanted = group in ("bodies", "forces", "gravity")
        elif group == "joints":
            wanted = field in _GEOMETRY if role == "link" else field not in _RIGID
        else:
            # Centres of mass: a floating body moves by its own, and speeds along an axis are those between two.
            wanted = group == "bodies" and field == "com" and (role == "axis" or len(part.joints) == 0)
        if wanted:
            chosen.append(name)
    return chosen


@record(frozen=True)
class _Part:
    """The mechanism of one link in one role, and the inputs that act on it."""

    mechanism: Mechanism
    inputs: tuple[int, ...]


def _part(whole: Mechanism, link: Link, role: Role) -> _Part | None:
    """Take out one link; its names do not tell which one it is."""
    bodies = {"body": whole.bodies.values[link.body]}
    joints, forces = {}, {}
    inputs: list[int] = []
    if role == "body":
        name = whole.bodies.names[link.body]
        acting = [force for force in whole.forces.values if force.body == name]
        for i, force in enumerate(acting):
            forces[f"force{i}"] = _changed(force, body="body", input=_input(whole, force.input, inputs))
    elif link.joint is not None:
        grounded = link.base == len(whole.bodies)
        if not grounded:
            bodies["base"] = whole.bodies.values[link.base]
        joint = whole.joints.values[link.joint]
        if role == "axis" and joint.kind.axis_kind is None:
            return None
        laws = {
            f"law{i}": _changed(law, **{name: _input(whole, getattr(law, name), inputs) for name in law.channels})
            for i, law in enumerate(joint.laws.values)
        }
        ends = (WORLD if grounded else "base", "body")
        parent, child = ends if link.forward else ends[::-1]
        joints["joint"] = _changed(joint, parent=parent, child=child, laws=Parts(laws))
    elif role == "axis":
        return None
    alone = _changed(
        whole,
        bodies=Parts(bodies),
        joints=Parts(joints),
        contacts=Parts(),
        forces=Parts(forces),
        shafts=Parts(),
        sensors=Parts(),
        inputs=Parts({f"u{i}": Input() for i in range(len(inputs))}),
        name="link",
    )
    return _Part(alone, tuple(inputs))


def _input(whole: Mechanism, source: str | None, inputs: list[int]) -> str | None:
    """The name of an input among those of a part's link."""
    if source is None:
        return None
    place = whole.inputs.index(source)
    if place not in inputs:
        inputs.append(place)
    return f"u{inputs.index(place)}"


def _changed(part: Any, **fields: Any) -> Any:
    """A part with other fields; not built anew, which would check it."""
    changed = copy.copy(part)
    for name, value in fields.items():
        object.__setattr__(changed, name, value)
    return changed
