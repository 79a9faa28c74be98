"""A function of one time step, compiled to run over many.

    compiled = kernel(function, settings, constants, varying, key)
    rows = compiled(settings, constants, varying over time)

``settings`` and ``constants`` are the same for all times. Settings that are exactly zero or one shape the code: they
must stay so; all other numbers may change from call to call. A kernel may carry its first outputs over to the next
time (``carried``), where they are its first varying inputs. Compiled code is kept in the user's cache directory.
Where everything a function depends on belongs to this package, a key tells it beforehand, and not even tracing is
needed again.

Machine code is made in the background: whoever asks for several kernels before calling the first one traces the next
while LLVM works on the last.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels import codegen, loader, program, store
from shadowfit.kernels.arrays import NodeArray
from shadowfit.kernels.background import background
from shadowfit.kernels.fingerprint import fingerprint
from shadowfit.kernels.parts import PROGRAM
from shadowfit.kernels.scalars import Scalars
from shadowfit.kernels.unroll import operations, trace, unroll
from shadowfit.records import record

LARGEST = 150_000
"""Operations beyond which a program is not written out: compiling it would take longer than it saves."""

Leaves = Sequence[np.ndarray]
Shapes = tuple[tuple[int, ...], ...]


@record(frozen=True)
class Kernel:
    """Compiled code with the layout of what it reads and writes."""

    code: _Code
    fixed: np.ndarray
    """Which of the settings shape the code."""
    fixed_values: np.ndarray
    _told: list[tuple[Leaves, np.ndarray]] = dataclasses.field(default_factory=list, compare=False, repr=False)
    """The settings of the last call and those of their numbers that the code reads: most calls are with the same."""

    def __call__(
        self,
        settings: Leaves,
        constants: Leaves,
        varying: Leaves,
        carry: Leaves | None = None,
        workspace: Workspace | None = None,
        within: int | None = None,
    ) -> list[np.ndarray]:
        """Outputs over time (first axis); the varying inputs have an axis of time first.

        ``carry`` are the first values of what is carried, not among the varying inputs. Outputs in a workspace are
        overwritten by the next call with it. With ``within`` the varying inputs have two axes of time, the second with
        so many times, or one where they are the same for all of these.
        """
        lead = (len(varying[0]),) if within is None else (len(varying[0]), within)
        times = math.prod(lead)
        shapes = tuple(np.shape(x)[len(lead) :] for x in varying)
        memory = (workspace or Workspace()).memory(self.code, lead, shapes)
        for x, place in zip(varying, memory.places, strict=True):
            place[...] = x
        if len(memory.given) > times:
            memory.given[times:] = memory.given[times - 1]
        known = np.concatenate([self._read_of(settings), _flat(constants)])
        groups = times if carry is not None else len(memory.given) // program.LANES
        handed_on = None if carry is None else _flat(carry)
        self.code.loaded("program", known, *memory.addresses, handed_on, groups, memory.results.shape[1])
        return list(memory.parts)

    def _read_of(self, settings: Leaves) -> np.ndarray:
        """Those numbers of the settings that the code reads; raises where others, which shape it, have changed."""
        for last, numbers in self._told:
            if last is settings:
                return numbers
        flat = _flat(settings)
        if not np.array_equal(flat[self.fixed], self.fixed_values):
            raise ValueError("a setting that shapes the code has another value")
        self._told[:] = [(settings, flat[~self.fixed])]
        return flat[~self.fixed]


class _Memory:
    """What code reads and writes at some number of times, filled up to whole vectors."""

    def __init__(self, code: _Code, lead: tuple[int, ...], shapes: Shapes) -> None:
        self.code = code
        edges, times = list(itertools.accumulate(map(math.prod, shapes), initial=0)), math.prod(lead)
        padded = -(-times // program.LANES) * program.LANES
        self.given = np.empty((padded, edges[-1]))
        """What varies."""
        self.results = np.zeros((padded, code.edges[-1]))
        """Zero wherever the code does not write."""
        self._scratch = np.empty(code.scratch)
        # To find out where an array lies, or to cut a part out, takes as long as a hundred operations on it.
        self.addresses = [array.ctypes.data for array in (self.given, self.results, self._scratch)]
        self.places = _parts(self.given[:times], edges, lead, shapes)
        """Where each of the inputs goes."""
        self.parts = _parts(self.results[:times], code.edges, (times,), code.shapes)
        """Each of the outputs."""


def _parts(table: np.ndarray, edges: Sequence[int], lead: tuple[int, ...], shapes: Shapes) -> list[np.ndarray]:
    """Views of arrays whose numbers lie beside each other."""
    cuts = zip(itertools.pairwise(edges), shapes, strict=True)
    return [table[:, begin:end].reshape(*lead, *shape) for (begin, end), shape in cuts]


class Workspace:
    """Memory for one call after another, of one thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, tuple[int, ...], Shapes], _Memory] = {}

    def memory(self, code: _Code, lead: tuple[int, ...], shapes: Shapes) -> _Memory:
        """That of the last call with so many times, or new one."""
        key = (id(code), lead, shapes)
        if key not in self._kept:
            self._kept[key] = _Memory(code, lead, shapes)
        return self._kept[key]


