"""Bodies some of whose moments of inertia are free, kept possible at every step of a fit.

A body's second moments S are linear in its moments of inertia (:mod:`mechanism.second_moments`), so that what a body
can have is a convex cone for any subset of the entries that is free, and the step of the parameters stays in it
(:mod:`linear.cone_step`). Masses have bounds of their own, and a centre of mass may be anywhere.

Entries that are held count as known, and so limit the free ones, unless they *follow*: where the motion cannot see them
(the body turns about one axis only, and so nothing but the moment about that axis matters), or where they leave the
free ones no room: of a thin rod with one of its two large moments held, the other could not change at all. They are
then no part of the cone. They keep the model's values as long as a body can have these beside the estimated ones, and
otherwise take the nearest that it can; where the motion sees them the fit goes on with these (:mod:`fit`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.estimation.linear.cone_step import Cones, cone_step
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.second_moments import BASIS, ENTRIES, inertia_matrix, second_moments, thickness
from shadowfit.mechanism.turning import turning_axes
from shadowfit.records import record

# Second moments keep this distance from zero, relative to the trace of J; other programs check without tolerance.
MARGIN = 1e-10
# Held entries leave room if free ones could be larger and smaller by this factor.
ROOM = 1.5
# A body whose smallest second moment is below this, relative to the trace of J, sits on the edge.
EDGE = 1e-6
# Price of slack, in squared typical sizes: more than any step into what a body can have is worth.
PRICE = 1e6


@record(frozen=True)
class Solid:
    """A body with free moments of inertia, as one recording sees it."""

    body: str
    recording: int
    entries: tuple[float, ...]
    """xx, yy, zz, xy, xz, yz at the start [kg m²]."""
    places: tuple[int | None, ...]
    """Place of each entry among the increments of all parameters; None for one that is held."""
    follows: bool
    """Whether held entries give way."""
    hidden: bool
    """Whether the motion cannot see the held entries."""

    @property
    def held(self) -> tuple[int, ...]:
        """Entries that are not free."""
        return tuple(i for i, place in enumerate(self.places) if place is None)

    def at(self, flat: Float[np.ndarray, " p"]) -> Float[np.ndarray, "6"]:
        """The entries for the values behind all increments."""
        pairs = zip(self.entries, self.places, strict=True)
        return np.array([held if place is None else flat[place] for held, place in pairs])


def solids(mechanism: Mechanism, places: Sequence[dict[str, int]], flat: Float[np.ndarray, " p"]) -> tuple[Solid, ...]:
    """Bodies with free moments, for the place of each parameter's increment by name in each recording."""
    listed: list[Solid] = []
    axes = turning_axes(mechanism)
    for body in mechanism.bodies:
        names = [f"{body}.inertia.{entry}" for entry in ENTRIES]
        given = tuple(float(mechanism.get(name)) for name in names)
        for recording, where_named in enumerate(places):
            where = tuple(where_named.get(name) for name in names)
            if all(place is None for place in where) or any(one.body == body and one.places == where for one in listed):
                continue
            hidden = axes[body] is not None and None in where[:3]
            solid = Solid(body, recording, given, where, hidden, hidden)
            follows = hidden or (None in where and not _has_room(solid, flat))
            listed.append(dataclasses.replace(solid, follows=follows))
    return tuple(listed)


def _has_room(solid: Solid, flat: Float[np.ndarray, " p"]) -> bool:
    """Whether the free entries could change beside those that are held."""
    free = np.array([place is not None for place in solid.places])
    sizes = [np.where(free, factor, 1.0) * solid.at(flat) for factor in (1.0 / ROOM, 1.0, ROOM)]
    return all(thickness(inertia_matrix(entries)) >= -MARGIN for entries in sizes)


