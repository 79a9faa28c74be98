"""Products of arrays, sums and other reductions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray, Rule, Value, entries_of
from shadowfit.kernels.scalars import Node, Scalars
from shadowfit.kernels.unrolling import Unrolling


def dot(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """Sums of products; what is known to be zero is left out."""
    scalars = unrolling.scalars
    left, right = (entries_of(scalars, x) for x in arguments)
    (left_sum, right_sum), (left_batch, right_batch) = equation.params["dimension_numbers"]
    a, a_rest = _arranged(left, left_batch, left_sum)
    b, b_rest = _arranged(right, right_batch, right_sum)
    zero = scalars.zero
    sparse_b = [[[(k, x) for k, x in enumerate(row) if x != zero] for row in group] for group in b.tolist()]
    products = []
    for rows, columns in zip(a.tolist(), sparse_b, strict=True):
        for row in rows:
            for column in columns:
                total = zero
                for k, x in column:
                    if row[k] != zero:
                        total = scalars.add(total, scalars.mul(row[k], x))
                products.append(total)
    shape = [left.shape[axis] for axis in left_batch] + a_rest + b_rest
    return NodeArray(np.array(products, dtype=np.int64).reshape(shape))


def _arranged(entries: np.ndarray, batch: Sequence[int], summed: Sequence[int]) -> tuple[np.ndarray, list[int]]:
    """``(groups, lines, summed)``, and the shape of the lines."""
    rest = [axis for axis in range(entries.ndim) if axis not in (*batch, *summed)]
    # Not -1: the sum may be over nothing, as over the gaps of a free body.
    sizes = [math.prod(entries.shape[axis] for axis in axes) for axes in (batch, rest, summed)]
    return entries.transpose([*batch, *rest, *summed]).reshape(sizes), [entries.shape[axis] for axis in rest]


def along_axes(entries: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The given axes as one, the last; an array may be empty, as in fits without free parameters."""
    rest = [axis for axis in range(entries.ndim) if axis not in axes]
    length = math.prod(entries.shape[axis] for axis in axes)
    return entries.transpose([*rest, *axes]).reshape([*[entries.shape[axis] for axis in rest], length])


def reduced(operation: Callable[[Scalars, list[Node]], Node]) -> Rule:
    """One number of all those along some axes: ``operation(scalars, nodes)``."""

    def rule(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
        rows = along_axes(entries_of(unrolling.scalars, arguments[0]), equation.params["axes"])
        totals = np.empty(rows.shape[:-1], dtype=np.int64)
        for place in np.ndindex(*totals.shape):
            totals[place] = operation(unrolling.scalars, rows[place].tolist())
        return NodeArray(totals)

    return rule


def chained(operation: Callable[[Scalars, Node, Node], Node], empty: float) -> Rule:
    """A reduction by an operation on two, in order; ``empty``: of nothing."""

    def total(s: Scalars, nodes: list[Node]) -> Node:
        if not nodes:
            return s.const(empty)
        result = nodes[0]
        for x in nodes[1:]:
            result = operation(s, result, x)
        return result

    return reduced(total)


def extreme(name: str, empty: float) -> Rule:
    """The largest or smallest, as one operation."""

    def pick(s: Scalars, nodes: list[Node]) -> Node:
        if len(nodes) < 2:
            return nodes[0] if nodes else s.const(empty)
        return s.call(name, *nodes)

    return reduced(pick)


def cumulative(operation: Callable[[Scalars, Node, Node], Node]) -> Rule:
    """Partial sums and the like along an axis."""

    def rule(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
        axis, reverse = equation.params["axis"], equation.params["reverse"]
        entries = np.array(np.moveaxis(entries_of(unrolling.scalars, arguments[0]), axis, -1))
        order = range(entries.shape[-1])[:: -1 if reverse else 1]
        for before, now in itertools.pairwise(order):
            for place in np.ndindex(*entries.shape[:-1]):
                both = int(entries[*place, before]), int(entries[*place, now])
                entries[*place, now] = operation(unrolling.scalars, *both)
        return NodeArray(np.moveaxis(entries, -1, axis))

    return rule
