"""Loops over arrays, written for LLVM: what numpy calls cost too much for.

A `Function` is written operation by operation. Loops and pointers are plain enough that only the code generator runs,
as for the kernels; a `Library` is a set of functions that is made in the background and kept in the user's cache.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from shadowfit.kernels import codegen, store
from shadowfit.kernels.kernel import background, fingerprint

DOUBLE, INTEGER, POINTER = ir.DoubleType(), ir.IntType(64), ir.PointerType()
LANES = 4
"""Numbers in a vector register."""


class Function:
    """A function that is being written; arguments are pointers to doubles (``*name``) and integers."""

    def __init__(self, module: ir.Module, name: str, arguments: str, gives: ir.Type | None = None) -> None:
        names = arguments.split()
        kinds = [POINTER if argument.startswith("*") else INTEGER for argument in names]
        self.function = ir.Function(module, ir.FunctionType(gives or ir.VoidType(), kinds), name)
        self.build = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.given: dict[str, Any] = dict(zip((n.lstrip("*") for n in names), self.function.args, strict=True))

    def __getattr__(self, name: str) -> Any:
        """An argument."""
        try:
            return self.given[name]
        except KeyError:
            raise AttributeError(name) from None

    def sum(self, *terms: Any) -> Any:
        """Of integers."""
        return functools.reduce(self.build.add, map(whole, terms))

    def less(self, a: Any, b: Any) -> Any:
        """a − b."""
        return self.build.sub(whole(a), whole(b))

    def product(self, *factors: Any) -> Any:
        """Of integers."""
        return functools.reduce(self.build.mul, map(whole, factors))

    def smaller(self, a: Any, b: Any) -> Any:
        """The smaller of two integers."""
        a, b = whole(a), whole(b)
        return self.build.select(self.build.icmp_signed("<", a, b), a, b)

    def at(self, pointer: Any, *offsets: Any) -> Any:
        """Pointer to the number that lies so many behind another."""
        return self.build.gep(pointer, [self.sum(*offsets)], source_etype=DOUBLE)

    def load(self, pointer: Any, width: int = 1) -> Any:
        """One number, or several side by side."""
        return self.build.load(pointer, typ=vector(width), align=8)

    def store(self, value: Any, pointer: Any) -> None:
        self.build.store(value, pointer, align=8)

    def spread(self, value: Any, width: int) -> Any:
        """One number in all lanes."""
        if width == 1:
            return value
        kind = vector(width)
        first = self.build.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
        return self.build.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c, rounded once where the processor can."""
        return self._intrinsic("llvm.fmuladd", a, b, c)

    def root(self, a: Any) -> Any:
        return self._intrinsic("llvm.sqrt", a)

    def _intrinsic(self, name: str, *operands: Any) -> Any:
        kind = operands[0].type
        full = f"{name}.{f'v{kind.count}f64' if isinstance(kind, ir.VectorType) else 'f64'}"
        module = self.function.module
        called = module.globals.get(full) or ir.Function(module, ir.FunctionType(kind, [kind] * len(operands)), full)
        return self.build.call(called, operands)

    @contextlib.contextmanager
    def loop(self, begin: Any, end: Any, stride: int | ir.Value = 1, carried: Sequence[Any] = ()) -> Iterator[Loop]:
        """For index = begin, begin + stride, … as long as ``stride`` more fit before the end.

        ``carried`` are first values of what each round hands on to the next: set `Loop.carried` to new ones.
        """
        build = self.build
        before = build.block
        test, body, after = (self.function.append_basic_block(name) for name in ("test", "body", "after"))
        build.branch(test)
        build.position_at_end(test)
        index = build.phi(INTEGER)
        index.add_incoming(whole(begin), before)
        values = []
        for value in carried:
            values.append(build.phi(value.type))
            values[-1].add_incoming(value, before)
        following = build.add(index, whole(stride))
        build.cbranch(build.icmp_signed("<=", following, whole(end)), body, after)
        build.position_at_end(body)
        state = Loop(index, list(values))
        yield state
        index.add_incoming(following, build.block)
        for phi, value in zip(values, state.carried, strict=True):
            phi.add_incoming(value, build.block)
        build.branch(test)
        build.position_at_end(after)
        state.carried = values

    def tiles(self, begin: Any, end: Any, widths: Sequence[int], work: Callable[[Any, int], None]) -> None:
        """Cut a range into pieces of the first width, and the rest into smaller ones: ``work(index, width)``."""
        start = whole(begin)
        for width in widths:
            with self.loop(start, end, width) as loop:
                work(loop.index, width)
            start = loop.index

    def call(self, function: Function, *arguments: Any) -> Any:
        return self.build.call(function.function, [whole(x) for x in arguments])

    def give(self, value: Any = None) -> None:
        """Return."""
        if value is None:
            self.build.ret_void()
        else:
            self.build.ret(value)


class Loop:
    """The index of a loop, and what its rounds hand on; after the loop, what the last one handed on."""

    def __init__(self, index: Any, carried: list[Any]) -> None:
        self.index = index
        self.carried = carried


def whole(value: Any) -> Any:
    """An integer as LLVM wants it; values of LLVM as they are."""
    return INTEGER(value) if isinstance(value, int) else value


def vector(width: int) -> ir.Type:
    """So many numbers."""
    return DOUBLE if width == 1 else ir.VectorType(DOUBLE, width)


class Library:
    """Functions by name, made when first wanted; ``write`` gives their assembly."""

    def __init__(self, name: str, write: Callable[[], str], functions: dict[str, tuple[str, bool]]) -> None:
        """``functions`` maps names to their arguments (as for `Function`), and whether they return a number."""
        self.name = name
        self.write = write
        self.functions = functions
        self._lock = threading.RLock()
        self._made: concurrent.futures.Future[bytes] | None = None
        self._loaded: dict[str, Callable[..., Any]] | None = None

    def prepare(self) -> concurrent.futures.Future[bytes]:
        """Have the code made in the background."""
        with self._lock:
            if self._made is None:
                self._made = background.submit(self._make)
            return self._made

    def _make(self) -> bytes:
        name = fingerprint(self.name, codegen.processor())
        found = store.load(name)
        if found is not None:
            return found.objects[0]
        code = codegen.compile_to_object(self.write())
        store.save(name, store.Compiled([code], (), 0))
        return code

    def _load(self) -> dict[str, Callable[..., Any]]:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), codegen.target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(self.prepare().result()))
        self._engine.finalize_object()
        found: dict[str, Callable[..., Any]] = {}
        for name, (arguments, gives) in self.functions.items():
            kinds = [ctypes.c_void_p if x.startswith("*") else ctypes.c_int64 for x in arguments.split()]
            kind = ctypes.CFUNCTYPE(ctypes.c_double if gives else None, *kinds)
            found[name] = kind(self._engine.get_function_address(name))
        return found

    def __call__(self, name: str, *arguments: int | np.ndarray) -> float:
        """Call a function; arrays are contiguous and double."""
        if self._loaded is None:
            with self._lock:
                self._loaded = self._loaded or self._load()
        given = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]
        return self._loaded[name](*given)
