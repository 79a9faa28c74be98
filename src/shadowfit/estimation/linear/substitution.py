"""Substitution of many right-hand sides into a factor (:mod:`front`), recursions and sums of rows, as machine code.

Right-hand sides lie beside each other: a row for each unknown, a column for each of them. So do errors of the rows of
consecutive steps, each of which sees the unknowns of a window of nodes, one node further than the step before.
"""

from __future__ import annotations

from collections.abc import Sequence

from shadowfit.estimation.linear.products import ROWS, Matrix, Product
from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Library, Value, number, whole

FORWARD = Signature("forward", "blocks block stride columns *upper *right *values")
BACKWARD = Signature("backward", "blocks block stride columns *upper *right *values")
RECUR = Signature("recur", "steps size columns *coefficients *values")
MEET = Signature("meet", "steps rows window size columns stride *states *errors *nodes")
FOLLOW = Signature("follow", "steps rows window size columns stride *states *errors *nodes")

GATHER = Signature("gather", "places count columns *which *weights *rows *sums")


def write(module: Module) -> None:
    """All functions."""
    transposed = Product(module, "minus_transposed", negative=True)
    plain = Product(module, "minus", negative=True, across=True)
    _forward(module, transposed)
    _backward(module, plain)
    _recur(module, plain)
    _meet(module, Product(module, "plus_transposed"))
    _follow(module, plain)
    _gather(module)


def _forward(module: Module, minus: Product) -> None:
    """Solve ``U_jᵀ y_j = x_j − P_{j−1}[next]ᵀ y_{j−1}`` in place, first block first; ``stride`` is that of P."""
    f = Function(module, FORWARD)
    block, columns = f.block, f.columns
    with f.loop(0, f.blocks) as blocks:
        j = blocks.index
        values = Matrix(f, f.values, columns).below(f.product(j, block))
        upper = Matrix(f, f.upper, block).below(f.product(j, block))
        with f.when(f.test("sgt", j, 0)):
            first = f.product(f.difference(j, 1), block)
            before, panel = Matrix(f, f.values, columns).below(first), Matrix(f, f.right, f.stride).below(first)
            minus(panel, before, values, (block, columns, block))
        start = whole(0)
        for height in ROWS:
            with f.loop(start, block, height) as tile:
                r = tile.index
                row_values = values.below(r)
                minus(upper.right(r), values, row_values, (height, columns, r))
                _solve_rows(upper.below(r, r), row_values, range(height))
            start = tile.index
    f.give()


def _backward(module: Module, minus: Product) -> None:
    """Solve ``U_j y_j = x_j − P_j[next] y_{j+1}`` in place, last block first; ``stride`` is that of P."""
    f = Function(module, BACKWARD)
    block, columns = f.block, f.columns
    with f.loop(0, f.blocks) as blocks:
        j = f.difference(f.difference(f.blocks, 1), blocks.index)
        values = Matrix(f, f.values, columns).below(f.product(j, block))
        upper = Matrix(f, f.upper, block).below(f.product(j, block))
        with f.when(f.test("sgt", blocks.index, 0)):
            panel = Matrix(f, f.right, f.stride).below(f.product(j, block))
            minus(panel, values.below(block), values, (block, columns, block))
        solved = whole(0)
        for height in ROWS:
            with f.loop(solved, block, height) as tile:
                known = tile.index
                after = f.difference(block, known)
                r = f.difference(after, height)
                row_values = values.below(r)
                minus(upper.below(r, after), values.below(after), row_values, (height, columns, known))
                _solve_rows(upper.below(r, r), row_values, range(height - 1, -1, -1))
            solved = tile.index
    f.give()


