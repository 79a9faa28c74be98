"""Expressions of a machine's numbers, such as ``sqrt(pendulum.mass * 9.81 * 0.12 / pendulum.inertia.yy) / (2 * pi)``.

Read by Python's own parser and evaluated here, node by node: numbers, dotted names, ``+ - * / **``, parentheses, ``pi``
and a few functions; nothing else is ever run. Values carry their derivatives along (forward mode):

    f(x) with x = (v, ∂v) is (f(v), f'(v) ∂v)
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping

from shadowfit.errors import ShadowfitError, nearest
from shadowfit.records import record

# Function → its value and its derivative.
FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "sin": (math.sin, math.cos),
    "cos": (math.cos, lambda x: -math.sin(x)),
    "exp": (math.exp, math.exp),
    "log": (math.log, lambda x: 1.0 / x),
    "abs": (abs, lambda x: math.copysign(1.0, x)),
}
CONSTANTS = {"pi": math.pi}
# Longest text, and most nested parts: what people write is far below, and deeper trees end Python's stack.
LONGEST, DEEPEST = 2000, 50


class ExpressionError(ShadowfitError):
    """An expression that cannot be read or evaluated."""


@record(frozen=True)
class Dual:
    """A value and its derivatives by the named numbers."""

    value: float
    slopes: Mapping[str, float] = dataclasses.field(default_factory=dict)


@record(frozen=True)
class Expression:
    """An expression whose form has been checked."""

    text: str
    tree: ast.expr
    unit: str | None = None
    """As it was stated."""

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The machine's numbers in it, each once."""
        return tuple(dict.fromkeys(_names(self.tree)))

    def evaluate(self, values: Mapping[str, float]) -> Dual:
        """Value and derivatives by each name.

        Raises:
            ExpressionError: a name has no value, or the value is not a finite number.
        """
        try:
            result = _evaluate(self.tree, values)
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            if isinstance(error, ShadowfitError):
                raise
            raise ExpressionError(f"{self.text}: has no value here ({error})") from error
        if not all(math.isfinite(number) for number in (result.value, *result.slopes.values())):
            raise ExpressionError(f"{self.text}: has no finite value here")
        return result


def parse_expression(text: str) -> Expression:
    """Read an expression.

    Raises:
        ExpressionError: it has anything in it that is not allowed.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"{text[:40]}…: longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"{text}: not an expression ({reason})") from error
    _check(tree, text, 0)
    return Expression(text.strip(), tree)


def _check(node: ast.expr, text: str, depth: int) -> None:
    """Raise for what is not arithmetic."""
    if depth > DEEPEST:
        raise ExpressionError(f"{text}: more than {DEEPEST} parts inside each other")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return
        case ast.Name() | ast.Attribute() if dotted(node):
            return
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=inner):
            _check(inner, text, depth + 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow(), right=right):
            _check(left, text, depth + 1)
            _check(right, text, depth + 1)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]):
            if name not in FUNCTIONS:
                raise ExpressionError(f"{text}: there is no function {name!r}{nearest(name, FUNCTIONS)}")
            _check(inner, text, depth + 1)
        case _:
            raise ExpressionError(
                f"{text}: {ast.unparse(node)[:60]!r} is not allowed; write numbers, names such as arm.mass, "
                f"+ - * / **, pi and functions of one number: {', '.join(FUNCTIONS)}"
            )


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of a chain of names; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def _names(node: ast.expr) -> list[str]:
    match node:
        case ast.Name(id=name) if name in CONSTANTS:
            return []
        case ast.Name() | ast.Attribute():
            return [dotted(node)]
        case ast.UnaryOp(operand=inner):
            return _names(inner)
        case ast.BinOp(left=left, right=right):
            return _names(left) + _names(right)
        case ast.Call(args=[inner]):
            return _names(inner)
    return []


def _evaluate(node: ast.expr, values: Mapping[str, float]) -> Dual:
    match node:
        case ast.Constant(value=int() | float() as value):
            return Dual(float(value))
        case ast.Name(id=name) if name in CONSTANTS:
            return Dual(CONSTANTS[name])
        case ast.Name() | ast.Attribute():
            name = dotted(node)
            if name not in values:
                raise ExpressionError(f"there is no number {name!r}{nearest(name, values)}")
            return Dual(values[name], {name: 1.0})
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            operand = _evaluate(inner, values)
            return Dual(-operand.value, _combined((-1.0, operand)))
        case ast.UnaryOp(operand=inner):
            return _evaluate(inner, values)
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            function, slope = FUNCTIONS[name]
            operand = _evaluate(inner, values)
            return Dual(function(operand.value), _combined((slope(operand.value), operand)) if operand.slopes else {})
        case ast.BinOp(left=left, op=operator, right=right):
            return _operate(operator, _evaluate(left, values), _evaluate(right, values))
    raise ExpressionError(f"{ast.unparse(node)[:60]!r} is not allowed")  # checked before


def _operate(operator: ast.operator, a: Dual, b: Dual) -> Dual:
    match operator:
        case ast.Add():
            return Dual(a.value + b.value, _combined((1.0, a), (1.0, b)))
        case ast.Sub():
            return Dual(a.value - b.value, _combined((1.0, a), (-1.0, b)))
        case ast.Mult():
            return Dual(a.value * b.value, _combined((b.value, a), (a.value, b)))
        case ast.Div():
            value = a.value / b.value
            return Dual(value, _combined((1.0 / b.value, a), (-value / b.value, b)))
    return _power(a, b)


def _power(a: Dual, b: Dual) -> Dual:
    """``aᵇ``; the exponent's own slopes, which need ``log a``, only where it has any."""
    value = a.value**b.value
    if isinstance(value, complex):
        raise ExpressionError(f"{a.value:g} ** {b.value:g} is not a real number")
    base = (b.value * a.value ** (b.value - 1.0), a) if a.slopes else (0.0, Dual(0.0))
    exponent = (value * math.log(a.value), b) if b.slopes else (0.0, Dual(0.0))
    return Dual(value, _combined(base, exponent))


def _combined(*terms: tuple[float, Dual]) -> dict[str, float]:
    """``Σ factor ∂``."""
    slopes: dict[str, float] = {}
    for factor, dual in terms:
        for name, slope in dual.slopes.items():
            slopes[name] = slopes.get(name, 0.0) + factor * slope
    return slopes
