"""Writing sweeps over a tree of links for LLVM: the tree as integers, and vectors of four steps side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Value, number

TIMES = 3
"""Configurations of a step."""
POSE = 7
RECORD = (
    "base",
    "first",
    "freedom",
    "first_place",
    "places",
    "support",
    "supports",
    "above",
    "aboves",
    "body_pairs",
    "body_count",
    "axis_pairs",
    "axis_count",
    "has_axis",
    "common",
    "wrench",
    "body_width",
    "shaft",
)
"""Integers of a link: the link that it hangs on, its coordinates, its own numbers of geometry, lists of the coordinates
and of such numbers further in, pairs (column of the element, column of the table) of its parameters, what its axis
depends on, the columns of its body's derivatives, and where its shaft's inertia stands."""
TABLES = ("link", "link_stride", "body", "body_stride", "axis", "axis_stride")
"""Where a link's numbers are, and how far apart those of two times."""


class Sweep:
    """A function that is being written, and the vocabulary of both sweeps."""

    signature: ClassVar[Signature]

    def __init__(self, module: Module) -> None:
        self.f = Function(module, self.signature)
        self.zero = number(0.0, LANES)

    def integer(self, place: Value) -> Value:
        """What lies at a place, as an integer."""
        return self.f.load_whole(place)

    def pointer(self, place: Value) -> Value:
        """What lies at a place, as an address."""
        return Value(self.f.line(f"load ptr, ptr {place.name}, align 8"), "ptr")

    def plus(self, a: Value, b: Value) -> Value:
        return self.f.apply("add", a, b)

    def minus(self, a: Value, b: Value) -> Value:
        return self.f.apply("sub", a, b)

    def times(self, a: Value, b: Value) -> Value:
        return self.f.apply("mul", a, b)

    def over(self, a: Value, b: Value) -> Value:
        return self.f.apply("div", a, b)

    def negative(self, a: Value) -> Value:
        return self.f.apply("neg", a)

    # --- integers and places ---

    def of_link(self, link: Any, name: str) -> Any:
        place = self.f.at(self.f.links, self.f.product(link, len(RECORD)), RECORD.index(name))
        return self.integer(place)

    def listed(self, place: Any) -> Any:
        return self.integer(self.f.at(self.f.lists, place))

    def table(self, link: Any, name: str, time: Any) -> tuple[Any, Any]:
        """A link's numbers at a time, and their distance from those at the next."""
        f = self.f
        start = f.at(f.tables, f.product(link, len(TABLES)), TABLES.index(name))
        stride = self.integer(f.at(start, 1))
        return f.at(self.pointer(start), f.product(time, stride)), stride

    def if_true(self, flag: Any) -> Any:
        return self.f.when(self.f.test("ne", flag, 0))

    def backwards(self, count: Any, index: Any) -> Any:
        return self.f.difference(self.f.difference(count, 1), index)

    # --- vectors ---

    def gather(self, table: tuple[Any, Any], *offsets: Any) -> Any:
        """One number of each of four times."""
        pointer, stride = table
        kind = self.zero.kind
        value = "poison"
        for lane in range(LANES):
            one = self.f.load(self.f.at(pointer, self.f.product(stride, lane), *offsets))
            value = self.f.line(f"insertelement {kind} {value}, double {one.name}, i32 {lane}")
        return Value(value, kind)

    def scatter(self, value: Any, table: tuple[Any, Any], offset: Any, add: bool = False) -> None:
        pointer, stride = table
        for lane in range(LANES):
            place = self.f.at(pointer, self.f.product(stride, lane), offset)
            one = self.f.lane(value, lane)
            self.f.store(self.plus(self.f.load(place), one) if add else one, place)

    def kept(self, pointer: Any, *places: Any) -> Any:
        """Place of a vector in the working space."""
        return self.f.at(pointer, self.f.product(self.f.sum(*places), LANES))

    def read(self, pointer: Any, *places: Any) -> Any:
        return self.f.load(self.kept(pointer, *places), LANES)

    def keep(self, value: Any, pointer: Any, *places: Any) -> None:
        self.f.store(value, self.kept(pointer, *places))

    def read_all(self, pointer: Any, count: int) -> list[Any]:
        return [self.read(pointer, i) for i in range(count)]

    def dot(self, a: Sequence[Any], b: Sequence[Any], start: Any = None) -> Any:
        total = self.times(a[0], b[0]) if start is None else self.f.multiply_add(a[0], b[0], start)
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self.f.multiply_add(x, y, total)
        return total

    def cross(self, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        pairs = ((1, 2), (2, 0), (0, 1))
        return [self.f.multiply_add(a[i], b[j], self.negative(self.times(a[j], b[i]))) for i, j in pairs]

    def add_to(self, target: Any, source: Any, count: int) -> None:
        with self.f.loop(0, count) as i:
            self.keep(self.plus(self.read(target, i.index), self.read(source, i.index)), target, i.index)

    def hand_inwards(self, parts: Sequence[tuple[Any, int]]) -> None:
        """Add numbers of each link to those of the link it hangs on, the outermost first."""
        with self.f.loop(0, self.f.count) as back:
            link = self.backwards(self.f.count, back.index)
            base = self.of_link(link, "base")
            with self.f.when(self.f.test("sge", base, 0)):
                for start, size in parts:
                    target, source = (self.kept(start, self.f.product(which, size)) for which in (base, link))
                    self.add_to(target, source, size)
