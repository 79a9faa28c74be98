"""Sweeps over a tree of links, as machine code: missing impulses of all joints and their derivatives in one pass.

All vectors are spatial ones about the world's origin, so that nothing has to be carried from link to link: twists
``(v, ω)`` and wrenches ``(f, n)``. The wrench F_b that body b misses depends on its own poses at the three times t of a
step alone, by matrices ``D_b^t = ∂F_b/∂(twist of its pose)``; a coordinate i moves all bodies behind it by ``S_i^t``.
With sums over what hangs on a link, ``W = Σ F_b`` and ``C^t = Σ D_b^t``, the missing impulse of coordinate j is

    τ_j = S_j · W_j − l_j,        ∂W_j/∂q_i^t = C^t S_i^t      (C of i or j, of the one further out)

and a rigid motion of all that j hangs on turns S_j: ``(S_i × S_j) · W_j = x_j · S_i``, with ``x = (ω × f, v × f + ω ×
n)``. The impulse l_j of laws and friction depends on the wrench that the joint carries, on a common motion of its two
bodies (``L^t``) and on its own coordinate. With ``E_j = S_j − ∂l_j/∂W_j`` this leaves two scalar products for each pair
of a coordinate and one that it hangs on, and one for each parameter of a body and coordinate that carries it. Numbers
that shape the tree itself (places of joints) move what is behind them, as coordinates do.

Four steps are done at a time, one in each lane of a vector register. The tree is data, the code is the same for all.
"""

from __future__ import annotations

from typing import Any

from shadowfit.estimation.residuals.recursion import carried
from shadowfit.estimation.residuals.recursion.carried import Carried
from shadowfit.estimation.residuals.recursion.lanes import POSE, TIMES, Sweep
from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Library

PER_LINK, PER_COORDINATE = 36 * TIMES + 6, 6 * (4 * TIMES + 1)
"""Vectors of working space: C and W of a link; S, L, E of a coordinate, and what its own pass makes of C."""


def scratch_size(links: int, coordinates: int, places: int) -> int:
    """Doubles of working space of both sweeps."""
    here = links * PER_LINK + coordinates * PER_COORDINATE + places * 6 * TIMES
    return LANES * max(here, links * carried.PER_LINK + coordinates * carried.PER_COORDINATE)


def write(module: Module) -> None:
    """Both sweeps."""
    Rows(module).write()
    Carried(module).write()


