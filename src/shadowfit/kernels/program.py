"""Scalar programs for LLVM: one loop over time, several time steps at a time in vector registers.

Operations that do not depend on the varying inputs are done once, before the loop. Nothing is left for an optimiser to
find, so that only the code generator runs. A program that *carries* its first outputs over to the next time, where
they are its first inputs, takes one time after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shadowfit.kernels.assembly import Module
from shadowfit.kernels.loops import Function, Value
from shadowfit.kernels.parts import PROGRAM, Kept, Part, cut, in_order, modules, operands_of
from shadowfit.kernels.scalars import Node, Scalars
from shadowfit.records import record

# Time steps in a vector register; with four, all common processors are served.
LANES = 4


@record(frozen=True)
class _Inputs:
    """How many there are of each kind, in this order."""

    constant: int
    carried: int
    varying: int


class _TimePart(Part):
    """One part of a program: for all times, before the loop, or for some times side by side."""

    def __init__(self, module: Module, name: str, scalars: Scalars, kept: Kept, inside: bool, inputs: _Inputs) -> None:
        super().__init__(module, name, scalars, kept, inside)
        self.inputs = inputs
        self.rows = ["%to"]
        """Where the results of each lane go."""
        if inside:
            for i in range(1, kept.lanes):
                self.rows.append(self.line(f"getelementptr double, ptr {self.rows[i - 1]}, i64 %stride"))

    def read_input(self, place: int) -> str:
        if place < self.inputs.constant:
            return self.splat(self.width, self.read("%constants", place))
        place -= self.inputs.constant
        if place < self.inputs.carried:
            return self.read("%carry", place)
        place -= self.inputs.carried
        if not self.width.lanes:
            return self.read("%start", place)
        vector = "poison"
        for lane in range(self.width.lanes):
            value = self.read("%start", lane * self.inputs.varying + place)
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
    order = in_order(scalars, [node for _, node in outputs])
    varies = _varying(scalars, order, constant_inputs)
    before = cut([node for node in order if not varies[node] and scalars.value(node) is None])
    inside = cut([node for node in order if varies[node]])
    by_node: dict[Node, list[int]] = {}
    for place, node in outputs:
        by_node.setdefault(node, []).append(place)
    # Outputs that do not vary, or are carried inputs, are written by the last part.
    late = [node for node in by_node if not varies[node]]
    if late and not inside:
        inside = [[]]
    inputs = _Inputs(constant_inputs, carried, varying_inputs)
    kept = Kept(1 if carried else LANES, varies)
    kept.share(scalars, [*before, *inside], late)

    count = len(before) + len(inside)
    written = modules(count)
    parts = []
    for number, nodes in enumerate([*before, *inside]):
        module = written[number * len(written) // count]
        part = _TimePart(module, f"part{number}", scalars, kept, number >= len(before), inputs)
        for node in nodes:
            part.write(node)
            if part.inside and node in by_node:
                part.give_out(node, by_node[node])
        if number == count - 1:
            for node in late:
                part.give_out(node, by_node[node])
        part.give()
        parts.append(part)
    _write_loop(written[-1], inputs, parts[: len(before)], parts[len(before) :])
    return [module.text() for module in written]


def _write_loop(module: Module, inputs: _Inputs, before: Sequence[Part], inside: Sequence[Part]) -> None:
    """The program itself: some parts once, the others for each group of times."""
    f = Function(module, PROGRAM)
    for part in before:
        f.call(part, f.constants, f.varying, f.results, f.scratch, f.carry, f.stride)
    with f.loop(0, f.groups) as group:
        time = f.product(group.index, 1 if inputs.carried else LANES)
        start = f.at(f.varying, f.product(time, inputs.varying))
        to = f.at(f.results, f.product(time, f.stride))
        for part in inside:
            f.call(part, f.constants, start, to, f.scratch, f.carry, f.stride)
        _carry_over(f, inputs.carried, to)
    f.give()


def _carry_over(f: Function, carried: int, to: Value) -> None:
    """Copy the first outputs, once all of them are there, to where the next time reads them."""
    for i in range(carried):
        f.store(f.load(f.at(to, i)), f.at(f.carry, i))


def scratch_size(scalars: Scalars) -> int:
    """Numbers of working space that a program may need."""
    return LANES * len(scalars.operations)


def _varying(scalars: Scalars, order: Iterable[Node], constant_inputs: int) -> dict[Node, bool]:
    varies: dict[Node, bool] = {}
    for node in order:
        name, *operands = scalars.operations[node]
        if name == "input":
            varies[node] = operands[0] >= constant_inputs
        else:
            varies[node] = any(varies[x] for x in operands_of(scalars, node))
    return varies
