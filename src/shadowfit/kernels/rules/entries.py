"""Operations entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray, Rule, Value, entries_of
from shadowfit.kernels.errors import UnsupportedError
from shadowfit.kernels.row import TABLE
from shadowfit.kernels.scalars import Node, Scalars
from shadowfit.kernels.unrolling import Unrolling

Operation = Callable[..., Node]
"""``(scalars, *nodes) → node``."""


def one_by_one(unrolling: Unrolling, equation: Any, arguments: Sequence[Value], operation: Operation) -> NodeArray:
    """The operation on each entry."""
    scalars = unrolling.scalars
    shape = equation.outvars[0].aval.shape
    columns = [np.broadcast_to(entries_of(scalars, x), shape).ravel().tolist() for x in arguments]
    results = [operation(scalars, *nodes) for nodes in zip(*columns, strict=True)]
    return NodeArray(np.array(results, dtype=np.int64).reshape(shape))


def elementwise(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """The operation of the same name on each entry; by NumPy if all is known."""
    name = equation.primitive.name
    fold = TABLE[name].fold
    if fold is not None and not any(isinstance(x, NodeArray) for x in arguments):
        with np.errstate(all="ignore"):
            return np.asarray(fold(*arguments)).astype(equation.outvars[0].aval.dtype)
    return one_by_one(unrolling, equation, arguments, lambda s, *nodes: s.again(name, nodes))


def composed(operation: Operation, slope: Operation | None = None) -> Rule:
    """Several operations in place of one; ``slope(scalars, x, y)`` is dy/dx if it is not to follow from theirs."""

    def sloped(s: Scalars, *nodes: Node) -> Node:
        value = operation(s, *nodes)
        if slope is None:
            return value
        return s.sloped(value, lambda: [(nodes[0], slope(s, nodes[0], value))])

    def rule(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
        return one_by_one(unrolling, equation, arguments, sloped)

    return rule


def power(s: Scalars, x: Node, exponent: int) -> Node:
    """``xⁿ`` by repeated squaring."""
    result, base, left = s.one, x, abs(exponent)
    while left:
        if left & 1:
            result = s.mul(result, base)
        base, left = (s.mul(base, base) if left > 1 else base), left >> 1
    return s.div(s.one, result) if exponent < 0 else result


def integer_power(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """``xⁿ``, with the slope ``n xⁿ⁻¹``."""
    n = equation.params["y"]
    rule = composed(lambda s, x: power(s, x, n), lambda s, x, _: s.mul(s.const(n), power(s, x, n - 1)) if n else s.zero)
    return rule(unrolling, equation, arguments)


def sign(s: Scalars, x: Node) -> Node:
    """±1, zero at zero, NaN of NaN; without slope."""
    negative = s.select(s.compare("lt", x, s.zero), s.const(-1.0), s.hold(x))
    return s.select(s.compare("gt", x, s.zero), s.one, negative)


def select(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """One of two."""
    if len(arguments) != 3 or equation.invars[0].aval.dtype != np.bool_:
        raise UnsupportedError("a choice among more than two", "select_n")
    if equation.outvars[0].aval.dtype != np.bool_:
        return elementwise(unrolling, equation, arguments)

    def pick(s: Scalars, condition: Node, if_false: Node, if_true: Node) -> Node:
        return s.logic("or", s.logic("and", condition, if_true), s.logic("and", s.negation(condition), if_false))

    return one_by_one(unrolling, equation, arguments, pick)


def rounded(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """To the nearest integer; from the middle to the even one, or away from zero."""
    mode = equation.params["rounding_method"].name
    name = {"TO_NEAREST_EVEN": "round", "AWAY_FROM_ZERO": "round_away"}[mode]
    return one_by_one(unrolling, equation, arguments, lambda s, x: s.call(name, x))


def convert(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """Numbers stay what they are (double); truth values and numbers become each other."""
    (value,) = arguments
    before, after = equation.invars[0].aval.dtype, np.dtype(equation.params["new_dtype"])
    if not isinstance(value, NodeArray):
        return np.asarray(value).astype(after)
    if before == after:
        return value
    if before == np.bool_:
        return one_by_one(unrolling, equation, arguments, lambda s, x: s.select(x, s.one, s.zero))
    if after == np.bool_:
        return one_by_one(unrolling, equation, arguments, lambda s, x: s.compare("ne", x, s.zero))
    if not np.issubdtype(after, np.floating):
        raise UnsupportedError("a number of the data is made an integer", "convert_element_type")
    return value


def same(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """Nothing happens."""
    del unrolling, equation
    return list(arguments)


def reduce_precision(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """Nothing, unless numbers are to lose digits."""
    if equation.params["exponent_bits"] < 11 or equation.params["mantissa_bits"] < 52:
        raise UnsupportedError("numbers of less than double precision", "reduce_precision")
    return same(unrolling, equation, arguments)