def cones(listed: Sequence[Solid], flat: Float[np.ndarray, " p"]) -> Cones:
    """What the step from some values must stay in."""
    kept = [solid for solid in listed if not solid.follows]
    entries = np.array([solid.at(flat) for solid in kept]).reshape(-1, 6)
    places = [[-1 if place is None else place for place in solid.places] for solid in kept]
    return entry_cones(entries, np.array(places, int).reshape(-1, 6))


def entry_cones(entries: Float[np.ndarray, "b 6"], places: Int[np.ndarray, "b 6"]) -> Cones:
    """Cones of bodies with these entries: second moments and inertias; entries at place −1 are held."""
    matrices = inertia_matrix(entries)
    free = (places >= 0)[:, :, None, None]
    offset = np.concatenate([second_moments(matrices, MARGIN), matrices])
    slopes = np.concatenate([free * second_moments(BASIS, MARGIN), free * BASIS[None]])
    return Cones(offset, np.tile(np.maximum(places, 0), (2, 1)), slopes)


def step_inside(
    cones: Cones,
    scale: Float[np.ndarray, " p"],
    lower: Float[np.ndarray, " p"],
    upper: Float[np.ndarray, " p"],
) -> Float[np.ndarray, " p"] | None:
    """The smallest step (in units of ``scale``) into all cones within bounds on it; None if there is none.

    With a slack t that widens all cones alike, ``C + t tr(C) 1``, any values are inside for t large enough. A price on
    it that is larger than any gain leaves none of it, if that can be. From there the nearest step is found.
    """
    size = len(scale)
    wide = np.abs(np.trace(cones.offset, axis1=1, axis2=2))[:, None, None] * np.eye(3)
    slack = 2.0 * max(float(-np.min(cones.room(np.zeros(size)))), 0.0) + 1.0
    widened = Cones(
        cones.offset + slack * wide,
        np.concatenate([cones.places, np.full((len(cones), 1), size)], axis=1),
        np.concatenate([cones.slopes, wide[:, None]], axis=1),
    )
    bounds = np.append(lower, -slack), np.append(upper, np.inf)
    gradient = np.append(np.zeros(size), PRICE)
    into = cone_step(np.diag(np.append(scale**-2.0, 1.0)), gradient, bounds, widened)
    first = into.step[:size]
    if not into.ok or not cones.contain(first):
        return None
    inside = dataclasses.replace(cones, offset=cones.at(first))
    back = cone_step(np.diag(scale**-2.0), first / scale**2, (lower - first, upper - first), inside)
    return first + back.step


def with_entries(solid: Solid, numbers: Mapping[str, float]) -> Solid:
    """The same body with other values of entries that are held."""
    names = [f"{solid.body}.inertia.{entry}" for entry in ENTRIES]
    entries = tuple(numbers.get(name, value) for name, value in zip(names, solid.entries, strict=True))
    return dataclasses.replace(solid, entries=entries)


def followers(solid: Solid, flat: Float[np.ndarray, " p"]) -> dict[str, float]:
    """New values of the held entries of a body that must give way, by name."""
    entries = solid.at(flat)
    if not solid.follows or thickness(inertia_matrix(entries)) >= 0.0:
        return {}
    unit, held = np.max(np.abs(entries)), list(solid.held)
    places = np.full(6, -1)
    places[held] = np.arange(len(held))
    lower = np.where(np.array(held) < 3, -entries[held] / unit, -np.inf)
    inside = entry_cones(entries[None] / unit, places[None])
    step = step_inside(inside, np.ones(len(held)), lower, np.full(len(held), np.inf))
    if step is None:
        return {}
    changed = zip(held, entries[held] + unit * step, strict=True)
    return {f"{solid.body}.inertia.{ENTRIES[entry]}": float(value) for entry, value in changed}


def on_edge(listed: Sequence[Solid], flat: Float[np.ndarray, " p"]) -> tuple[str, ...]:
    """Names of the bodies that sit on the edge of what a body can have."""
    names = [solid.body for solid in listed if not solid.follows and thickness(inertia_matrix(solid.at(flat))) < EDGE]
    return tuple(dict.fromkeys(names))
