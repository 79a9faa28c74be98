"""Sines, cosines, tangents and angles as code of their own: the C library takes one number at a time.

Each is a function beside the program, called with a whole vector: a polynomial on a small interval (the coefficients
of Sun's fdlibm), behind a reduction to it where some lane needs one. Every step is rounded in the same way in vectors
and alone. What is too large, infinite, or zero where that matters, is asked of the C library, lane by lane.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from shadowfit.kernels import code
from shadowfit.kernels.assembly import Lines, Width

# Largest argument [rad] whose multiple of π/2 is taken off here: what is left then fits into a number exactly.
LARGEST = 1e5
# π/2 as a sum of three numbers.
QUARTER = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
# Arc tangent below 7/16.
ARC = (
    -3.33333333333329318027e-01,
    1.99999999998764832476e-01,
    -1.42857142725034663711e-01,
    1.11111104054623557880e-01,
    -9.09088713343650656196e-02,
    7.69187620504482999495e-02,
    -6.66107313738753120669e-02,
    5.83357013379057348645e-02,
    -4.97687799461593236017e-02,
    3.65315727442169155270e-02,
    -1.62858201153657823623e-02,
)
# Ratio from which on an angle is counted from π/4: tan π/8.
EIGHTH = 0.41421356237309503
# Lengths between which ratios neither overflow nor vanish.
SHORTEST, LONGEST = 1e-290, 1e290


class _Writer:
    """Operations on numbers of one width."""

    def __init__(self, width: Width) -> None:
        self.width = width
        self.lines = Lines()

    def number(self, value: float | str) -> str:
        """A constant as an operand."""
        return value if isinstance(value, str) else self.width.constant(value)

    def do(self, operation: str, *operands: float | str) -> str:
        """An instruction on numbers."""
        return code.instruction(operation)(self.lines, self.width, [self.number(x) for x in operands])

    def call(self, function: str, *operands: float | str) -> str:
        """A function that LLVM knows."""
        return code.intrinsic(f"llvm.{function}")(self.lines, self.width, [self.number(x) for x in operands])

    def choose(self, condition: str, if_true: float | str, if_false: float | str) -> str:
        """One of two."""
        operands = [condition, self.number(if_false), self.number(if_true)]
        return code.choice(self.lines, self.width, operands)

    def polynomial(self, at: str, coefficients: Sequence[float]) -> str:
        """From the constant on: even and odd powers by themselves, since each step waits for the one before it."""
        square = self.do("fmul", at, at)
        even, odd = (self._chain(square, coefficients[i::2]) for i in (0, 1))
        return self.call("fma", odd, at, even)

    def _chain(self, at: str, coefficients: Sequence[float]) -> str:
        """Horner's scheme."""
        value: float | str = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            value = self.call("fma", value, at, coefficient)
        return self.number(value)

    def all(self, conditions: Sequence[str]) -> str:
        """Whether all conditions hold."""
        return functools.reduce(lambda a, b: code.logic("and")(self.lines, self.width, [a, b]), conditions)

    def everywhere(self, condition: str) -> str:
        """Whether a condition holds in all lanes."""
        if not self.width.lanes:
            return condition
        function, mask = f"@llvm.vector.reduce.and.v{self.width.lanes}i1", self.width.truth
        self.lines.declare(function, f"i1 {function}({mask})")
        return self.lines.line(f"call i1 {function}({mask} {condition})")

    def add(self, text: str) -> None:
        """A line without a result."""
        self.lines.lines.append(f"  {text}")

    def even(self, whole: str) -> tuple[str, str]:
        """Whether a whole number is even, and half of it, rounded down."""
        half = self.call("floor", self.do("fmul", whole, 0.5))
        return self.do("fcmp oeq", self.do("fadd", half, half), whole), half


def _small_sine(w: _Writer, angle: str) -> str:
    """Below π/4."""
    square = w.do("fmul", angle, angle)
    return w.call("fma", w.do("fmul", square, angle), w.polynomial(square, SINE), angle)


def _small_cosine(w: _Writer, angle: str) -> str:
    square = w.do("fmul", angle, angle)
    # 1 − x²/2 is rounded; what that leaves is added to the rest.
    half = w.do("fmul", square, 0.5)
    main = w.do("fsub", 1.0, half)
    lost = w.do("fsub", w.do("fsub", 1.0, main), half)
    return w.do("fadd", main, w.call("fma", w.do("fmul", square, square), w.polynomial(square, COSINE), lost))


def _small_tangent(w: _Writer, angle: str) -> str:
    return w.do("fdiv", _small_sine(w, angle), _small_cosine(w, angle))


def _small_direction(w: _Writer, y: str, x: str) -> str:
    """Below π/8."""
    return _arc(w, w.do("fdiv", y, x))


def _arc(w: _Writer, ratio: str) -> str:
    square = w.do("fmul", ratio, ratio)
    return w.call("fma", w.do("fmul", square, ratio), w.polynomial(square, ARC), ratio)


def _parts(w: _Writer, angle: str) -> tuple[str, str, str]:
    """Sine and cosine of what is left of an angle by the nearest multiple of π/2, and this multiple."""
    times = w.call("rint", w.do("fmul", angle, 2.0 / np.pi))
    less = w.do("fneg", times)
    left = angle
    for part in QUARTER:
        left = w.call("fma", less, part, left)
    return _small_sine(w, left), _small_cosine(w, left), times