def _solve_rows(corner: Matrix, values: Matrix, order: Sequence[int]) -> None:
    """A few rows that were relieved of all others, in the order in which they follow from each other.

    ``corner`` is their part of U, ``values`` their right-hand sides. Rows in rising order are those of Uᵀ.
    """
    f = values.f
    known = [(min(p, q), max(p, q)) for n, p in enumerate(order) for q in order[:n]]
    factors = {pair: f.load(corner.at(*pair)) for pair in known}
    inverse = {p: f.apply("div", number(1.0), f.load(corner.at(p, p))) for p in order}

    def solve(c: Value, width: int) -> None:
        solved: dict[int, Value] = {}
        for p in order:
            entry = values.at(p, c)
            value = f.load(entry, width)
            for q, there in solved.items():
                factor = f.spread(f.apply("neg", factors[min(p, q), max(p, q)]), width)
                value = f.multiply_add(factor, there, value)
            solved[p] = f.apply("mul", value, f.spread(inverse[p], width))
            f.store(solved[p], entry)

    f.tiles(0, f.columns, (LANES, 2, 1), solve)


def _recur(module: Module, minus: Product) -> None:
    """``x_{k+2} ← x_{k+2} − A_k (x_k, x_{k+1})`` in order of time, for tables A_k of ``size`` rows."""
    f = Function(module, RECUR)
    pair = f.product(2, f.size)
    with f.loop(0, f.steps) as steps:
        k = steps.index
        before = Matrix(f, f.values, f.columns).below(f.product(k, f.size))
        coefficients = Matrix(f, f.coefficients, pair).below(f.product(k, f.size))
        minus(coefficients, before, before.below(pair), (f.size, f.columns, pair))
    f.give()


def _meet(module: Module, plus: Product) -> None:
    """``nodes ← nodes + J_kᵀ e_k`` of each step's window, for derivatives J_k of its rows by that.

    Errors may be some columns of a wider table, whose rows are ``stride`` numbers apart.
    """
    f = Function(module, MEET)
    width = f.product(f.window, f.size)
    with f.loop(0, f.steps) as steps:
        states, errors, nodes = _of_step(f, steps.index)
        plus(states, errors, nodes, (width, f.columns, f.rows))
    f.give()


def _follow(module: Module, minus: Product) -> None:
    """``e_k ← e_k − J_k nodes`` of each step's window; errors as in `_meet`."""
    f = Function(module, FOLLOW)
    width = f.product(f.window, f.size)
    with f.loop(0, f.steps) as steps:
        states, errors, nodes = _of_step(f, steps.index)
        minus(states, nodes, errors, (f.rows, f.columns, width))
    f.give()


def _of_step(f: Function, k: Value) -> tuple[Matrix, Matrix, Matrix]:
    """Derivatives and errors of a step's rows, and the nodes of its window."""
    first = f.product(k, f.rows)
    return (
        Matrix(f, f.states, f.product(f.window, f.size)).below(first),
        Matrix(f, f.errors, f.stride).below(first),
        Matrix(f, f.nodes, f.columns).below(f.product(k, f.size)),
    )


def _gather(module: Module) -> None:
    """Weighted sums of ``count`` rows of a table, for each of many places; ``which`` they are, 64 bits wide."""
    f = Function(module, GATHER)
    rows, sums = (Matrix(f, table, f.columns) for table in (f.rows, f.sums))
    with f.loop(0, f.places) as places:
        first, out = f.product(places.index, f.count), sums.below(places.index)

        def tile(c: Value, width: int, first: Value = first, out: Matrix = out) -> None:
            with f.loop(0, f.count, 1, [number(0.0, width)]) as terms:
                entry = f.sum(first, terms.index)
                row, weight = f.load_whole(f.at(f.which, entry)), f.load(f.at(f.weights, entry))
                value = f.load(rows.at(row, c), width)
                terms.carried = [f.multiply_add(f.spread(weight, width), value, terms.carried[0])]
            f.store(terms.carried[0], out.at(0, c))

        f.tiles(0, f.columns, (LANES, 2, 1), tile)
    f.give()


library = Library("substitution", write, [FORWARD, BACKWARD, RECUR, MEET, FOLLOW, GATHER])