def kernel(
    function: Callable[..., Any],
    settings: Leaves,
    constants: Leaves,
    varying: Leaves,
    key: Any,
    carried: int = 0,
    largest: int = LARGEST,
) -> Kernel:
    """Compile ``function(settings, constants, varying)``, three lists of arrays, for one time.

    The first ``carried`` of the varying arrays are the first outputs of the time before.

    ``key`` holds all that the function's operations depend on besides shapes and settings; None if that is not known,
    in which case the function is traced to find out. Raises `TooLargeError` or `UnsupportedError` where a function
    cannot be written out.
    """
    flat = _flat(settings)
    fixed = (flat == 0.0) | (flat == 1.0)
    shapes = [[np.shape(x) for x in arrays] for arrays in (settings, constants, varying)]
    layout = shapes, fixed, flat[fixed], codegen.manner(), program.LANES, carried, largest
    traced = None if key is not None else trace(function, list(settings), list(constants), list(varying))
    name = fingerprint(layout, key if traced is None else operations(traced))
    if name not in _loaded:
        stored = store.load(name)
        if stored is not None:
            _loaded[name] = _Code(stored.shapes, stored.scratch, stored)
        else:
            with _making():
                traced = traced or trace(function, list(settings), list(constants), list(varying))
                arguments = settings, constants, varying
                texts, outputs, scratch = _write(traced, arguments, fixed, carried, largest)
            objects = [background.submit(codegen.compile_program, text) for text in texts]
            _loaded[name] = _Code(outputs, scratch, _Making(name, objects))
    return Kernel(_loaded[name], fixed, flat[fixed])


@record(frozen=True)
class _Making:
    """Machine code that is being made, module by module."""

    name: str
    objects: list[concurrent.futures.Future[bytes]]


@record(frozen=True)
class _Code:
    """Machine code that exists, or is being made."""

    shapes: tuple[tuple[int, ...], ...]
    """Shapes of the outputs for one time."""
    scratch: int
    made: store.Compiled | _Making

    @functools.cached_property
    def edges(self) -> list[int]:
        """Where the numbers of each output begin, and the last ones end."""
        return list(itertools.accumulate((math.prod(shape) for shape in self.shapes), initial=0))

    @functools.cached_property
    def loaded(self) -> loader.Loaded:
        """The code in memory; waits for it."""
        with _making():
            if isinstance(self.made, store.Compiled):
                return loader.Loaded(self.made.objects, [PROGRAM])
            objects = [future.result() for future in self.made.objects]
            store.save(self.made.name, store.Compiled(objects, self.shapes, self.scratch))
            return loader.Loaded(objects, [PROGRAM])


_loaded: dict[str, _Code] = {}
"""Code of this process; the same kernel is asked for by every problem of a kind."""

_spent = [0.0]


@contextlib.contextmanager
def _making() -> Iterator[None]:
    began = time.perf_counter()
    yield
    _spent[0] += time.perf_counter() - began


def making_seconds() -> float:
    """Time that callers have spent making kernels or waiting for them [s]."""
    return _spent[0]


def _write(
    traced: Any, arguments: tuple[Leaves, Leaves, Leaves], fixed: np.ndarray, carried: int, largest: int
) -> tuple[list[str], tuple[tuple[int, ...], ...], int]:
    """Assembly of a traced function, shapes of its outputs, and the working space it needs."""
    settings, constants, varying = arguments
    scalars = Scalars(largest)
    places = itertools.count()
    given = zip(_flat(settings), fixed, strict=True)
    nodes = [scalars.const(x) if known else scalars.input(next(places)) for x, known in given]
    nodes += [scalars.input(next(places)) for _ in range(_flat(constants).size)]
    first_varying = next(places)
    width = sum(int(np.size(x)) for x in varying)
    nodes += [scalars.input(first_varying + i) for i in range(width)]
    arrays = (*settings, *constants, *varying)
    sizes = [int(np.size(x)) for x in arrays]
    parts = np.split(np.array(nodes, dtype=np.int64), np.cumsum(sizes)[:-1])
    inputs = [NodeArray(part.reshape(np.shape(x))) for part, x in zip(parts, arrays, strict=True)]
    outputs = unroll(scalars, traced, inputs)
    entries = np.concatenate([output.ravel() for output in outputs])
    kept = sum(int(np.size(x)) for x in varying[:carried])
    # What is known to be zero is left as the caller has set it.
    wanted = [(i, node) for i, node in enumerate(entries.tolist()) if node != scalars.zero or i < kept]
    texts = program.assembly(scalars, first_varying, width - kept, wanted, kept)
    shapes = tuple(tuple(output.shape) for output in outputs)
    return texts, shapes, program.scratch_size(scalars)


def _flat(arrays: Leaves) -> np.ndarray:
    return np.concatenate([np.asarray(array, dtype=float).ravel() for array in arrays] or [np.zeros(0)])
