"""Loops of the normal equations of a trajectory (:mod:`front`), as machine code.

All of them are the same product at heart, of columns of a table with themselves (:mod:`products`). A block of B
unknowns is kept by rows, ``pivot`` (B, B), of which only the upper triangle counts, and ``after`` (B, B + t): columns
of the next block and of the tail.
"""

from __future__ import annotations

from shadowfit.estimation.linear.products import ROWS, Matrix, Product, dot_product
from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Library, Value, number, whole
from shadowfit.records import record

ADD_STEPS = Signature(
    "add_steps",
    "*wide steps m window size step first group t blank low high clear "
    "*pivot *after *border_pivot *border_after *corner *squares",
)
ELIMINATE = Signature("eliminate", "blocks block t grain *pivot *after *damping *upper *right *corner", gives=True)
SUBSTITUTE = Signature("substitute", "blocks block t *upper *right *rest *step")
CHANGE = Signature("change", "blocks block t *pivot *after *step *rest", gives=True)


def write(module: Module) -> None:
    """All functions."""
    plus, minus = Product(module, "plus"), Product(module, "minus", negative=True)
    dot = dot_product(module)
    _add_steps(module, plus)
    _eliminate(module, minus)
    _substitute(module, dot)
    _change(module, dot)


def _add_steps(module: Module, plus: Product) -> None:
    """Add the products of rows ``[window nodes | tail]`` of consecutive steps, from ``step`` on.

    Their nodes begin ``first`` behind that of the step. Blocks from ``low`` to ``high`` are added to, after they were
    cleared if ``clear`` is 1; what belongs to the block before or behind goes to two of its own. The first ``blank``
    columns of the tail are zero.
    """
    f = Function(module, ADD_STEPS)
    block = f.product(f.group, f.size)
    stride = f.sum(block, f.t)
    states = f.product(f.window, f.size)
    width = f.sum(states, f.t)
    before_tail, seen = f.sum(states, f.blank), f.difference(f.t, f.blank)
    behind_block = f.sum(block, f.blank)

    def block_of(j: Value) -> tuple[Matrix, Matrix]:
        """Where a block is: its own columns, and those after it."""
        behind = f.test("sge", j, f.high)
        aside = f.apply("or", f.test("slt", j, f.low), behind)
        which = f.choose(aside, f.one_if(behind), j)
        pivot = f.choose(aside, f.border_pivot, f.pivot)
        after = f.choose(aside, f.border_after, f.after)
        first = f.product(which, block)
        return Matrix(f, pivot, block).below(first), Matrix(f, after, stride).below(first)

    def clear(j: Value, wanted: Value) -> None:
        """Set a block to zero, if it is wanted and one of their own."""
        with f.when(f.apply("and", wanted, f.test("slt", j, f.high))):
            _fill(f, f.at(f.pivot, f.product(j, block, block)), f.product(block, block))
            _fill(f, f.at(f.after, f.product(j, block, stride)), f.product(block, stride))

    cleared = f.test("eq", f.clear, 1)
    clear(f.low, cleared)
    with f.loop(0, f.steps) as step:
        rows = Matrix(f, f.wide, width).below(f.product(step.index, f.m))
        # The first step of a block is the first that reaches the next one.
        now = f.sum(f.step, step.index)
        begun = f.test("eq", f.remainder(now, f.group), 0)
        clear(f.sum(f.quotient(now, f.group), 1), f.apply("and", cleared, begun))
        with f.loop(0, f.m) as row:
            residual = f.load(f.at(rows.at(f.sum(row.index, 1)), -1))
            total = f.at(f.squares, row.index)
            f.store(f.multiply_add(residual, residual, f.load(total)), total)
        node = f.sum(now, f.first)
        j = f.quotient(node, f.group)
        i = f.difference(node, f.product(j, f.group))
        inside = f.product(f.smaller(f.window, f.difference(f.group, i)), f.size)
        outside = f.difference(states, inside)
        tail, others = rows.right(before_tail), rows.right(inside)
        pivot, after = block_of(j)
        begin = f.product(i, f.size)
        out = after.below(begin)
        plus(rows, rows, pivot.below(begin, begin), (inside, inside, f.m), triangle=True)
        plus(rows, others, out, (inside, outside, f.m))
        plus(rows, tail, out.right(behind_block), (inside, seen, f.m))
        with f.when(f.test("sgt", outside, 0)):
            pivot, after = block_of(f.sum(j, 1))
            plus(others, others, pivot, (outside, outside, f.m), triangle=True)
            plus(others, tail, after.right(behind_block), (outside, seen, f.m))
    tail, corner = Matrix(f, f.at(f.wide, before_tail), width), Matrix(f, f.corner, f.t).below(f.blank, f.blank)
    plus(tail, tail, corner, (seen, seen, f.product(f.steps, f.m)), triangle=True)
    f.give()


