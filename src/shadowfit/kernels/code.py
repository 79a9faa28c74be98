"""LLVM code of scalar operations, in the forms that rows of the table need.

Each is a function ``(lines, width, operands) → name of the result``: it adds to the lines of a function that is being
written (:mod:`assembly`), for single numbers (width 0) or vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shadowfit.kernels.assembly import Lines, Width

Code = Callable[[Lines, Width, Sequence[str]], str]


def instruction(name: str) -> Code:
    """An instruction of LLVM on numbers."""

    def write(lines: Lines, width: Width, operands: Sequence[str]) -> str:
        return lines.line(f"{name} {width.number} {', '.join(operands)}")

    return write


def intrinsic(name: str) -> Code:
    """A function that LLVM knows, on all lanes at once."""

    def write(lines: Lines, width: Width, operands: Sequence[str]) -> str:
        kind, function = width.number, f"@{name}.{width.suffix}"
        lines.declare(function, f"{kind} {function}({', '.join([kind] * len(operands))})")
        return lines.line(f"call {kind} {function}({', '.join(f'{kind} {x}' for x in operands)})")

    return write


def library(name: str) -> Code:
    """A function of the C library, lane by lane."""

    def write(lines: Lines, width: Width, operands: Sequence[str]) -> str:
        function = f"@{name}"
        lines.declare(function, f"double {function}({', '.join(['double'] * len(operands))})")

        def one(parts: Sequence[str]) -> str:
            return lines.line(f"call double {function}({', '.join(f'double {x}' for x in parts)})")

        if not width.lanes:
            return one(operands)
        vector = "poison"
        for lane in range(width.lanes):
            value = one([lines.line(f"extractelement {width.number} {x}, i32 {lane}") for x in operands])
            vector = lines.line(f"insertelement {width.number} {vector}, double {value}, i32 {lane}")
        return vector

    return write


def comparison(test: str) -> Code:
    """A truth value of two numbers."""
    return instruction(f"fcmp {test}")


def logic(name: str) -> Code:
    """An instruction on truth values."""

    def write(lines: Lines, width: Width, operands: Sequence[str]) -> str:
        return lines.line(f"{name} {width.truth} {', '.join(operands)}")

    return write


def negation(lines: Lines, width: Width, operands: Sequence[str]) -> str:
    """``not``."""
    return lines.line(f"xor {width.truth} {operands[0]}, {width.true}")


def choice(lines: Lines, width: Width, operands: Sequence[str]) -> str:
    """``(condition, if false, if true)``."""
    condition, if_false, if_true = operands
    kind = width.number
    return lines.line(f"select {width.truth} {condition}, {kind} {if_true}, {kind} {if_false}")


def chain(step: Code) -> Code:
    """An operation on two, along any number of operands."""

    def write(lines: Lines, width: Width, operands: Sequence[str]) -> str:
        result = operands[0]
        for x in operands[1:]:
            result = step(lines, width, [result, x])
        return result

    return write


largest, smallest = intrinsic("llvm.maximum"), intrinsic("llvm.minimum")


def clamp(lines: Lines, width: Width, operands: Sequence[str]) -> str:
    """``(low, x, high)``."""
    low, x, high = operands
    return smallest(lines, width, [largest(lines, width, [x, low]), high])


def is_finite(lines: Lines, width: Width, operands: Sequence[str]) -> str:
    """Neither infinite nor NaN."""
    size = intrinsic("llvm.fabs")(lines, width, operands)
    return comparison("one")(lines, width, [size, width.constant(float("inf"))])
