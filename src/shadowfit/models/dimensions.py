"""Units of expressions, from those of the machine's numbers in them.

A unit is powers of kilogramme, metre, second and volt (a volt ampere is a watt; angles and counts have none). Products
and powers of known units are known; sums are where both sides agree. Whole numbers and π are taken for pure numbers;
what any other number stands for (9.81) nobody knows, and what it is a factor or a term of has no known unit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from fractions import Fraction

from shadowfit.models.expressions import CONSTANTS, Expression, dotted

Powers = tuple[Fraction, Fraction, Fraction, Fraction]

SYMBOLS = ("kg", "m", "s", "V")
PURE: Powers = (Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def _powers(*numbers: int) -> Powers:
    kilogrammes, metres, seconds, volts = (Fraction(number) for number in numbers)
    return kilogrammes, metres, seconds, volts


UNITS: dict[str, Powers] = {
    "1": PURE,
    "rad": PURE,
    "kg": _powers(1, 0, 0, 0),
    "m": _powers(0, 1, 0, 0),
    "s": _powers(0, 0, 1, 0),
    "V": _powers(0, 0, 0, 1),
    "Hz": _powers(0, 0, -1, 0),
    "N": _powers(1, 1, -2, 0),
    "W": _powers(1, 2, -3, 0),
    "A": _powers(1, 2, -3, -1),
    "Ohm": _powers(-1, -2, 3, 2),
}
# What engineers write instead of the powers themselves.
USUAL = ("1", "N", "N m", "N m s", "N s/m", "N/m", "W", "A", "Ohm", "N m/A", "N m/V")
RAISED = {"²": 2, "³": 3}


def unit_of(expression: Expression, unit: Callable[[str], str]) -> str | None:
    """Unit of an expression, given those of names; None where it is not known."""
    powers = _of(expression.tree, unit)
    return None if powers is None else text_of(powers)


def powers_of(text: str) -> Powers | None:
    """Powers in a unit such as ``N m s/rad`` or ``kg m²``; None for one with other symbols."""
    powers = PURE
    above, _, below = text.partition("/")
    for part, sign in ((above, 1), (below.strip("()"), -1)):
        for symbol in part.split():
            name, power = re.fullmatch(r"(.*?)([²³]?)", symbol).groups()  # type: ignore[union-attr]
            if name not in UNITS:
                return None
            powers = _product(powers, _raised(UNITS[name], Fraction(sign * RAISED.get(power, 1))))
    return powers


def text_of(powers: Powers) -> str:
    """A unit in words: ``1/s²``, ``N m``."""
    for usual in USUAL:
        if powers_of(usual) == powers:
            return usual
    above = [_symbol(name, power) for name, power in zip(SYMBOLS, powers, strict=True) if power > 0]
    below = [_symbol(name, -power) for name, power in zip(SYMBOLS, powers, strict=True) if power < 0]
    under = f"({' '.join(below)})" if len(below) > 1 else "".join(below)
    return (" ".join(above) or "1") + (f"/{under}" if under else "")


def _symbol(name: str, power: Fraction) -> str:
    raised = {1: "", **{number: sign for sign, number in RAISED.items()}}
    return name + (raised[int(power)] if power in raised else f"^{power}" if power.denominator == 1 else f"^({power})")


def _of(node: ast.expr, unit: Callable[[str], str]) -> Powers | None:
    match node:
        case ast.Constant(value=value):
            return PURE if isinstance(value, int) else None
        case ast.Name(id=name) if name in CONSTANTS:
            return PURE
        case ast.Name() | ast.Attribute():
            return powers_of(unit(dotted(node)))
        case ast.UnaryOp(operand=inner):
            return _of(inner, unit)
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            powers = _of(inner, unit)
            if name == "abs" or powers is None:
                return powers
            return _raised(powers, Fraction(1, 2)) if name == "sqrt" else PURE if powers == PURE else None
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            powers, exponent = _of(left, unit), _fraction(right)
            return None if powers is None or exponent is None else _raised(powers, exponent)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operator, right=right):
            pair = _of(left, unit), _of(right, unit)
            if pair[0] is None or pair[1] is None:
                return None
            return _product(pair[0], _raised(pair[1], Fraction(1 if isinstance(operator, ast.Mult) else -1)))
        case ast.BinOp(left=left, right=right):
            powers, other = _of(left, unit), _of(right, unit)
            return powers if powers == other else None
    return None


def _fraction(node: ast.expr) -> Fraction | None:
    """An exponent that is a number."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return Fraction(value).limit_denominator(12)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            number = _fraction(inner)
            return None if number is None else -number
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            above, below = _fraction(left), _fraction(right)
            return above / below if above is not None and below else None
    return None


def _product(a: Powers, b: Powers) -> Powers:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


def _raised(a: Powers, power: Fraction) -> Powers:
    return a[0] * power, a[1] * power, a[2] * power, a[3] * power
