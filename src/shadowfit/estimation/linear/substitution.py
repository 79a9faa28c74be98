"""Substitution of many right-hand sides into a factor (:mod:`front`), and linear recursions, as machine code.

Right-hand sides lie beside each other: a row for each unknown, a column for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from shadowfit.estimation.linear.products import ROWS, gram
from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Library, Value, number, whole

FORWARD = Signature("forward", "blocks block stride columns *upper *right *values")
BACKWARD = Signature("backward", "blocks block stride columns *upper *right *values")
RECUR = Signature("recur", "steps size columns *coefficients *values")


def write(module: Module) -> None:
    """All functions."""
    transposed = gram(module, "minus_transposed", negative=True)
    plain = gram(module, "minus", negative=True, across=True)
    _forward(module, transposed)
    _backward(module, plain)
    _recur(module, plain)


def _forward(module: Module, minus: Function) -> None:
    """Solve ``U_jᵀ y_j = x_j − P_{j−1}[next]ᵀ y_{j−1}`` in place, first block first; ``stride`` is that of P."""
    f = Function(module, FORWARD)
    block, columns = f.block, f.columns
    with f.loop(0, f.blocks) as blocks:
        j = blocks.index
        values = f.at(f.values, f.product(j, block, columns))
        upper = f.at(f.upper, f.product(j, block, block))
        with f.when(f.test("sgt", j, 0)):
            i = f.difference(j, 1)
            before, panel = f.at(f.values, f.product(i, block, columns)), f.at(f.right, f.product(i, block, f.stride))
            f.call(minus, panel, f.stride, before, columns, block, values, columns, block, columns, 0)
        start = whole(0)
        for height in ROWS:
            with f.loop(start, block, height) as tile:
                r = tile.index
                row_values = f.at(values, f.product(r, columns))
                f.call(minus, f.at(upper, r), block, values, columns, r, row_values, columns, height, columns, 0)
                _solve_rows(f, f.at(upper, f.product(r, f.sum(block, 1))), row_values, range(height))
            start = tile.index
    f.give()


def _backward(module: Module, minus: Function) -> None:
    """Solve ``U_j y_j = x_j − P_j[next] y_{j+1}`` in place, last block first; ``stride`` is that of P."""
    f = Function(module, BACKWARD)
    block, columns = f.block, f.columns
    with f.loop(0, f.blocks) as blocks:
        j = f.difference(f.difference(f.blocks, 1), blocks.index)
        values = f.at(f.values, f.product(j, block, columns))
        upper = f.at(f.upper, f.product(j, block, block))
        with f.when(f.test("sgt", blocks.index, 0)):
            panel, behind = f.at(f.right, f.product(j, block, f.stride)), f.at(values, f.product(block, columns))
            f.call(minus, panel, f.stride, behind, columns, block, values, columns, block, columns, 0)
        solved = whole(0)
        for height in ROWS:
            with f.loop(solved, block, height) as tile:
                known = tile.index
                after = f.difference(block, known)
                r = f.difference(after, height)
                row_values, later = f.at(values, f.product(r, columns)), f.at(values, f.product(after, columns))
                row = f.at(upper, f.product(r, block), after)
                f.call(minus, row, block, later, columns, known, row_values, columns, height, columns, 0)
                _solve_rows(f, f.at(upper, f.product(r, f.sum(block, 1))), row_values, range(height - 1, -1, -1))
            solved = tile.index
    f.give()


def _solve_rows(f: Function, corner: Value, row_values: Value, order: Sequence[int]) -> None:
    """A few rows that were relieved of all others, in the order in which they follow from each other.

    ``corner`` is their part of U, ``own`` their right-hand sides. Rows in rising order are those of Uᵀ.
    """
    known = [(min(p, q), max(p, q)) for n, p in enumerate(order) for q in order[:n]]
    factors = {pair: f.load(f.at(corner, f.product(pair[0], f.block), pair[1])) for pair in known}
    inverse = {p: f.apply("div", number(1.0), f.load(f.at(corner, f.product(p, f.sum(f.block, 1))))) for p in order}

    def solve(c: Value, width: int) -> None:
        solved: dict[int, Value] = {}
        for p in order:
            place = f.at(row_values, f.product(p, f.columns), c)
            value = f.load(place, width)
            for q, there in solved.items():
                factor = f.spread(f.apply("neg", factors[min(p, q), max(p, q)]), width)
                value = f.multiply_add(factor, there, value)
            solved[p] = f.apply("mul", value, f.spread(inverse[p], width))
            f.store(solved[p], place)

    f.tiles(0, f.columns, (LANES, 2, 1), solve)


def _recur(module: Module, minus: Function) -> None:
    """``x_{k+2} ← x_{k+2} − A_k (x_k, x_{k+1})`` in order of time, for tables A_k of ``size`` rows."""
    f = Function(module, RECUR)
    pair = f.product(2, f.size)
    with f.loop(0, f.steps) as steps:
        k = steps.index
        before = f.at(f.values, f.product(k, f.size, f.columns))
        table, target = f.at(f.coefficients, f.product(k, f.size, pair)), f.at(before, f.product(pair, f.columns))
        f.call(minus, table, pair, before, f.columns, pair, target, f.columns, f.size, f.columns, 0)
    f.give()


library = Library("substitution", write, [FORWARD, BACKWARD, RECUR])
