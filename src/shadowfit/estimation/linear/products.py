"""Products of small tables as machine code, for tiles of four by twelve results that stay in registers."""

from __future__ import annotations

from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Value, number

ROWS, COLUMNS = (4, 2, 1), (12, 8, 4, 2, 1)
"""Sizes of tiles."""


def gram(module: Module, name: str, *, negative: bool = False, across: bool = False) -> Function:
    """``out ± leftᵀ right`` for tables of ``count`` rows; if ``triangle`` is 1, from the diagonal on (by tiles).

    With ``across`` the left table is not transposed: its ``count`` columns meet the rows of the right one.
    """
    arguments = "*left left_stride *right right_stride count *out out_stride rows columns triangle"
    f = Function(module, Signature(name, arguments))

    def row_tile(i: Value, height: int) -> None:
        def tile(c: Value, width: int) -> None:
            _tile(f, i, c, height, width, negative, across)

        f.tiles(f.product(i, f.triangle), f.columns, COLUMNS, tile)

    f.tiles(0, f.rows, ROWS, row_tile)
    f.give()
    return f


def _tile(f: Function, i: Value, c: Value, height: int, width: int, negative: bool, across: bool) -> None:
    """A tile of the results, in registers while the rows of the tables are gone through."""
    lanes = min(width, LANES)
    places = [
        f.at(f.out, f.product(f.sum(i, r), f.out_stride), c, v) for r in range(height) for v in range(0, width, lanes)
    ]
    begin = f.product(i, f.left_stride) if across else i
    first = [f.at(f.left, begin), f.at(f.right, c)]
    with f.loop(0, f.count, carried=[*first, *(f.load(place, lanes) for place in places)]) as loop:
        left, right, *sums = loop.carried
        rows = [f.load(f.at(right, v), lanes) for v in range(0, width, lanes)]
        carried = [f.at(left, 1 if across else f.left_stride), f.at(right, f.right_stride)]
        for r in range(height):
            factor = f.spread(f.load(f.at(left, f.product(r, f.left_stride) if across else r)), lanes)
            factor = f.apply("neg", factor) if negative else factor
            beside = sums[r * len(rows) : (r + 1) * len(rows)]
            carried += [f.multiply_add(factor, row, value) for row, value in zip(rows, beside, strict=True)]
        loop.carried = carried
    for value, place in zip(loop.carried[2:], places, strict=True):
        f.store(value, place)


def dot_product(module: Module) -> Function:
    """Scalar product of two vectors of ``count`` numbers."""
    f = Function(module, Signature("dot", "*a *b count", gives=True))
    zero = number(0.0, LANES)
    with f.loop(0, f.count, 2 * LANES, [zero, zero]) as pairs:
        pairs.carried = [
            f.multiply_add(f.load(f.at(f.a, pairs.index, v), LANES), f.load(f.at(f.b, pairs.index, v), LANES), value)
            for v, value in zip((0, LANES), pairs.carried, strict=True)
        ]
    total = f.apply("add", *pairs.carried)
    parts = [f.lane(total, i) for i in range(LANES)]
    first = f.apply("add", f.apply("add", parts[0], parts[2]), f.apply("add", parts[1], parts[3]))
    with f.loop(pairs.index, f.count, 1, [first]) as rest:
        rest.carried = [f.multiply_add(f.load(f.at(f.a, rest.index)), f.load(f.at(f.b, rest.index)), rest.carried[0])]
    f.give(rest.carried[0])
    return f