@record(frozen=True)
class _Block:
    """A block of unknowns that is being eliminated."""

    original: Matrix
    """Its part of the normal matrix."""
    damping: Value
    """Added to the diagonal."""
    upper: Matrix
    """Becomes its Cholesky factor U."""
    right: Matrix
    """Becomes ``U⁻ᵀ`` times the columns after it: the next block and the tail."""


def _eliminate(module: Module, minus: Product) -> None:
    """Eliminate all blocks in order; gives the smallest pivot relative to its diagonal entry, 0 if one is not positive.

    ``upper`` and ``right`` hold the blocks and are overwritten. Of a group of ``grain`` unknowns only as many groups
    of the next block are seen as have passed in its own: the rest of ``right`` is zero, and left out.
    """
    f = Function(module, ELIMINATE)
    block = f.block
    stride = f.sum(block, f.t)
    with f.loop(0, f.blocks, 1, [number(1.0)]) as blocks:
        j = blocks.index
        first = f.product(j, block)
        original, upper = Matrix(f, f.pivot, block).below(first), Matrix(f, f.upper, block).below(first)
        all_right = Matrix(f, f.right, stride)
        here = _Block(original, f.at(f.damping, first), upper, all_right.below(first))
        _copy(f, original.begin, upper.begin, f.product(block, block))
        _copy(f, Matrix(f, f.after, stride).at(first), here.right.begin, f.product(block, stride))
        with f.loop(0, block) as row:
            entry = upper.at(row.index, row.index)
            f.store(f.apply("add", f.load(entry), f.load(f.at(here.damping, row.index))), entry)
        with f.when(f.test("sgt", j, 0)):
            _hand_on(f, minus, all_right.below(f.product(f.difference(j, 1), block)), here)
        margin = _pivot(f, minus, here, blocks.carried[0])
        tail = here.right.right(block)
        minus(tail, tail, Matrix(f, f.corner, f.t), (f.t, f.t, block), triangle=True)
        blocks.carried = [margin]
    f.give(blocks.carried[0])


def _copy(f: Function, source: Value, target: Value, count: Value) -> None:
    def part(i: Value, width: int) -> None:
        f.store(f.load(f.at(source, i), width), f.at(target, i))

    f.tiles(0, count, (LANES, 1), part)


def _fill(f: Function, target: Value, count: Value) -> None:
    """Zeros."""

    def part(i: Value, width: int) -> None:
        f.store(number(0.0, width), f.at(target, i))

    f.tiles(0, count, (LANES, 1), part)


def _hand_on(f: Function, minus: Product, before: Matrix, here: _Block) -> None:
    """Subtract the Schur complement that the block before leaves."""
    block, grain = f.block, f.grain
    with f.loop(0, block, grain) as group:
        n = group.index
        rows = before.below(n)
        count, columns = f.difference(block, n), rows.right(n)
        minus(rows, columns, here.upper.right(n), (n, grain, count))
        minus(columns, columns, here.upper.below(n, n), (grain, grain, count), triangle=True)
        minus(columns, rows.right(block), here.right.below(n, block), (grain, f.t, count))


def _pivot(f: Function, minus: Product, here: _Block, margin: Value) -> Value:
    """Cholesky factor of a block and what it makes of the columns after it, a few rows at a time."""
    block, grain, upper, right = f.block, f.grain, here.upper, here.right
    start = whole(0)
    for height in ROWS:
        with f.loop(start, block, height, [margin]) as tile:
            r = tile.index
            columns, out = upper.right(r), right.below(r)
            minus(columns, columns, upper.below(r, r), (height, f.difference(block, r), r))
            with f.loop(0, f.sum(r, f.difference(grain, 1)), grain) as group:
                n = group.index
                minus(upper.below(n, r), right.below(n, n), out.right(n), (height, grain, f.difference(r, n)))
            minus(columns, right.right(block), out.right(block), (height, f.t, r))
            tile.carried = [_solve_tile(f, height, here, r, tile.carried[0])]
        start, margin = tile.index, tile.carried[0]
    return margin


