"""Loops over arrays, written for LLVM: what numpy calls cost too much for.

A `Function` is written operation by operation, in plain Python that runs once: its loops and conditions are context
managers. Operations on numbers are those of the table (`Function.apply`), for single numbers and vectors alike. Loops
and pointers are plain enough that only the code generator runs, as for the kernels; a `Library` is a set of functions
that is made in the background and kept in the user's cache.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowfit.kernels import (
    codegen,
    loader,
    store,
    table,  # noqa: F401  (fills the table)
)
from shadowfit.kernels.assembly import Lines, Module, Signature, Width
from shadowfit.kernels.background import background
from shadowfit.kernels.fingerprint import fingerprint
from shadowfit.kernels.row import TABLE

LANES = 4
"""Numbers in a vector register."""


class Value(NamedTuple):
    """A value of the function that is being written."""

    name: str
    kind: str
    """``i64``, ``i1``, ``ptr``, ``double``, or a vector ``<4 x double>``."""


Integer = int | Value
Number = float | Value


def whole(value: Integer) -> Value:
    """An integer."""
    return value if isinstance(value, Value) else Value(str(int(value)), "i64")


def number(value: Number, width: int = 1) -> Value:
    """A number, in so many lanes."""
    if isinstance(value, Value):
        return value
    wide = _width(width)
    return Value(wide.constant(value), wide.number)


@functools.cache
def _width(width: int) -> Width:
    return Width(0 if width == 1 else width)


def _lanes(value: Value) -> int:
    return int(value.kind[1:].split(" ")[0]) if value.kind.startswith("<") else 1


class Function(Lines):
    """A function that is being written; its arguments are attributes."""

    def __init__(self, module: Module, signature: Signature) -> None:
        super().__init__()
        self.module = module
        self.signature = signature
        self.given = {
            name: Value(f"%{name}", kind) for name, kind in zip(signature.names, signature.kinds, strict=True)
        }
        self._block = "entry"
        self._blocks = 0
        module.functions.append((signature, self))

    def __getattr__(self, name: str) -> Value:
        """An argument."""
        try:
            return self.__dict__["given"][name]
        except KeyError:
            raise AttributeError(name) from None

    # --- integers and pointers ---

    def _integer(self, instruction: str, a: Integer, b: Integer) -> Value:
        return Value(self.line(f"{instruction} i64 {whole(a).name}, {whole(b).name}"), "i64")

    def sum(self, *terms: Integer) -> Value:
        """Of integers."""
        return whole(functools.reduce(lambda a, b: self._integer("add", a, b), terms))

    def difference(self, a: Integer, b: Integer) -> Value:
        """a − b."""
        return self._integer("sub", a, b)

    def product(self, *factors: Integer) -> Value:
        """Of integers."""
        return whole(functools.reduce(lambda a, b: self._integer("mul", a, b), factors))

    def quotient(self, a: Integer, b: Integer) -> Value:
        """Towards zero."""
        return self._integer("sdiv", a, b)

    def remainder(self, a: Integer, b: Integer) -> Value:
        """Of the quotient."""
        return self._integer("srem", a, b)

    def smaller(self, a: Integer, b: Integer) -> Value:
        """The smaller of two integers."""
        return self.choose(self.test("slt", a, b), whole(a), whole(b))

    def at(self, pointer: Value, *offsets: Integer) -> Value:
        """Pointer to the number that lies so many behind another."""
        return Value(self.line(f"getelementptr double, ptr {pointer.name}, i64 {self.sum(*offsets).name}"), "ptr")

    def load(self, pointer: Value, width: int = 1) -> Value:
        """One number, or several side by side."""
        kind = _width(width).number
        return Value(self.line(f"load {kind}, ptr {pointer.name}, align 8"), kind)

    def load_whole(self, pointer: Value) -> Value:
        """An integer."""
        return Value(self.line(f"load i64, ptr {pointer.name}, align 8"), "i64")

    def store(self, value: Value, pointer: Value) -> None:
        self.lines.append(f"  store {value.kind} {value.name}, ptr {pointer.name}, align 8")

    # --- truth values ---

    def test(self, name: str, a: Integer, b: Integer) -> Value:
        """A comparison of integers: ``eq``, ``ne``, ``slt``, ``sle``, ``sgt``, ``sge``."""
        return Value(self.line(f"icmp {name} i64 {whole(a).name}, {whole(b).name}"), "i1")

    def choose(self, condition: Value, if_true: Value, if_false: Value) -> Value:
        """One of two values of any kind."""
        kind = if_true.kind
        text = f"select i1 {condition.name}, {kind} {if_true.name}, {kind} {if_false.name}"
        return Value(self.line(text), kind)

    def any(self, truths: Value) -> Value:
        """Whether one of several is true."""
        lanes = _lanes(truths)
        if lanes == 1:
            return truths
        mask = self.line(f"bitcast {truths.kind} {truths.name} to i{lanes}")
        return Value(self.line(f"icmp ne i{lanes} {mask}, 0"), "i1")

    def one_if(self, condition: Value) -> Value:
        """1 or 0."""
        return Value(self.line(f"zext i1 {condition.name} to i64"), "i64")

    # --- numbers ---

    def apply(self, name: str, *operands: Value) -> Value:
        """The operation of a row of the table: ``add``, ``mul``, ``sqrt``, ``lt``, ``and``, …"""
        row = TABLE[name]
        assert row.code is not None
        wide = _width(max(_lanes(x) for x in operands))
        return Value(row.code(self, wide, [x.name for x in operands]), wide.truth if row.gives_truth else wide.number)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c, rounded once where the processor can."""
        wide = _width(_lanes(a))
        kind, function = wide.number, f"@llvm.fmuladd.{wide.suffix}"
        self.declare(function, f"{kind} {function}({kind}, {kind}, {kind})")
        given = ", ".join(f"{kind} {x.name}" for x in (a, b, c))
        return Value(self.line(f"call {kind} {function}({given})"), kind)

    def spread(self, value: Value, width: int) -> Value:
        """One number in all lanes."""
        wide = _width(width)
        return Value(self.splat(wide, value.name), wide.number)

    def lane(self, value: Value, place: int) -> Value:
        """One number of a vector."""
        return Value(self.line(f"extractelement {value.kind} {value.name}, i32 {place}"), "double")

    def as_number(self, value: Integer) -> Value:
        """An integer as a number."""
        return Value(self.line(f"sitofp i64 {whole(value).name} to double"), "double")

    # --- order of things ---

    def _labels(self, *names: str) -> list[str]:
        self._blocks += 1
        return [f"{name}{self._blocks}" for name in names]

    def _branch(self, text: str) -> None:
        self.lines.append(f"  br {text}")

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._block = label

    @contextlib.contextmanager
    def loop(self, begin: Integer, end: Integer, stride: Integer = 1, carried: Sequence[Value] = ()) -> Iterator[Loop]:
        """For index = begin, begin + stride, … as long as ``stride`` more fit before the end.

        ``carried`` are first values of what each round hands on to the next: set `Loop.carried` to new ones.
        """
        before = self._block
        test, body, after = self._labels("test", "body", "after")
        self._branch(f"label %{test}")
        self._begin(test)
        # What enters from the end of the body is known only when that has been written.
        place = len(self.lines)
        first = [whole(begin), *carried]
        entering = [Value(self.name(), value.kind) for value in first]
        self.lines += [""] * len(entering)
        following = self.sum(entering[0], stride)
        self._branch(f"i1 {self.test('sle', following, end).name}, label %{body}, label %{after}")
        self._begin(body)
        state = Loop(entering[0], list(entering[1:]))
        yield state
        for i, (value, start, again) in enumerate(zip(entering, first, [following, *state.carried], strict=True)):
            sources = f"[ {start.name}, %{before} ], [ {again.name}, %{self._block} ]"
            self.lines[place + i] = f"  {value.name} = phi {value.kind} {sources}"
        self._branch(f"label %{test}")
        self._begin(after)
        state.carried = list(entering[1:])

    @contextlib.contextmanager
    def rounds(self) -> Iterator[Rounds]:
        """Do what follows, and again as long as `Rounds.again`, set inside, holds."""
        again, after = self._labels("again", "after")
        self._branch(f"label %{again}")
        self._begin(again)
        state = Rounds()
        yield state
        assert state.again is not None
        self._branch(f"i1 {state.again.name}, label %{again}, label %{after}")
        self._begin(after)

    def tiles(self, begin: Integer, end: Integer, widths: Sequence[int], work: Callable[[Value, int], None]) -> None:
        """Cut a range into pieces of the first width, and the rest into smaller ones: ``work(index, width)``."""
        start = whole(begin)
        for width in widths:
            with self.loop(start, end, width) as loop:
                work(loop.index, width)
            start = loop.index

    @contextlib.contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Only if a condition holds."""
        then, after = self._labels("then", "after")
        self._branch(f"i1 {condition.name}, label %{then}, label %{after}")
        self._begin(then)
        yield
        if not self.lines[-1].startswith("  ret "):
            self._branch(f"label %{after}")
        self._begin(after)

    def call(self, function: Function, *arguments: Integer) -> Value:
        """Another function, of this module or another one of the same code."""
        signature = function.signature
        if function.module is not self.module:
            kinds = ", ".join(signature.kinds)
            self.declare(f"@{signature.name}", f"{signature.result} @{signature.name}({kinds})")
        given = ", ".join(f"{value.kind} {value.name}" for value in map(whole, arguments))
        text = f"call {signature.result} @{signature.name}({given})"
        if signature.gives:
            return Value(self.line(text), "double")
        self.lines.append(f"  {text}")
        return Value("", "void")

    def give(self, value: Value | None = None) -> None:
        """Return."""
        self.lines.append("  ret void" if value is None else f"  ret {value.kind} {value.name}")


class Rounds:
    """Whether there is another round."""

    again: Value | None = None


class Loop:
    """The index of a loop, and what its rounds hand on; after the loop, what the last one handed on."""

    def __init__(self, index: Value, carried: list[Value]) -> None:
        self.index = index
        self.carried = carried


class Library:
    """Functions by name, made when first wanted; ``write`` puts them into a module."""

    def __init__(self, name: str, write: Callable[[Module], None], functions: Sequence[Signature]) -> None:
        """``functions`` are those that can be called from here."""
        self.name = name
        self.write = write
        self.functions = functions
        self._lock = threading.RLock()
        self._made: concurrent.futures.Future[Sequence[bytes]] | None = None
        self._loaded: loader.Loaded | None = None

    def prepare(self) -> concurrent.futures.Future[Sequence[bytes]]:
        """Have the code made in the background."""
        with self._lock:
            if self._made is None:
                self._made = background.submit(self._make)
            return self._made

    def _make(self) -> Sequence[bytes]:
        name = fingerprint(self.name, codegen.processor())
        kept = store.load(name)
        if kept is not None:
            return kept.objects
        module = Module()
        self.write(module)
        objects = [codegen.compile_loops(module.text())]
        store.save(name, store.Compiled(objects, (), 0))
        return objects

    def __call__(self, name: str, *arguments: int | np.ndarray) -> Any:
        """Call a function; arrays are contiguous and double."""
        if self._loaded is None:
            with self._lock:
                self._loaded = self._loaded or loader.Loaded(self.prepare().result(), self.functions)
        return self._loaded(name, *arguments)
