"""Products of small matrices as machine code, for tiles of four by twelve results that stay in registers."""

from __future__ import annotations

from shadowfit.kernels.assembly import Module, Signature
from shadowfit.kernels.loops import LANES, Function, Integer, Value, number
from shadowfit.records import record

ROWS, COLUMNS = (4, 2, 1), (12, 8, 4, 2, 1)
"""Sizes of tiles."""


@record(frozen=True)
class Matrix:
    """A matrix in memory, kept by rows."""

    f: Function
    """The function that is being written."""
    begin: Value
    """Its first number."""
    stride: Integer
    """How far its rows are apart."""

    def at(self, row: Integer, column: Integer = 0) -> Value:
        """Pointer to an entry."""
        return self.f.at(self.begin, self.f.product(row, self.stride), column)

    def below(self, row: Integer, column: Integer = 0) -> Matrix:
        """What is left without the first rows and columns."""
        return Matrix(self.f, self.at(row, column), self.stride)

    def right(self, column: Integer) -> Matrix:
        """What is left without the first columns."""
        return Matrix(self.f, self.f.at(self.begin, column), self.stride)


Size = tuple[Integer, Integer, Integer]
"""Rows and columns of a product, and how many terms its entries have."""


class Product:
    """``out ± leftᵀ right`` as a function of a module.

    With ``across`` the left matrix is not transposed: its columns meet the rows of the right one.
    """

    def __init__(self, module: Module, name: str, *, negative: bool = False, across: bool = False) -> None:
        arguments = "*left left_stride *right right_stride *out out_stride rows columns count triangle"
        self.negative, self.across = negative, across
        self.function = f = Function(module, Signature(name, arguments))

        def row_tile(i: Value, height: int) -> None:
            def tile(c: Value, width: int) -> None:
                self._tile(i, c, height, width)

            f.tiles(f.product(i, f.triangle), f.columns, COLUMNS, tile)

        f.tiles(0, f.rows, ROWS, row_tile)
        f.give()

    def __call__(self, left: Matrix, right: Matrix, out: Matrix, size: Size, *, triangle: bool = False) -> None:
        """Call it in the function that the matrices belong to; a ``triangle`` from the diagonal on (by tiles)."""
        matrices = [number for m in (left, right, out) for number in (m.begin, m.stride)]
        out.f.call(self.function, *matrices, *size, int(triangle))

    def _tile(self, i: Value, c: Value, height: int, width: int) -> None:
        """A tile of the results, in registers while the rows of the matrices are gone through."""
        f, across = self.function, self.across
        lanes = min(width, LANES)
        out = Matrix(f, f.out, f.out_stride)
        entries = [f.at(out.at(f.sum(i, r), c), v) for r in range(height) for v in range(0, width, lanes)]
        first = [f.at(f.left, f.product(i, f.left_stride) if across else i), f.at(f.right, c)]
        with f.loop(0, f.count, carried=[*first, *(f.load(entry, lanes) for entry in entries)]) as loop:
            left, right, *sums = loop.carried
            rows = [f.load(f.at(right, v), lanes) for v in range(0, width, lanes)]
            carried = [f.at(left, 1 if across else f.left_stride), f.at(right, f.right_stride)]
            for r in range(height):
                factor = f.spread(f.load(f.at(left, f.product(r, f.left_stride) if across else r)), lanes)
                factor = f.apply("neg", factor) if self.negative else factor
                beside = sums[r * len(rows) : (r + 1) * len(rows)]
                carried += [f.multiply_add(factor, row, value) for row, value in zip(rows, beside, strict=True)]
            loop.carried = carried
        for value, entry in zip(loop.carried[2:], entries, strict=True):
            f.store(value, entry)


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