def _solve_tile(f: Function, height: int, here: _Block, r: Value, margin: Value) -> Value:
    """Cholesky factor of a few rows that were relieved of those before; returns 0 from all if it does not exist."""
    row, out = here.upper.below(r), here.right.below(r)
    upper = {(p, q): f.load(f.at(row.at(p, r), q)) for p in range(height) for q in range(p, height)}
    scales = []
    for p in range(height):
        pivot = upper[p, p]
        for before in range(p):
            pivot = f.multiply_add(f.apply("neg", upper[before, p]), upper[before, p], pivot)
        diagonal = f.load(here.original.at(f.sum(r, p), f.sum(r, p)))
        ratio = f.apply("div", pivot, f.apply("add", diagonal, f.load(f.at(here.damping, r, p))))
        good = f.apply("and", f.apply("gt", pivot, number(0.0)), f.apply("is_finite", ratio))
        with f.when(f.apply("not", good)):
            f.give(number(0.0))
        margin = f.choose(f.apply("lt", ratio, margin), ratio, margin)
        scales.append(f.apply("div", number(1.0), f.apply("sqrt", pivot)))
        for q in range(p + 1, height):
            value = upper[p, q]
            for before in range(p):
                value = f.multiply_add(f.apply("neg", upper[before, p]), upper[before, q], value)
            upper[p, q] = f.apply("mul", value, scales[p])

    def sweep(rows: Matrix, begin: Value | int) -> None:
        def columns(c: Value, width: int) -> None:
            entries = [rows.at(p, c) for p in range(height)]
            solved: list[Value] = []
            for p, entry in enumerate(entries):
                value = f.load(entry, width)
                for before in range(p):
                    factor = f.spread(f.apply("neg", upper[before, p]), width)
                    value = f.multiply_add(factor, solved[before], value)
                solved.append(f.apply("mul", value, f.spread(scales[p], width)))
            for value, entry in zip(solved, entries, strict=True):
                f.store(value, entry)

        f.tiles(begin, whole(rows.stride), (LANES, 2, 1), columns)

    sweep(row, r)
    sweep(out, 0)
    return margin


def _substitute(module: Module, dot: Function) -> None:
    """Solve ``U_j y_j = −right_j (y_{j+1}, tail)`` for all blocks, last one first.

    ``rest`` holds zeros of the block behind the last one and the tail; it is overwritten.
    """
    f = Function(module, SUBSTITUTE)
    stride = f.sum(f.block, f.t)
    with f.loop(0, f.blocks) as blocks:
        j = f.difference(f.difference(f.blocks, 1), blocks.index)
        upper, right = f.at(f.upper, f.product(j, f.block, f.block)), f.at(f.right, f.product(j, f.block, stride))
        step = f.at(f.step, f.product(j, f.block))
        with f.loop(0, f.block) as rows:
            k = f.difference(f.difference(f.block, 1), rows.index)
            row = f.at(upper, f.product(k, f.sum(f.block, 1)))
            total = f.apply(
                "add",
                f.call(dot, f.at(right, f.product(k, stride)), f.rest, stride),
                f.call(dot, f.at(row, 1), f.at(step, k, 1), rows.index),
            )
            f.store(f.apply("div", f.apply("neg", total), f.load(row)), f.at(step, k))
        _copy(f, step, f.rest, f.block)
    f.give()


def _change(module: Module, dot: Function) -> None:
    """``Σ_j y_jᵀ (A_j y_j + 2 after_j (y_{j+1}, tail))`` of a step; ``rest`` as in `substitute`."""
    f = Function(module, CHANGE)
    stride = f.sum(f.block, f.t)
    with f.loop(0, f.blocks, 1, [number(0.0)]) as blocks:
        j = f.difference(f.difference(f.blocks, 1), blocks.index)
        pivot, after = f.at(f.pivot, f.product(j, f.block, f.block)), f.at(f.after, f.product(j, f.block, stride))
        step = f.at(f.step, f.product(j, f.block))
        with f.loop(0, f.block, 1, blocks.carried) as rows:
            k = rows.index
            row = f.at(pivot, f.product(k, f.sum(f.block, 1)))
            others = f.apply(
                "add",
                f.call(dot, f.at(row, 1), f.at(step, k, 1), f.difference(f.difference(f.block, 1), k)),
                f.call(dot, f.at(after, f.product(k, stride)), f.rest, stride),
            )
            value = f.load(f.at(step, k))
            along = f.multiply_add(f.load(row), value, f.apply("add", others, others))
            rows.carried = [f.multiply_add(value, along, rows.carried[0])]
        blocks.carried = rows.carried
        _copy(f, step, f.rest, f.block)
    f.give(blocks.carried[0])


library = Library("elimination", write, [ADD_STEPS, ELIMINATE, SUBSTITUTE, CHANGE])
