"""Loops of the normal equations of a trajectory (:mod:`front`), as machine code.

All of them are the same product at heart, of columns of a table with themselves (:mod:`products`). A block of B
unknowns is kept by rows, ``pivot`` (B, B), of which only the upper triangle counts, and ``after`` (B, B + t): columns
of the next block and of the tail.
"""

from __future__ import annotations

from shadowfit.estimation.linear.products import ROWS, dot_product, gram
from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Library, Loop, Value, number, whole

ADD_STEPS = Signature(
    "add_steps",
    "*wide steps m window size step first group t low high clear "
    "*pivot *after *border_pivot *border_after *corner *squares",
)
ELIMINATE = Signature("eliminate", "blocks block t grain *pivot *after *damping *upper *right *corner", gives=True)
SUBSTITUTE = Signature("substitute", "blocks block t *upper *right *rest *step")
CHANGE = Signature("change", "blocks block t *pivot *after *step *rest", gives=True)


def write(module: Module) -> None:
    """All functions."""
    plus, minus = gram(module, "plus"), gram(module, "minus", negative=True)
    dot = dot_product(module)
    _add_steps(module, plus)
    _eliminate(module, minus)
    _substitute(module, dot)
    _change(module, dot)


def _add_steps(module: Module, plus: Function) -> None:
    """Add the products of rows ``[window nodes | tail]`` of consecutive steps, from ``step`` on.

    Their nodes begin ``first`` behind that of the step. Blocks from ``low`` to ``high`` are added to, after they were
    cleared if ``clear`` is 1; what belongs to the block before or behind goes to two of its own.
    """
    f = Function(module, ADD_STEPS)
    block = f.product(f.group, f.size)
    stride = f.sum(block, f.t)
    states = f.product(f.window, f.size)
    width = f.sum(states, f.t)

    def place(j: Value) -> tuple[Value, Value]:
        """Where a block is."""
        behind = f.test("sge", j, f.high)
        aside = f.apply("or", f.test("slt", j, f.low), behind)
        which = f.choose(aside, f.one_if(behind), j)
        pivot = f.choose(aside, f.border_pivot, f.pivot)
        after = f.choose(aside, f.border_after, f.after)
        return f.at(pivot, f.product(which, block, block)), f.at(after, f.product(which, block, stride))

    def clear(j: Value, wanted: Value) -> None:
        """Set a block to zero, if it is wanted and one of their own."""
        with f.when(f.apply("and", wanted, f.test("slt", j, f.high))):
            _fill(f, f.at(f.pivot, f.product(j, block, block)), f.product(block, block))
            _fill(f, f.at(f.after, f.product(j, block, stride)), f.product(block, stride))

    cleared = f.test("eq", f.clear, 1)
    clear(f.low, cleared)
    with f.loop(0, f.steps) as step:
        rows = f.at(f.wide, f.product(step.index, f.m, width))
        # The first step of a block is the first that reaches the next one.
        now = f.sum(f.step, step.index)
        begun = f.test("eq", f.remainder(now, f.group), 0)
        clear(f.sum(f.quotient(now, f.group), 1), f.apply("and", cleared, begun))
        with f.loop(0, f.m) as row:
            residual = f.load(f.at(rows, f.product(f.sum(row.index, 1), width), -1))
            total = f.at(f.squares, row.index)
            f.store(f.multiply_add(residual, residual, f.load(total)), total)
        node = f.sum(now, f.first)
        j = f.quotient(node, f.group)
        i = f.difference(node, f.product(j, f.group))
        inside = f.product(f.smaller(f.window, f.difference(f.group, i)), f.size)
        outside = f.difference(states, inside)
        tail, others = f.at(rows, states), f.at(rows, inside)
        pivot, after = place(j)
        begin = f.product(i, f.size)
        diagonal, out = f.at(pivot, f.product(begin, block), begin), f.at(after, f.product(begin, stride))
        f.call(plus, rows, width, rows, width, f.m, diagonal, block, inside, inside, 1)
        f.call(plus, rows, width, others, width, f.m, out, stride, inside, outside, 0)
        f.call(plus, rows, width, tail, width, f.m, f.at(out, block), stride, inside, f.t, 0)
        with f.when(f.test("sgt", outside, 0)):
            pivot, after = place(f.sum(j, 1))
            f.call(plus, others, width, others, width, f.m, pivot, block, outside, outside, 1)
            f.call(plus, others, width, tail, width, f.m, f.at(after, block), stride, outside, f.t, 0)
    tail = f.at(f.wide, states)
    f.call(plus, tail, width, tail, width, f.product(f.steps, f.m), f.corner, f.t, f.t, f.t, 1)
    f.give()


