"""Scalar programs for LLVM: one loop over time, several time steps at a time in vector registers.

Operations that do not depend on the varying inputs are done once, before the loop. Nothing is left for an optimiser to
find, so that only the code generator runs. A program that *carries* its first outputs over to the next time, where
they are its first inputs, takes one time after the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from shadowfit.kernels.assembly import Module, Signature, Width
from shadowfit.kernels.background import MODULES
from shadowfit.kernels.loops import Function, Value
from shadowfit.kernels.row import TABLE
from shadowfit.kernels.scalars import Node, Scalars

# Time steps in a vector register; with four, all common processors are served.
LANES = 4
# Operations in one part of a program.
PART = 600
# A program with so many parts or more comes in several modules.
LARGE = 16

PROGRAM = Signature("program", "*constants *varying *results *scratch *carry groups stride")
"""What is called from outside."""
_PART = "*constants *start *to *scratch *carry stride"
"""What each part of a program is given: where its inputs, results and those of other parts are."""


@dataclasses.dataclass
class _Layout:
    """Where the inputs of a program are, and where values are kept between its parts."""

    constant_inputs: int
    varying_inputs: int
    carried: int
    varies: dict[Node, bool]
    """Whether a value depends on the time."""
    slots: dict[Node, int] = dataclasses.field(default_factory=dict)
    """Places in the scratch memory, in numbers, of values that another part needs."""

    @property
    def lanes(self) -> int:
        """Times that are done at once."""
        return 1 if self.carried else LANES


class _Part(Function):
    """One part of a program: for all times, before the loop, or for some times side by side."""

    def __init__(self, module: Module, number: int, scalars: Scalars, layout: _Layout, inside: bool) -> None:
        super().__init__(module, Signature(f"part{number}", _PART))
        self.scalars = scalars
        self.layout = layout
        self.inside = inside
        self.width = Width(layout.lanes if inside and layout.lanes > 1 else 0)
        self.names: dict[Node, str] = {}
        self.truths: dict[Node, str] = {}
        self.rows = ["%to"]
        """Where the results of each lane go."""
        if inside:
            for i in range(1, layout.lanes):
                self.rows.append(self.line(f"getelementptr double, ptr {self.rows[i - 1]}, i64 %stride"))

    def read(self, pointer: str, place: int) -> str:
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
            place = self.layout.slots[node]
            if not self.layout.varies[node]:
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
            self.names[node] = self._input(int(operands[0]))
        else:
            row = TABLE[name]
            assert row.code is not None
            read = [self.truth_of(int(x)) if i < row.truths else self.number_of(int(x)) for i, x in enumerate(operands)]
            (self.truths if row.gives_truth else self.names)[node] = row.code(self, self.width, read)
        if node in self.layout.slots:
            kept = self.number_of(node)
            at = self.line(f"getelementptr double, ptr %scratch, i64 {self.layout.slots[node]}")
            self.lines.append(f"  store {self.width.number} {kept}, ptr {at}, align 8")

    def _input(self, place: int) -> str:
        layout = self.layout
        if place < layout.constant_inputs:
            return self.splat(self.width, self.read("%constants", place))
        place -= layout.constant_inputs
        if place < layout.carried:
            return self.read("%carry", place)
        place -= layout.carried
        if not self.width.lanes:
            return self.read("%start", place)
        vector = "poison"
        for lane in range(layout.lanes):
            value = self.read("%start", lane * layout.varying_inputs + place)
            vector = self.line(f"insertelement {self.width.number} {vector}, double {value}, i32 {lane}")
        return vector

    def give_out(self, node: Node, places: Sequence[int]) -> None:
        """Write a value to the results."""
        value = self.number_of(node)
        for lane, row in enumerate(self.rows):
            one = self.line(f"extractelement {self.width.number} {value}, i32 {lane}") if self.width.lanes else value
            for place in places:
                at = self.line(f"getelementptr double, ptr {row}, i64 {place}")
                self.lines.append(f"  store double {one}, ptr {at}")


def assembly(
    scalars: Scalars,
    constant_inputs: int,
    varying_inputs: int,
    outputs: Sequence[tuple[int, Node]],
    carried: int = 0,
) -> list[str]:
    """LLVM assembly of ``program(constants, varying, results, scratch, carry, groups, stride of results)``.

    ``varying`` is (time, varying inputs), ``results`` is (time, stride), of which the listed places are written;
    times are counted in groups of `LANES`. Inputs are numbered constants first, then ``carried`` ones that are the
    outputs of the same places at the time before (in ``carry`` for the first time), then the varying ones. A large
    program comes in several modules, which can be compiled side by side.
    """
    order = _order(scalars, [node for _, node in outputs])
    varies = _varying(scalars, order, constant_inputs)
    before = _cut([node for node in order if not varies[node] and scalars.value(node) is None])
    inside = _cut([node for node in order if varies[node]])
    by_node: dict[Node, list[int]] = {}
    for place, node in outputs:
        by_node.setdefault(node, []).append(place)
    # Outputs that do not vary, or are carried inputs, are written by the last part.
    late = [node for node in by_node if not varies[node]]
    if late and not inside:
        inside = [[]]
    layout = _Layout(constant_inputs, varying_inputs, carried, varies)
    _place_shared(scalars, layout, [*before, *inside], late)

    count = len(before) + len(inside)
    modules = [Module() for _ in range(MODULES if count >= LARGE else 1)]
    parts = []
    for number, nodes in enumerate([*before, *inside]):
        module = modules[number * len(modules) // count]
        part = _Part(module, number, scalars, layout, number >= len(before))
        for node in nodes:
            part.write(node)
            if part.inside and node in by_node:
                part.give_out(node, by_node[node])
        if number == count - 1:
            for node in late:
                part.give_out(node, by_node[node])
        part.give()
        parts.append(part)
    _write_loop(modules[-1], layout, parts[: len(before)], parts[len(before) :])
    return [module.text() for module in modules]


def _write_loop(module: Module, layout: _Layout, before: Sequence[_Part], inside: Sequence[_Part]) -> None:
    """The program itself: some parts once, the others for each group of times."""
    f = Function(module, PROGRAM)
    for part in before:
        f.call(part, f.constants, f.varying, f.results, f.scratch, f.carry, f.stride)
    with f.loop(0, f.groups) as group:
        time = f.product(group.index, layout.lanes)
        start = f.at(f.varying, f.product(time, layout.varying_inputs))
        to = f.at(f.results, f.product(time, f.stride))
        for part in inside:
            f.call(part, f.constants, start, to, f.scratch, f.carry, f.stride)
        _carry_over(f, layout, to)
    f.give()


def _carry_over(f: Function, layout: _Layout, to: Value) -> None:
    """Copy the first outputs, once all of them are there, to where the next time reads them."""
    for i in range(layout.carried):
        f.store(f.load(f.at(to, i)), f.at(f.carry, i))


def _cut(nodes: list[Node]) -> list[list[Node]]:
    """Pieces of a size that the code generator is quick with: its time grows faster than their length."""
    return [nodes[i : i + PART] for i in range(0, len(nodes), PART)]


def _place_shared(scalars: Scalars, layout: _Layout, parts: list[list[Node]], late: list[Node]) -> None:
    """Give a place in the scratch memory to every value that is needed outside the part that computes it."""
    home = {node: part for part, nodes in enumerate(parts) for node in nodes}
    used = {
        x
        for node, part in home.items()
        for x in _operands(scalars, node)
        if scalars.value(x) is None and home[x] != part
    }
    used |= {node for node in late if scalars.value(node) is None}
    size = 0
    for node in sorted(used):
        layout.slots[node] = size
        size += layout.lanes if layout.varies[node] else 1


def scratch_size(scalars: Scalars) -> int:
    """Numbers of working space that a program may need."""
    return LANES * len(scalars.operations)


def _operands(scalars: Scalars, node: Node) -> tuple[int, ...]:
    name, *operands = scalars.operations[node]
    return () if name in ("const", "input") else tuple(int(x) for x in operands)


def _order(scalars: Scalars, outputs: Iterable[Node]) -> list[Node]:
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
            stack.extend((x, False) for x in reversed(_operands(scalars, node)) if x not in done)
    return order


def _varying(scalars: Scalars, order: Iterable[Node], constant_inputs: int) -> dict[Node, bool]:
    found: dict[Node, bool] = {}
    for node in order:
        name, *operands = scalars.operations[node]
        if name == "input":
            found[node] = operands[0] >= constant_inputs
        else:
            found[node] = any(found[x] for x in _operands(scalars, node))
    return found