def _sine(w: _Writer, angle: str) -> str:
    sine, cosine, times = _parts(w, angle)
    even, half = w.even(times)
    value = w.choose(even, sine, cosine)
    return w.choose(w.even(half)[0], value, w.do("fneg", value))


def _cosine(w: _Writer, angle: str) -> str:
    sine, cosine, times = _parts(w, angle)
    value = w.choose(w.even(times)[0], cosine, sine)
    # Quarters 1 and 2 of four are negative.
    positive = w.even(w.even(w.do("fadd", times, 1.0))[1])[0]
    return w.choose(positive, value, w.do("fneg", value))


def _tangent(w: _Writer, angle: str) -> str:
    sine, cosine, times = _parts(w, angle)
    even = w.even(times)[0]
    return w.do("fdiv", w.choose(even, sine, w.do("fneg", cosine)), w.choose(even, cosine, sine))


def _direction(w: _Writer, y: str, x: str) -> str:
    """The angle of a point, first in the eighth where it is below π/4."""
    along, across = w.call("fabs", x), w.call("fabs", y)
    steep = w.do("fcmp ogt", across, along)
    longer, shorter = w.choose(steep, across, along), w.choose(steep, along, across)
    wide = w.do("fcmp ogt", shorter, w.do("fmul", EIGHTH, longer))
    over = w.choose(wide, w.do("fsub", shorter, longer), shorter)
    under = w.choose(wide, w.do("fadd", shorter, longer), longer)
    arc = _arc(w, w.do("fdiv", over, under))
    angle = w.choose(wide, _sum(w, np.pi / 4, 0.5 * QUARTER[1], arc), arc)
    angle = w.choose(steep, _sum(w, np.pi / 2, QUARTER[1], w.do("fneg", angle)), angle)
    behind = w.do("fcmp olt", x, 0.0)
    angle = w.choose(behind, _sum(w, np.pi, 2.0 * QUARTER[1], w.do("fneg", angle)), angle)
    return w.call("copysign", angle, y)


def _sum(w: _Writer, high: float, low: float, angle: str) -> str:
    return w.do("fadd", high, w.do("fadd", low, angle))


def _is_small(w: _Writer, angle: str) -> str:
    return w.do("fcmp ole", w.call("fabs", angle), np.pi / 4)


def _is_flat(w: _Writer, y: str, x: str) -> str:
    """Ahead, below π/8, and of a length whose ratios are to be trusted."""
    flat = w.do("fcmp ole", w.call("fabs", y), w.do("fmul", EIGHTH, x))
    return w.all([flat, w.do("fcmp ole", SHORTEST, x), w.do("fcmp ole", x, LONGEST)])


def _is_moderate(w: _Writer, angle: str) -> str:
    return w.do("fcmp ole", w.call("fabs", angle), LARGEST)


def _is_ordinary(w: _Writer, y: str, x: str) -> str:
    longer = w.call("maximum", w.call("fabs", y), w.call("fabs", x))
    return w.all([w.do("fcmp ole", SHORTEST, longer), w.do("fcmp ole", longer, LONGEST)])


_Body = Callable[..., str]


class _Function(NamedTuple):
    arguments: int
    cases: tuple[tuple[_Body, _Body], ...]
    """Conditions, and the value where they hold in all lanes; the C library is asked where none does."""


_FUNCTIONS = {
    "sin": _Function(1, ((_is_small, _small_sine), (_is_moderate, _sine))),
    "cos": _Function(1, ((_is_small, _small_cosine), (_is_moderate, _cosine))),
    "tan": _Function(1, ((_is_small, _small_tangent), (_is_moderate, _tangent))),
    "atan2": _Function(2, ((_is_flat, _small_direction), (_is_ordinary, _direction))),
}


def function(name: str) -> code.Code:
    """Code that calls the function of this name."""

    def write(lines: Lines, width: Width, operands: Sequence[str]) -> str:
        kind, own = width.number, f"@own.{name}.{width.suffix}"
        if own not in lines.declared:
            w = _Writer(width)
            text = _written(w, own, name)
            lines.declared.update(w.lines.declared)
            lines.declared[own] = text
        return lines.line(f"call {kind} {own}({', '.join(f'{kind} {x}' for x in operands)})")

    return write


def _written(w: _Writer, own: str, name: str) -> str:
    """The function itself."""
    function, kind = _FUNCTIONS[name], w.width.number
    given = [f"%x{i}" for i in range(function.arguments)]
    for i, (condition, value) in enumerate(function.cases):
        holds = condition(w, *given)
        w.add(f"br i1 {w.everywhere(holds)}, label %case{i}, label %not{i}")
        w.lines.lines.append(f"case{i}:")
        w.add(f"ret {kind} {value(w, *given)}")
        w.lines.lines.append(f"not{i}:")
    # A lane has the digits that it has alone, whatever the others hold.
    mixed = w.choose(holds, value(w, *given), code.library(name)(w.lines, w.width, given))
    w.add(f"ret {kind} {mixed}")
    arguments = ", ".join(f"{kind} {x}" for x in given)
    return "\n".join([f"define internal {kind} {own}({arguments}) noinline {{", "entry:", *w.lines.lines, "}"])
