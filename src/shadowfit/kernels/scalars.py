"""Scalar expressions, each one stored once: a program without loops, simplified while it is built.

A node is a number: its place in the list of operations. Equal operations on equal nodes are the same node, and what
is known to be zero, one or constant is folded away. That is what makes forward-mode derivatives along unit vectors
cheap: most of their terms vanish here, before anything is compiled.

Two liberties are taken: what is multiplied by a known zero is zero, whatever it is (XLA makes NaN of ``0 · inf``), as
is ``a − a``; and the sign of a zero is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.errors import TooLargeError
from shadowfit.kernels.row import TABLE

Node = int
Operation = tuple[Any, ...]
"""Name (of a row of the table) and operands: nodes, or the value of a ``const``, or the place of an ``input``."""


class Scalars:
    """A growing list of operations."""

    def __init__(self, largest: int) -> None:
        """``largest`` is the number of operations beyond which `TooLargeError` is raised."""
        self.operations: list[Operation] = []
        self.largest = largest
        self._known: dict[Operation, Node] = {}
        self._value: dict[Node, float] = {}
        self.zero, self.one = self.const(0.0), self.const(1.0)

    def _node(self, *operation: int | float | str) -> Node:
        node = self._known.get(operation)
        if node is None:
            node = len(self.operations)
            if node >= self.largest:
                raise TooLargeError(f"the program has more than {self.largest} operations")
            self.operations.append(operation)
            self._known[operation] = node
        return node

    def const(self, value: float) -> Node:
        """A number known now."""
        value = float(value) + 0.0  # no negative zero: it would be another node
        node = self._node("const", "nan" if value != value else value)
        self._value[node] = value
        return node

    def input(self, place: int) -> Node:
        """A number known when the program runs."""
        return self._node("input", place)

    def value(self, node: Node) -> float | None:
        """The value of a constant; None if it is not known."""
        return self._value.get(node)

    def add(self, a: Node, b: Node) -> Node:
        """``a + b``."""
        if a == self.zero:
            return b
        if b == self.zero:
            return a
        known_a, known_b = self._value.get(a), self._value.get(b)
        if known_a is not None and known_b is not None:
            return self.const(known_a + known_b)
        if self.operations[b][0] == "neg":
            return self.sub(a, int(self.operations[b][1]))
        if self.operations[a][0] == "neg":
            return self.sub(b, int(self.operations[a][1]))
        return self._node("add", a, b) if a < b else self._node("add", b, a)

    def sub(self, a: Node, b: Node) -> Node:
        """``a − b``."""
        if b == self.zero:
            return a
        if a == b:
            return self.zero
        known_a, known_b = self._value.get(a), self._value.get(b)
        if known_a is not None and known_b is not None:
            return self.const(known_a - known_b)
        if a == self.zero:
            return self.neg(b)
        if self.operations[b][0] == "neg":
            return self.add(a, int(self.operations[b][1]))
        return self._node("sub", a, b)

    def neg(self, a: Node) -> Node:
        """``−a``."""
        known = self._value.get(a)
        if known is not None:
            return self.const(-known)
        name = self.operations[a][0]
        if name == "neg":
            return int(self.operations[a][1])
        if name == "sub":
            return self.sub(int(self.operations[a][2]), int(self.operations[a][1]))
        return self._node("neg", a)

    def mul(self, a: Node, b: Node) -> Node:
        """``a b``; zero if one of them is known to be zero, whatever the other."""
        if a == self.zero or b == self.zero:
            return self.zero
        if a == self.one:
            return b
        if b == self.one:
            return a
        known_a, known_b = self._value.get(a), self._value.get(b)
        if known_a is not None and known_b is not None:
            return self.const(known_a * known_b)
        if known_a == -1.0:
            return self.neg(b)
        if known_b == -1.0:
            return self.neg(a)
        negative_a, negative_b = self.operations[a][0] == "neg", self.operations[b][0] == "neg"
        if negative_a or negative_b:
            product = self.mul(
                int(self.operations[a][1]) if negative_a else a, int(self.operations[b][1]) if negative_b else b
            )
            return product if negative_a and negative_b else self.neg(product)
        return self._node("mul", a, b) if a < b else self._node("mul", b, a)

    def div(self, a: Node, b: Node) -> Node:
        """``a / b``; zero if a is known to be zero."""
        if a == self.zero and b != self.zero:
            return self.zero
        if b == self.one:
            return a
        known_a, known_b = self._value.get(a), self._value.get(b)
        if known_a is not None and known_b:
            return self.const(known_a / known_b)
        return self._node("div", a, b)

    def compare(self, name: str, a: Node, b: Node) -> Node:
        """A comparison; constants one and zero stand for true and false."""
        return self.call(name, a, b)

    def logic(self, name: str, a: Node, b: Node) -> Node:
        """``and``, ``or``, ``xor`` of truth values."""
        if name == "xor":
            if a in (self.zero, self.one) or b in (self.zero, self.one):
                known, other = (a, b) if a in (self.zero, self.one) else (b, a)
                return other if known == self.zero else self.negation(other)
            return self._node("xor", a, b)
        neutral, absorbing = (self.one, self.zero) if name == "and" else (self.zero, self.one)
        if absorbing in (a, b):
            return absorbing
        if a == neutral:
            return b
        if b == neutral:
            return a
        return self._node(name, a, b)

    def negation(self, a: Node) -> Node:
        """``not a``."""
        if a in (self.zero, self.one):
            return self.one if a == self.zero else self.zero
        return self._node("not", a)

    def select(self, condition: Node, if_true: Node, if_false: Node) -> Node:
        """One of two."""
        if condition == self.one or if_true == if_false:
            return if_true
        if condition == self.zero:
            return if_false
        return self._node("select_n", condition, if_false, if_true)

    def call(self, name: str, *arguments: Node) -> Node:
        """The operation of a row, computed now if all of its operands are known."""
        known = [self._value.get(a) for a in arguments]
        if any(value is None for value in known):
            return self._node(name, *arguments)
        fold = TABLE[name].fold
        assert fold is not None
        with np.errstate(all="ignore"):
            return self.const(float(fold(*(np.float64(value) for value in known))))

    def hold(self, a: Node) -> Node:
        """``a``, as a constant for derivatives."""
        return a

    def sloped(self, value: Node, slopes: Callable[[], Iterable[tuple[Node, Node]]]) -> Node:
        """``value``, whose derivatives are given: pairs of an operand and the derivative by it."""
        del slopes
        return value

    def again(self, name: str, operands: Sequence[Node]) -> Node:
        """An operation of another program, on operands of this one."""
        make = _SIMPLIFIED.get(name)
        return self.call(name, *operands) if make is None else make(self, *operands)


def _sloped_again(scalars: Scalars, value: Node, *pairs: Node) -> Node:
    return scalars.sloped(value, lambda: list(zip(pairs[::2], pairs[1::2], strict=True)))


_SIMPLIFIED: dict[str, Callable[..., Node]] = {
    "add": Scalars.add,
    "sub": Scalars.sub,
    "neg": Scalars.neg,
    "mul": Scalars.mul,
    "div": Scalars.div,
    "not": Scalars.negation,
    "and": lambda s, a, b: s.logic("and", a, b),
    "or": lambda s, a, b: s.logic("or", a, b),
    "xor": lambda s, a, b: s.logic("xor", a, b),
    "select_n": lambda s, condition, if_false, if_true: s.select(condition, if_true, if_false),
    "stop_gradient": lambda s, a: s.hold(a),
    "custom_jvp_call": _sloped_again,
}
"""Operations that are simplified by what is known of some of their operands."""
