"""What joints carry, and their mobility: a sweep over the tree for dry friction, as machine code."""

from __future__ import annotations

from typing import Any

from shadowfit.estimation.residuals.recursion.lanes import POSE, Sweep
from shadowfit.kernels.assembly import Signature
from shadowfit.kernels.loops import LANES, number, whole

PER_LINK, PER_COORDINATE = 2 * 36 + 6, 14
"""Vectors of working space."""


class Carried(Sweep):
    """Wrench that each joint carries, and mobility of each coordinate: diagonal of the inverse mass matrix.

    Articulated inertias inwards, ``U = I S, D = S · U + J_shaft, I ← I − U Uᵀ/D``; responses of the links to forces
    outwards, with ``x = Ω U`` and ``m = 1/D + U · x/D²``, which is the mobility, ``Ω ← Ω − (S xᵀ + x Sᵀ)/D + m S Sᵀ``.
    """

    signature = Signature("carried", "*links *tables *scratch *wrenches *mobility blocks count size steps")

    def write(self) -> None:
        f = self.f
        self.inertias = f.scratch
        self.responses = self.kept(self.inertias, f.product(f.count, 36))
        self.sums = self.kept(self.responses, f.product(f.count, 36))
        self.coordinates = self.kept(self.sums, f.product(f.count, 6))
        with f.loop(0, f.blocks) as block:
            self.time = f.product(block.index, LANES)
            with f.loop(0, f.count) as link:
                body, width = self.table(link.index, "body", self.time), self.of_link(link.index, "body_width")
                for r in range(6):
                    self.keep(self.gather(body, r), self.sums, f.product(link.index, 6), r)
                with f.loop(0, 36) as entry:
                    value = self.gather(body, f.sum(6, f.product(6, width), entry.index))
                    self.keep(value, self.inertias, f.product(link.index, 36), entry.index)
            self.hand_inwards([(self.sums, 6)])
            with f.loop(0, f.count) as back:
                self._inwards(self.backwards(f.count, back.index))
            with f.loop(0, f.count) as link:
                self._outwards(link.index)
                for r in range(6):
                    target = f.at(f.wrenches, f.product(6, f.sum(f.product(link.index, f.steps), self.time)))
                    self.scatter(self.read(self.sums, f.product(link.index, 6), r), (target, whole(6)), r)
        f.give()

    def _one_over(self, value: Any) -> Any:
        return self.over(number(1.0, LANES), value)

    def _inwards(self, link: Any) -> None:
        f = self.f
        freedom, first = self.of_link(link, "freedom"), self.of_link(link, "first")
        row = self.table(link, "link", f.sum(self.time, 1))
        shaft = self.gather(row, self.of_link(link, "shaft"))
        inertia = self.kept(self.inertias, f.product(link, 36))
        with f.loop(0, freedom) as back:
            number = self.backwards(freedom, back.index)
            record = self.kept(self.coordinates, f.product(f.sum(first, number), PER_COORDINATE))
            twist = [self.gather(row, POSE + c, f.product(number, 6)) for c in range(6)]
            momentum = [self.dot(self.read_all(self.kept(inertia, 6 * r), 6), twist) for r in range(6)]
            is_first = self.f.test("eq", number, 0)
            inverse = self._one_over(self.dot(twist, momentum, self.f.choose(is_first, shaft, self.zero)))
            for c in range(6):
                self.keep(twist[c], record, c)
                self.keep(momentum[c], record, 6 + c)
            self.keep(inverse, record, 12)
            for r in range(6):
                factor = self.negative(self.times(momentum[r], inverse))
                for c in range(6):
                    value = f.multiply_add(factor, momentum[c], self.read(inertia, 6 * r + c))
                    self.keep(value, inertia, 6 * r + c)
        base = self.of_link(link, "base")
        with self.f.when(self.f.test("sge", base, 0)):
            self.add_to(self.kept(self.inertias, f.product(base, 36)), inertia, 36)

    def _outwards(self, link: Any) -> None:
        f = self.f
        freedom, first = self.of_link(link, "freedom"), self.of_link(link, "first")
        response, base = self.kept(self.responses, f.product(link, 36)), self.of_link(link, "base")
        hangs = self.f.test("sge", base, 0)
        before = self.f.choose(hangs, base, whole(0))
        with f.loop(0, 36) as entry:
            value = self.read(self.responses, f.product(before, 36), entry.index)
            self.keep(self.f.choose(hangs, value, self.zero), response, entry.index)
        with f.loop(0, freedom) as number:
            j = f.sum(first, number.index)
            record = self.kept(self.coordinates, f.product(j, PER_COORDINATE))
            twist, momentum = self.read_all(record, 6), [self.read(record, 6 + c) for c in range(6)]
            inverse = self.read(record, 12)
            answer = [self.dot(self.read_all(self.kept(response, 6 * r), 6), momentum) for r in range(6)]
            scaled = [self.times(inverse, x) for x in answer]
            mobility = f.multiply_add(self.times(inverse, inverse), self.dot(momentum, answer), inverse)
            for r in range(6):
                for c in range(6):
                    value = f.multiply_add(self.times(mobility, twist[r]), twist[c], self.read(response, 6 * r + c))
                    value = f.multiply_add(self.negative(twist[r]), scaled[c], value)
                    self.keep(f.multiply_add(self.negative(scaled[r]), twist[c], value), response, 6 * r + c)
            self.scatter(mobility, (f.at(f.mobility, f.product(j, f.steps), self.time), whole(1)), 0)
