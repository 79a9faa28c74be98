"""Rules for the derivatives of scalar operations, in the forms that rows of the table need.

They are those of JAX also where there is no derivative: ties share it, ``abs`` has 1 at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shadowfit.kernels.forward import SlopeRule, Slopes
from shadowfit.kernels.scalars import Node, Scalars


def none(s: Scalars, operands: Sequence[Node], moving: Sequence[Slopes], value: Node) -> Slopes:
    """Of what is constant wherever it has a derivative, or held."""
    del s, operands, moving, value
    return {}


def factors(*partials: Callable[..., Node]) -> SlopeRule:
    """``Σ_i ∂y/∂x_i dx_i``, with the partial derivatives as functions ``(s, *operands, value)``."""

    def rule(s: Scalars, operands: Sequence[Node], moving: Sequence[Slopes], value: Node) -> Slopes:
        pairs = [(partials[i](s, *operands, value), moving[i]) for i in range(len(partials)) if moving[i]]
        return weighted(s, pairs)

    return rule


def weighted(s: Scalars, pairs: Sequence[tuple[Node, Slopes]]) -> Slopes:
    """Sum of derivatives times a factor each."""
    total: Slopes = {}
    for factor, slopes in pairs:
        for column, slope in slopes.items():
            term = s.mul(factor, slope)
            total[column] = s.add(total[column], term) if column in total else term
    return {column: node for column, node in total.items() if node != s.zero}


def joined(join: Callable[[Scalars, Node, Node], Node]) -> SlopeRule:
    """Of a sum or difference."""

    def rule(s: Scalars, operands: Sequence[Node], moving: Sequence[Slopes], value: Node) -> Slopes:
        del operands, value
        return _columnwise(s, moving[0], moving[1], lambda a, b: join(s, a, b))

    return rule


def chosen(s: Scalars, operands: Sequence[Node], moving: Sequence[Slopes], value: Node) -> Slopes:
    """Of one of two: chosen as they are, so that what is not finite in the other does not matter."""
    del value
    return _columnwise(s, moving[2], moving[1], lambda if_true, if_false: s.select(operands[0], if_true, if_false))


def given(s: Scalars, operands: Sequence[Node], moving: Sequence[Slopes], value: Node) -> Slopes:
    """Of a value whose derivatives are operands: ``(value, x_1, ∂_1, x_2, ∂_2, …)``."""
    del value
    return weighted(s, list(zip(operands[2::2], moving[1::2], strict=True)))


def extreme(s: Scalars, operands: Sequence[Node], moving: Sequence[Slopes], value: Node) -> Slopes:
    """Of the largest or smallest of several: the mean over those that are."""
    share = [s.select(s.compare("eq", x, value), s.one, s.zero) for x in operands]
    count = share[0]
    for one in share[1:]:
        count = s.add(count, one)
    total = weighted(s, list(zip(share, moving, strict=True)))
    return {column: s.div(node, count) for column, node in total.items()}


def share(s: Scalars, this: Node, other: Node, value: Node) -> Node:
    """``∂ max/∂ this`` (or min): one, half at a tie, zero."""
    above = s.select(s.compare("eq", this, value), s.one, s.zero)
    below = s.select(s.compare("eq", other, value), s.const(2.0), s.one)
    return s.div(above, below)


def within(s: Scalars, *tests: tuple[str, Node, Node]) -> Node:
    """One where all comparisons hold, zero elsewhere."""
    truth = s.one
    for name, a, b in tests:
        truth = s.logic("and", truth, s.compare(name, a, b))
    return s.select(truth, s.one, s.zero)


def _columnwise(s: Scalars, first: Slopes, second: Slopes, join: Callable[[Node, Node], Node]) -> Slopes:
    joined = {c: join(first.get(c, s.zero), second.get(c, s.zero)) for c in {**first, **second}}
    return {column: node for column, node in joined.items() if node != s.zero}
