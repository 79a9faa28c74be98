"""A function of one time step whose results are where the next step starts: time by time, as machine code.

    run = Sequence(function, Layout(carried, iterated, given), key)
    outputs = run(settings, constants, start, given)

``function(settings, constants, varying)`` sees three lists of arrays, of which the last is ``[*carried, *iterated,
*given]``, and returns ``[*carried, *iterated, again, *outputs]``. As long as ``again`` is not zero the step is done
once more, with the new iterated values alone: that is how Newton's iterations end when they have settled. Then all new
values are those of the next time. What depends on iterated values is computed in every round, the rest once a step,
and what depends on neither once a call.

Several trajectories go side by side in the lanes of vector registers, and groups of them in threads.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from shadowfit.kernels import codegen, processors, sequence_code, store
from shadowfit.kernels.arrays import NodeArray
from shadowfit.kernels.background import background
from shadowfit.kernels.batched import tell
from shadowfit.kernels.errors import TooLargeError, UnsupportedError
from shadowfit.kernels.fingerprint import fingerprint, spelt
from shadowfit.kernels.kernel import LARGEST, Leaves, _Code, _flat, _loaded, _Making, _making
from shadowfit.kernels.program import LANES
from shadowfit.kernels.recycled import recycled
from shadowfit.kernels.scalars import Scalars
from shadowfit.kernels.unroll import operations, trace, unroll
from shadowfit.lazy_jax import jax, quick_to_compile
from shadowfit.records import record
from shadowfit.trees import leaves_of

# Times from which on trajectories are worth handing to another thread.
LONG = 16


@record(frozen=True)
class Layout:
    """Arrays of one time, as examples of their shapes."""

    carried: Leaves
    """From step to step."""
    iterated: Leaves
    """From round to round, and from step to step."""
    given: Leaves
    """At each time."""

    @property
    def varying(self) -> list[np.ndarray]:
        """In the order in which a function sees them."""
        return [*self.carried, *self.iterated, *self.given]

    @property
    def kept(self) -> int:
        """Arrays that a time hands on to the next one."""
        return len(self.carried) + len(self.iterated)

    def sizes(self) -> tuple[int, int, int]:
        """Numbers that are carried, iterated and given."""
        return _size(self.carried), _size(self.iterated), _size(self.given)


@record(frozen=True)
class Sequence:
    """Compiled steps of one function."""

    function: Callable[..., Any]
    layout: Layout
    key: Any
    """As for `kernel`."""
    largest: int = LARGEST
    _made: dict[Any, _Code | None] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __call__(self, settings: Leaves, constants: Leaves, start: Leaves, given: Leaves) -> list[np.ndarray]:
        """Outputs over time, behind ``again``.

        ``start`` are the first values of what is carried and iterated. ``given`` has an axis of time first. A batch has
        one more axis before all of these, and before the axis of time in what is returned.
        """
        code = self.code(settings, constants, 1)
        if code is None:
            return self._by_xla(settings, constants, start, given)
        if np.ndim(start[0]) == np.ndim(self.layout.varying[0]):
            single = self(settings, constants, [np.asarray(x)[None] for x in start], [x[None] for x in given])
            return [x[0] for x in single]
        count, times = given[0].shape[:2]
        shapes = code.shapes[self.layout.kept + 1 :]
        edges = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        if count > 1:
            code = self.code(settings, constants, LANES)
            assert code is not None
        # One array, written once, in place: what is returned are views of it.
        found = recycled(count if count == 1 else -(-count // LANES) * LANES, times, int(edges[-1]))
        values = _flat(settings)
        known = np.concatenate([values[~_shaping(values)], _flat(constants)])

        def run(group: slice) -> None:
            _run(code, known, [x[group] for x in start], [x[group] for x in given], found[group])

        in_groups(run, count, times)
        places = itertools.pairwise(edges)
        return [found[:count, :, a:b].reshape(count, times, *x) for (a, b), x in zip(places, shapes, strict=True)]

    @functools.cached_property
    def _by_xla(self) -> Callable[..., list[np.ndarray]]:
        return sequence_by_xla(self.function, self.layout)

    def code(self, settings: Leaves, constants: Leaves, lanes: int) -> _Code | None:
        """Machine code for so many trajectories side by side; None where it cannot be written out in scalars."""
        values = _flat(settings)
        fixed = _shaping(values)
        shapes = [[np.shape(x) for x in arrays] for arrays in (settings, constants, self.layout.varying)]
        kind = spelt((shapes, self.layout.sizes(), fixed, values[fixed], lanes, self.largest))
        if kind not in self._made:
            try:
                self._made[kind] = self._make(kind, (list(settings), list(constants), self.layout.varying), lanes)
            except (TooLargeError, UnsupportedError) as error:
                tell(error)
                self._made[kind] = None
        return self._made[kind]

    def _make(self, kind: str, given: tuple[Leaves, Leaves, Leaves], lanes: int) -> _Code:
        traced = None if self.key is not None else trace(self.function, *given)
        name = fingerprint("sequence", kind, codegen.manner(), self.key if traced is None else operations(traced))
        if name not in _loaded:
            stored = store.load(name)
            if stored is not None:
                _loaded[name] = _Code(stored.shapes, stored.scratch, stored)
            else:
                with _making():
                    written = _written(traced or trace(self.function, *given), given, self.layout, lanes, self.largest)
                objects = [background.submit(codegen.compile_program, text, alike=True) for text in written.texts]
                _loaded[name] = _Code(written.shapes, written.scratch, _Making(name, objects))
        return _loaded[name]


def _run(code: _Code, known: np.ndarray, start: Leaves, given: Leaves, found: np.ndarray) -> None:
    """A few trajectories, side by side, written into ``found``; unused lanes repeat the last one."""
    count, times, lanes = len(start[0]), given[0].shape[1], len(found)
    who = np.minimum(np.arange(lanes), count - 1)
    carried = np.concatenate([np.asarray(x, float).reshape(count, -1) for x in start], axis=1)[who].T
    carry = np.zeros((2 * len(carried) + 1, lanes))
    carry[: len(carried)] = carried
    # What is known to be zero is not written.
    found.fill(0.0)
    columns = [np.asarray(x, float).reshape(count, times, -1) for x in given]
    varying = np.ascontiguousarray(np.moveaxis(np.concatenate(columns, axis=2)[who], 0, 2))
    code.loaded("program", known, varying, found, np.empty(code.scratch), carry, times, found.shape[2])


def in_groups(work: Callable[[slice], None], count: int, times: int) -> None:
    """Work on some trajectories at a time, as many as go side by side, in threads unless there is little of it."""
    groups = [slice(first, first + LANES) for first in range(0, count, LANES)]
    if len(groups) > 1 and times >= LONG and processors.threads() > 1:
        list(processors.pool("trajectories", processors.threads()).map(work, groups))
    else:
        for group in groups:
            work(group)


def _shaping(settings: np.ndarray) -> np.ndarray:
    """Which of the settings shape the code."""
    return (settings == 0.0) | (settings == 1.0)


def _size(arrays: Leaves) -> int:
    return sum(int(np.size(x)) for x in arrays)


@record(frozen=True)
class _Written:
    texts: list[str]
    shapes: tuple[tuple[int, ...], ...]
    scratch: int


def _written(traced: Any, given: tuple[Leaves, Leaves, Leaves], layout: Layout, lanes: int, largest: int) -> _Written:
    """Assembly of a traced function."""
    scalars = Scalars(largest)
    places = itertools.count()
    settings = _flat(given[0])
    nodes = [
        scalars.const(x) if known else scalars.input(next(places))
        for x, known in zip(settings, _shaping(settings), strict=True)
    ]
    nodes += [scalars.input(next(places)) for _ in range(_size(given[1]))]
    constant = next(places)
    nodes += [scalars.input(constant + i) for i in range(_size(given[2]))]
    arrays = [x for part in given for x in part]
    parts = np.split(np.array(nodes, dtype=np.int64), np.cumsum([int(np.size(x)) for x in arrays])[:-1])
    inputs = [NodeArray(part.reshape(np.shape(x))) for part, x in zip(parts, arrays, strict=True)]
    outputs = unroll(scalars, traced, inputs)
    entries = np.concatenate([output.ravel() for output in outputs]).tolist()
    texts, scratch = sequence_code.assembly(scalars, (constant, *layout.sizes()), entries, lanes)
    return _Written(texts, tuple(tuple(output.shape) for output in outputs), scratch)


def sequence_by_xla(function: Callable[..., Any], layout: Layout) -> Callable[..., list[np.ndarray]]:
    """What `Sequence` does, by XLA; compiled anew for another number of times."""
    kept, carried = layout.kept, len(layout.carried)

    def step(settings: Any, constants: Any, now: list[Any], given: list[Any]) -> tuple[list[Any], list[Any]]:
        def once(iterated: list[Any]) -> list[Any]:
            varying = [*now[:carried], *iterated, *given]
            return leaves_of(function(settings, constants, varying))

        first = once(now[carried:])
        last = jax.lax.while_loop(lambda x: x[kept] != 0.0, lambda x: once(x[carried:kept]), first)
        return last[:kept], last[kept + 1 :]

    @functools.partial(jax.jit, compiler_options=quick_to_compile())
    def run(settings: Any, constants: Any, start: Any, given: Any) -> Any:
        return jax.lax.scan(lambda now, given: step(settings, constants, now, given), start, given)[1]

    def stepper(settings: Leaves, constants: Leaves, start: Leaves, given: Leaves) -> list[np.ndarray]:
        arguments = [[np.asarray(x, float) for x in part] for part in (start, given)]
        single = np.ndim(start[0]) == np.ndim(layout.varying[0])
        over = run if single else jax.vmap(run, in_axes=(None, None, 0, 0))
        return [np.asarray(x) for x in over(list(settings), list(constants), *arguments)]

    return stepper