def _eliminate(module: Module, minus: Function) -> None:
    """Eliminate all blocks in order; gives the smallest pivot relative to its diagonal entry, 0 if one is not positive.

    ``upper`` and ``right`` hold the blocks and are overwritten. Of a group of ``grain`` unknowns only as many groups
    of the next block are seen as have passed in its own: the rest of ``right`` is zero, and left out.
    """
    f = Function(module, ELIMINATE)
    block = f.block
    stride = f.sum(block, f.t)
    with f.loop(0, f.blocks, 1, [number(1.0)]) as blocks:
        j = blocks.index
        upper, right = f.at(f.upper, f.product(j, block, block)), f.at(f.right, f.product(j, block, stride))
        original = f.at(f.pivot, f.product(j, block, block))
        damping = f.at(f.damping, f.product(j, block))
        _copy(f, original, upper, f.product(block, block))
        _copy(f, f.at(f.after, f.product(j, block, stride)), right, f.product(block, stride))
        with f.loop(0, block) as row:
            entry = f.at(upper, f.product(row.index, f.sum(block, 1)))
            f.store(f.apply("add", f.load(entry), f.load(f.at(damping, row.index))), entry)
        with f.when(f.test("sgt", j, 0)):
            _hand_on(f, minus, f.at(f.right, f.product(f.difference(j, 1), block, stride)), upper, right)
        margin = _pivot(f, minus, original, damping, upper, right, blocks)
        tail = f.at(right, block)
        f.call(minus, tail, stride, tail, stride, block, f.corner, f.t, f.t, f.t, 1)
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


def _hand_on(f: Function, minus: Function, before: Value, upper: Value, right: Value) -> None:
    """Subtract the Schur complement that the block before leaves."""
    block, grain, stride = f.block, f.grain, f.sum(f.block, f.t)
    with f.loop(0, block, grain) as group:
        n = group.index
        rows = f.at(before, f.product(n, stride))
        count = f.difference(block, n)
        rows_here = f.at(rows, n)
        f.call(minus, rows, stride, rows_here, stride, count, f.at(upper, n), block, n, grain, 0)
        f.call(
            minus,
            rows_here,
            stride,
            rows_here,
            stride,
            count,
            f.at(upper, f.product(n, block), n),
            block,
            grain,
            grain,
            1,
        )
        out = f.at(right, f.product(n, stride), block)
        f.call(minus, rows_here, stride, f.at(rows, block), stride, count, out, stride, grain, f.t, 0)


def _pivot(
    f: Function, minus: Function, original: Value, damping: Value, upper: Value, right: Value, blocks: Loop
) -> Value:
    """Cholesky factor of a block and what it makes of the columns after it, a few rows at a time."""
    block, grain, stride = f.block, f.grain, f.sum(f.block, f.t)
    start, margin = whole(0), blocks.carried[0]
    for height in ROWS:
        with f.loop(start, block, height, [margin]) as tile:
            r = tile.index
            row, out = f.at(upper, f.product(r, block)), f.at(right, f.product(r, stride))
            f.call(
                minus,
                f.at(upper, r),
                block,
                f.at(upper, r),
                block,
                r,
                f.at(row, r),
                block,
                height,
                f.difference(block, r),
                0,
            )
            with f.loop(0, f.sum(r, f.difference(grain, 1)), grain) as group:
                n = group.index
                f.call(
                    minus,
                    f.at(upper, f.product(n, block), r),
                    block,
                    f.at(right, f.product(n, stride), n),
                    stride,
                    f.difference(r, n),
                    f.at(out, n),
                    stride,
                    height,
                    grain,
                    0,
                )
            f.call(
                minus, f.at(upper, r), block, f.at(right, block), stride, r, f.at(out, block), stride, height, f.t, 0
            )
            tile.carried = [_solve_tile(f, height, original, damping, row, out, r, tile.carried[0])]
        start, margin = tile.index, tile.carried[0]
    return margin


def _solve_tile(
    f: Function, height: int, original: Value, damping: Value, row: Value, out: Value, r: Value, margin: Value
) -> Value:
    """Cholesky factor of a few rows that were relieved of those before; returns 0 from all if it does not exist."""
    block, stride = f.block, f.sum(f.block, f.t)
    upper = {(p, q): f.load(f.at(row, f.product(p, block), r, q)) for p in range(height) for q in range(p, height)}
    scales = []
    for p in range(height):
        pivot = upper[p, p]
        for before in range(p):
            pivot = f.multiply_add(f.apply("neg", upper[before, p]), upper[before, p], pivot)
        place = f.product(f.sum(r, p), f.sum(block, 1))
        ratio = f.apply("div", pivot, f.apply("add", f.load(f.at(original, place)), f.load(f.at(damping, r, p))))
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

    def sweep(base: Value, length: Value, begin: Value | int) -> None:
        def columns(c: Value, width: int) -> None:
            places = [f.at(base, f.product(p, length), c) for p in range(height)]
            solved: list[Value] = []
            for p, place in enumerate(places):
                value = f.load(place, width)
                for before in range(p):
                    factor = f.spread(f.apply("neg", upper[before, p]), width)
                    value = f.multiply_add(factor, solved[before], value)
                solved.append(f.apply("mul", value, f.spread(scales[p], width)))
            for value, place in zip(solved, places, strict=True):
                f.store(value, place)

        f.tiles(begin, length, (LANES, 2, 1), columns)

    sweep(row, block, r)
    sweep(out, stride, 0)
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
