"""A scalar program cut into parts: functions of a size that the code generator is quick with.

What one part computes and another one needs is kept in scratch memory between them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from shadowfit.kernels.assembly import Module, Signature, Width
from shadowfit.kernels.background import MODULES
from shadowfit.kernels.loops import Function
from shadowfit.kernels.row import TABLE
from shadowfit.kernels.scalars import Node, Scalars

# Operations in one part of a program: the code generator's time grows faster than its length.
PART = 600
# A program with so many parts or more comes in several modules.
LARGE = 16

PROGRAM = Signature("program", "*constants *varying *results *scratch *carry groups stride")
"""What is called from outside."""
ARGUMENTS = "*constants *start *to *scratch *carry stride"
"""What each part of a program is given: where its inputs, results and those of other parts are."""


@dataclasses.dataclass
class Kept:
    """Values between parts."""

    lanes: int
    """Times or trajectories that are done at once."""
    varies: dict[Node, bool]
    """Whether a value differs among these."""
    slots: dict[Node, int] = dataclasses.field(default_factory=dict)
    """Places in the scratch memory, in numbers, of values that another part needs."""

    def share(self, scalars: Scalars, parts: list[list[Node]], late: Iterable[Node]) -> int:
        """Give a place to every value that is needed outside the part that computes it; returns the size of them all.

        ``late`` are needed at the end.
        """
        home = {node: part for part, nodes in enumerate(parts) for node in nodes}
        used = {x for node, part in home.items() for x in operands_of(scalars, node) if home.get(x, part) != part}
        used |= {node for node in late if scalars.value(node) is None}
        size = 0
        for node in sorted(used):
            self.slots[node] = size
            size += self.lanes if self.varies[node] else 1
        return size


class Part(Function):
    """One part of a program, once or for several times or trajectories side by side."""

    def __init__(self, module: Module, name: str, scalars: Scalars, kept: Kept, inside: bool) -> None:
        super().__init__(module, Signature(name, ARGUMENTS))
        self.scalars = scalars
        self.kept = kept
        self.inside = inside
        self.width = Width(kept.lanes if inside and kept.lanes > 1 else 0)
        self.names: dict[Node, str] = {}
        self.truths: dict[Node, str] = {}

    def read_input(self, place: int) -> str:
        """An input of the program."""
        raise NotImplementedError

    def read(self, pointer: str, place: int) -> str:
        """A single number."""
        at = self.line(f"getelementptr double, ptr {pointer}, i64 {place}")
        return self.line(f"load double, ptr {at}")

    def number_of(self, node: Node) -> str:
        """The value of a node, read from the scratch memory if another part has computed it."""
        known = self.scalars.value(node)
        if known is not None:
            return self.width.constant(known)
        if node in self.truths and node not in self.names:
            self.names[node] = self.line(f"uitofp {self.width.truth} {self.truths[node]} to {self.width.number}")
        if node not in self.names:
            place = self.kept.slots[node]
            if not self.kept.varies[node]:
                # Not remembered: a single number is cheaper to read again than to keep in a register.
                return self.splat(self.width, self.read("%scratch", place))
            at = self.line(f"getelementptr double, ptr %scratch, i64 {place}")
            self.names[node] = self.line(f"load {self.width.number}, ptr {at}, align 8")
        return self.names[node]

    def truth_of(self, node: Node) -> str:
        """A truth value; between parts they are kept as numbers."""
        known = self.scalars.value(node)
        if known is not None:
            return self.width.true if known else self.width.false
        if node not in self.truths:
            zero = self.width.constant(0.0)
            self.truths[node] = self.line(f"fcmp une {self.width.number} {self.number_of(node)}, {zero}")
        return self.truths[node]

    def write(self, node: Node) -> None:
        """One operation, with its result in the scratch memory if another part needs it."""
        name, *operands = self.scalars.operations[node]
        if name == "input":
            self.names[node] = self.read_input(int(operands[0]))
        else:
            row = TABLE[name]
            assert row.code is not None
            read = [self.truth_of(int(x)) if i < row.truths else self.number_of(int(x)) for i, x in enumerate(operands)]
            (self.truths if row.gives_truth else self.names)[node] = row.code(self, self.width, read)
        if node in self.kept.slots:
            value = self.number_of(node)
            at = self.line(f"getelementptr double, ptr %scratch, i64 {self.kept.slots[node]}")
            self.lines.append(f"  store {self.width.number} {value}, ptr {at}, align 8")


def modules(count: int) -> list[Module]:
    """For a program of so many parts: a large one is compiled in several, side by side."""
    return [Module() for _ in range(MODULES if count >= LARGE else 1)]


def cut(nodes: Sequence[Node]) -> list[list[Node]]:
    """Pieces for one part each."""
    return [list(nodes[i : i + PART]) for i in range(0, len(nodes), PART)]


def operands_of(scalars: Scalars, node: Node) -> tuple[int, ...]:
    """Nodes that an operation reads."""
    name, *operands = scalars.operations[node]
    return () if name in ("const", "input") else tuple(int(x) for x in operands)


def in_order(scalars: Scalars, outputs: Iterable[Node]) -> list[Node]:
    """Operations in an order in which each one follows what it needs, close to where it is used."""
    done: set[Node] = set()
    order: list[Node] = []
    for output in outputs:
        stack = [(output, False)]
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if ready:
                done.add(node)
                order.append(node)
                continue
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(operands_of(scalars, node)) if x not in done)
    return order