class Rows(Sweep):
    """Missing impulses with their derivatives, added to a table ``[3 × coordinates | parameters | residual]``."""

    signature = Signature("rows", "*links *tables *lists *places *scratch *out blocks count size width")

    def write(self) -> None:
        f = self.f
        self.matrices = f.scratch
        self.wrenches = self.kept(self.matrices, f.product(f.count, 36 * TIMES))
        self.coordinates = self.kept(self.wrenches, f.product(f.count, 6))
        self.moved = self.kept(self.coordinates, f.product(f.size, PER_COORDINATE))
        with f.loop(0, f.blocks) as block:
            self.time = f.product(block.index, LANES)
            stride = f.product(f.size, f.width)
            self.out = f.at(f.out, f.product(self.time, stride)), stride
            with f.loop(0, f.count) as link:
                self._take_in(link.index)
            self.hand_inwards([(self.matrices, 36 * TIMES), (self.wrenches, 6)])
            with f.loop(0, f.count) as link:
                self._link(link.index)
        f.give()

    def coordinate(self, index: Any) -> Any:
        """Working space of a coordinate: S (18), L (18), E (6), u (18), z (18)."""
        return self.kept(self.coordinates, self.f.product(index, PER_COORDINATE))

    def add(self, value: Any, row: Any, column: Any, first: bool = False) -> None:
        self.scatter(value, self.out, self.f.sum(self.f.product(row, self.f.width), column), add=not first)

    def _take_in(self, link: Any) -> None:
        """Copy what the elements gave of a link to where four steps lie side by side."""
        f = self.f
        freedom, places = self.of_link(link, "freedom"), self.of_link(link, "places")
        first, first_place = self.of_link(link, "first"), self.of_link(link, "first_place")
        for t in range(TIMES):
            row = self.table(link, "link", f.sum(self.time, t))
            with f.loop(0, freedom) as i:
                target = self.coordinate(f.sum(first, i.index))
                for c in range(6):
                    self.keep(self.gather(row, POSE + c, f.product(i.index, 6)), target, 6 * t + c)
            with f.loop(0, places) as i:
                target = self.kept(self.moved, f.product(f.sum(first_place, i.index), 6 * TIMES))
                for c in range(6):
                    record = self.gather(row, POSE + c, f.product(f.sum(freedom, i.index), 6))
                    self.keep(record, target, 6 * t + c)
        with f.loop(0, freedom) as i:
            record = self.coordinate(f.sum(first, i.index))
            for c in range(6 * TIMES):
                self.keep(self.zero, record, 6 * TIMES + c)
            for c in range(6):
                self.keep(self.read(record, 6 + c), record, 12 * TIMES + c)
        with self.if_true(self.of_link(link, "has_axis")):
            axis, record = self.table(link, "axis", self.time), self.coordinate(first)
            common, wrench = self.of_link(link, "common"), self.of_link(link, "wrench")
            with f.loop(0, common) as entry:
                self.keep(self.gather(axis, 1, entry.index), record, 6 * TIMES, entry.index)
            with f.loop(0, wrench) as entry:
                place = f.sum(1, common, f.product(TIMES, freedom), entry.index)
                changed = self.minus(self.read(record, 12 * TIMES, entry.index), self.gather(axis, place))
                self.keep(changed, record, 12 * TIMES, entry.index)
        body, width = self.table(link, "body", self.time), self.of_link(link, "body_width")
        for r in range(6):
            self.keep(self.gather(body, r), self.wrenches, f.product(link, 6), r)
            for t in range(TIMES):
                for c in range(6):
                    place = f.sum(6 + 6 * t + c, f.product(r, width))
                    self.keep(self.gather(body, place), self.matrices, f.product(link, 36 * TIMES), 36 * t + 6 * r + c)

    def _link(self, link: Any) -> None:
        f = self.f
        first, freedom = self.of_link(link, "first"), self.of_link(link, "freedom")
        with f.loop(0, freedom) as each:
            self._coordinate(link, f.sum(first, each.index), each.index)
        self._geometry(link)
        self._body(link)
        with self.if_true(self.of_link(link, "has_axis")):
            self._axis(link, first)

    def _coordinate(self, link: Any, j: Any, number: Any) -> None:
        """Row and columns of coordinate j, with those of all that it hangs on."""
        f, record = self.f, self.coordinate(j)
        first, freedom = self.of_link(link, "first"), self.of_link(link, "freedom")
        wrench = self.read_all(self.kept(self.wrenches, f.product(link, 6)), 6)
        now = [self.read(record, 6 + c) for c in range(6)]
        self.add(self.dot(now, wrench), j, f.difference(f.width, 1), first=True)
        turned = [
            *self.cross(now[3:], wrench[:3]),
            *map(self.plus, self.cross(now[:3], wrench[:3]), self.cross(now[3:], wrench[3:])),
        ]
        for t in range(TIMES):
            left, right = self._through(link, record, t)
            across = [self.minus(x, self.read(record, 6 * TIMES + 6 * t + c)) for c, x in enumerate(left)]
            if t == 1:
                across = list(map(self.plus, across, turned))
            for c in range(6):
                self.keep(across[c], record, 12 * TIMES + 6 + 6 * t + c)
                self.keep(left[c], record, 18 * TIMES + 6 + 6 * t + c)
            shift = f.product(t, f.size)
            with f.loop(0, freedom) as same:
                i = f.sum(first, same.index)
                value = self.dot(left, [self.read(self.coordinate(i), 6 * t + c) for c in range(6)])
                if t == 1:
                    value = self.dot(self._turned(link, number, same.index), wrench, value)
                self.add(value, j, f.sum(shift, i), first=True)
            begin = self.of_link(link, "support")
            with f.loop(begin, f.sum(begin, self.of_link(link, "supports"))) as above:
                i = self.listed(above.index)
                there = self.coordinate(i)
                value = self.dot(across, [self.read(there, 6 * t + c) for c in range(6)])
                self.add(value, j, f.sum(shift, i), first=True)
                value = self.dot(right, [self.read(there, 12 * TIMES + c) for c in range(6)])
                self.add(value, i, f.sum(shift, j), first=True)
        self._places_of(link, j, number, wrench)

    def _through(self, link: Any, record: Any, t: int) -> tuple[list[Any], list[Any]]:
        """``Cᵀ E`` and ``C S`` of a coordinate at one of the times."""
        matrix = self.kept(self.matrices, self.f.product(link, 36 * TIMES), 36 * t)
        twist = [self.read(record, 6 * t + c) for c in range(6)]
        left: list[Any] = [None] * 6
        right = []
        for r in range(6):
            row = self.read_all(self.kept(matrix, 6 * r), 6)
            right.append(self.dot(row, twist))
            factor = self.read(record, 12 * TIMES + r)
            left = [
                self.times(factor, x) if total is None else self.f.multiply_add(factor, x, total)
                for x, total in zip(row, left, strict=True)
            ]
        return left, right

    def _turned(self, link: Any, number: Any, cause: Any) -> list[Any]:
        """How a coordinate's twist changes with another of its link, or with a number of the link's geometry."""
        f = self.f
        freedom, places = self.of_link(link, "freedom"), self.of_link(link, "places")
        causes = f.sum(freedom, places)
        row = self.table(link, "link", f.sum(self.time, 1))
        begin = f.sum(POSE, f.product(6, causes), f.product(6, f.sum(f.product(number, causes), cause)))
        return [self.gather(row, begin, c) for c in range(6)]

    def _places_of(self, link: Any, j: Any, number: Any, wrench: list[Any]) -> None:
        """Derivatives of coordinate j's impulse by the geometry of its own link and of those further in."""
        f, record = self.f, self.coordinate(j)
        freedom, begin = self.of_link(link, "freedom"), self.of_link(link, "first_place")
        with f.loop(0, self.of_link(link, "places")) as place:
            g = f.sum(begin, place.index)
            value = self.dot(self._turned(link, number, f.sum(freedom, place.index)), wrench)
            self.add(self._over_times(record, 18 * TIMES + 6, g, value), j, self._column(g))
        begin = self.of_link(link, "above")
        with f.loop(begin, f.sum(begin, self.of_link(link, "aboves"))) as above:
            g = self.listed(above.index)
            self.add(self._over_times(record, 12 * TIMES + 6, g, self.zero), j, self._column(g))

    def _over_times(self, record: Any, start: int, g: Any, value: Any) -> Any:
        """Add ``Σ_t u^t · S_g^t``."""
        place = self.kept(self.moved, self.f.product(g, 6 * TIMES))
        with self.f.loop(0, 6 * TIMES, 1, [value]) as c:
            c.carried = [
                self.f.multiply_add(self.read(record, start, c.index), self.read(place, c.index), c.carried[0])
            ]
        return c.carried[0]

    def _column(self, g: Any) -> Any:
        return self.integer(self.f.at(self.f.places, g))

    def _geometry(self, link: Any) -> None:
        """What a link's own geometry does to the coordinates that it hangs on."""
        f, begin = self.f, self.of_link(link, "first_place")
        with f.loop(begin, f.sum(begin, self.of_link(link, "places"))) as g:
            place = self.kept(self.moved, f.product(g.index, 6 * TIMES))
            total = [self.zero] * 6
            for t in range(TIMES):
                twist = self.read_all(self.kept(place, 6 * t), 6)
                matrix = self.kept(self.matrices, f.product(link, 36 * TIMES), 36 * t)
                total = [self.dot(self.read_all(self.kept(matrix, 6 * r), 6), twist, total[r]) for r in range(6)]
            self._on_support(link, total, self._column(g.index))

    def _on_support(self, link: Any, wrench: list[Any], column: Any) -> None:
        """A change of a link's wrench, felt by all coordinates further in."""
        f, begin = self.f, self.of_link(link, "support")
        with f.loop(begin, f.sum(begin, self.of_link(link, "supports"))) as above:
            i = self.listed(above.index)
            self.add(self._felt(i, wrench), i, column)

    def _felt(self, i: Any, wrench: list[Any]) -> Any:
        there = self.coordinate(i)
        return self.dot([self.read(there, 12 * TIMES + c) for c in range(6)], wrench)

    def _body(self, link: Any) -> None:
        """Columns of the parameters of a link's body, which all coordinates that carry it feel."""
        f, begin = self.f, self.of_link(link, "body_pairs")
        body, width = self.table(link, "body", self.time), self.of_link(link, "body_width")
        first, freedom = self.of_link(link, "first"), self.of_link(link, "freedom")
        with f.loop(0, self.of_link(link, "body_count")) as pair:
            place = f.sum(begin, f.product(2, pair.index))
            local, column = self.listed(place), self.listed(f.sum(place, 1))
            wrench = [self.gather(body, f.sum(6, local), f.product(r, width)) for r in range(6)]
            self._on_support(link, wrench, column)
            with f.loop(first, f.sum(first, freedom)) as each:
                self.add(self._felt(each.index, wrench), each.index, column)

    def _axis(self, link: Any, j: Any) -> None:
        """Take off the impulse along the axis, with its derivatives by the coordinate and parameters of its own."""
        f = self.f
        axis, freedom = self.table(link, "axis", self.time), self.of_link(link, "freedom")
        common, wrench = self.of_link(link, "common"), self.of_link(link, "wrench")
        self.add(self.negative(self.gather(axis, 0)), j, f.difference(f.width, 1))
        for t in range(TIMES):
            with f.loop(0, freedom) as same:
                value = self.gather(axis, f.sum(1, common, f.product(t, freedom), same.index))
                self.add(self.negative(value), j, f.sum(f.product(t, f.size), j, same.index))
        begin = self.of_link(link, "axis_pairs")
        with f.loop(0, self.of_link(link, "axis_count")) as pair:
            place = f.sum(begin, f.product(2, pair.index))
            local, column = self.listed(place), self.listed(f.sum(place, 1))
            value = self.gather(axis, f.sum(1, common, f.product(TIMES, freedom), wrench, local))
            self.add(self.negative(value), j, column)


library = Library("tree sweeps", write, [Rows.signature, Carried.signature])
