"""Functions written for LLVM, line by line: what straight programs and loops are made of.

LLVM's own builder makes an object of each operand, which takes seconds for the programs of :mod:`program`; here an
operation is a line of text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from shadowfit.records import record


class Width:
    """Numbers that an operation works on at once: a single one (0 lanes), or a vector."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.number = f"<{lanes} x double>" if lanes else "double"
        self.truth = f"<{lanes} x i1>" if lanes else "i1"
        self.suffix = f"v{lanes}f64" if lanes else "f64"
        self.true = "splat (i1 true)" if lanes else "true"
        self.false = "zeroinitializer" if lanes else "false"

    def constant(self, value: float) -> str:
        """A number in all lanes."""
        number = f"0x{np.float64(value).view(np.uint64):016X}"
        return f"splat (double {number})" if self.lanes else number


class Lines:
    """Lines of a function that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self._names = 0

    def name(self) -> str:
        """A new name of a value."""
        self._names += 1
        return f"%t{self._names}"

    def line(self, text: str) -> str:
        """Write an operation; returns the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, function: str, signature: str) -> None:
        """Say what a function from elsewhere looks like."""
        self.declared[function] = f"declare {signature}"

    def splat(self, width: Width, value: str) -> str:
        """A number in all lanes."""
        if not width.lanes:
            return value
        first = self.line(f"insertelement {width.number} poison, double {value}, i32 0")
        zeros = f"<{width.lanes} x i32> zeroinitializer"
        return self.line(f"shufflevector {width.number} {first}, {width.number} poison, {zeros}")


@record(frozen=True)
class Signature:
    """Name and arguments of a function: pointers to doubles (``*name``) and integers; what it returns."""

    name: str
    arguments: str
    gives: bool = False
    """Whether it returns a number."""

    @property
    def names(self) -> list[str]:
        """Of the arguments."""
        return [argument.lstrip("*") for argument in self.arguments.split()]

    @property
    def kinds(self) -> list[str]:
        """Of the arguments."""
        return ["ptr" if argument.startswith("*") else "i64" for argument in self.arguments.split()]

    @property
    def result(self) -> str:
        """Kind of the result."""
        return "double" if self.gives else "void"


@dataclasses.dataclass
class Module:
    """Functions that are compiled together."""

    functions: list[tuple[Signature, Lines]] = dataclasses.field(default_factory=list)

    def text(self) -> str:
        """LLVM assembly of all functions."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        written = {f"@{signature.name}" for signature, _ in self.functions}
        declared = {name: text for _, lines in self.functions for name, text in lines.declared.items()}
        yield from (text for name, text in declared.items() if name not in written)
        for signature, lines in self.functions:
            given = ", ".join(f"{kind} %{name}" for kind, name in zip(signature.kinds, signature.names, strict=True))
            # Not inlined: the code generator's time grows faster than the length of a function.
            yield f"define {signature.result} @{signature.name}({given}) noinline {{"
            yield "entry:"
            yield from lines.lines
            yield "}"
