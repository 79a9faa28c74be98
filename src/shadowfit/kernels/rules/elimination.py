"""Linear systems of a few unknowns, eliminated in scalars; what is known to be zero is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray, Value, entries_of
from shadowfit.kernels.errors import UnsupportedError
from shadowfit.kernels.scalars import Node, Scalars
from shadowfit.kernels.unrolling import Unrolling

Matrix = list[list[Node]]


def solve(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """``A⁻¹ B`` by Gauss's elimination.

    With the setting ``definite`` rows stay where they are, which is stable where ``A + Aᵀ`` is positive definite;
    without, each pivot is the largest of its column, which takes choices among all rows for each.
    """
    scalars = unrolling.scalars
    matrix, right = (entries_of(scalars, x) for x in arguments)
    if matrix.ndim != 2:
        raise UnsupportedError("several linear systems at once", equation.primitive.name)
    rows: Matrix = np.concatenate([matrix, right], axis=1).tolist()
    size = len(rows)
    for k in range(size):
        if not equation.params["definite"]:
            _bring_up(scalars, rows, k)
        inverse = scalars.div(scalars.one, rows[k][k])
        rows[k][k + 1 :] = [scalars.mul(x, inverse) for x in rows[k][k + 1 :]]
        for i in range(k + 1, size):
            _relieve(scalars, rows[i], rows[k], k, k + 1)
    for k in range(size - 1, -1, -1):
        for i in range(k):
            _relieve(scalars, rows[i], rows[k], k, size)
    return NodeArray(np.array([row[size:] for row in rows], dtype=np.int64).reshape(right.shape))


def _relieve(scalars: Scalars, row: list[Node], pivot: list[Node], k: int, first: int) -> None:
    """Subtract from a row its multiple of another, from a column on."""
    factor = row[k]
    if factor == scalars.zero:
        return
    for j in range(first, len(row)):
        if pivot[j] != scalars.zero:
            row[j] = scalars.sub(row[j], scalars.mul(factor, pivot[j]))


def _bring_up(scalars: Scalars, rows: Matrix, k: int) -> None:
    """Exchange row k for the one below that has the largest entry in column k, the first of equals."""
    for i in range(k + 1, len(rows)):
        if rows[i][k] == scalars.zero:
            continue
        here, there = (scalars.call("abs", rows[x][k]) for x in (k, i))
        larger = scalars.compare("gt", there, here)
        for j in range(k, len(rows[k])):
            a, b = rows[k][j], rows[i][j]
            rows[k][j], rows[i][j] = scalars.select(larger, b, a), scalars.select(larger, a, b)
