"""The text of a program that steps through time, for LLVM (:mod:`sequence`, :mod:`parts`).

What changes lies trajectory by trajectory: (time, place, lane) for what is given, (place, lane) for what is carried:
first the values of this step, behind them those for the next one, and whether to do this one again. What is found goes
to where it stays, (lane, time, place): a copy would take as long as the steps of a small machine. A group of
trajectories repeats a step until the last one of them has settled; those that have already done so repeat their last
round and find the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from shadowfit.kernels.assembly import Module
from shadowfit.kernels.loops import Function, Value, number
from shadowfit.kernels.parts import PROGRAM, Kept, Part, cut, in_order, modules, operands_of
from shadowfit.kernels.scalars import Node, Scalars

Sizes = tuple[int, int, int, int]
"""Constant numbers, and those that are carried, iterated and given."""

CONSTANT, STEP, ROUND = range(3)
"""How often an operation is done."""


class _StepPart(Part):
    """One part of a program."""

    def __init__(self, module: Module, name: str, scalars: Scalars, kept: Kept, inside: bool, sizes: Sizes) -> None:
        super().__init__(module, name, scalars, kept, inside)
        self.sizes = sizes
        self.rows = ["%to"]
        """Where the results of each lane go; ``stride`` leads from one to the next."""

    def read_input(self, place: int) -> str:
        constant, carried, iterated, _ = self.sizes
        if place < constant:
            return self.splat(self.width, self.read("%constants", place))
        place -= constant
        source = "carry"
        if place >= carried + iterated:
            place, source = place - carried - iterated, "start"
        at = self.line(f"getelementptr double, ptr %{source}, i64 {place * self.kept.lanes}")
        return self.line(f"load {self.width.number}, ptr {at}, align 8")

    def give_out(self, node: Node, places: Sequence[int]) -> None:
        """Write a value to what is handed on, or to the results."""
        value, handed_on = self.number_of(node), self.sizes[1] + self.sizes[2]
        for place in places:
            if place <= handed_on:
                at = self.line(f"getelementptr double, ptr %carry, i64 {(handed_on + place) * self.kept.lanes}")
                self.lines.append(f"  store {self.width.number} {value}, ptr {at}, align 8")
            else:
                self.result(value, place - handed_on - 1)

    def result(self, value: str, place: int) -> None:
        """Write a value to the results, lane by lane."""
        while len(self.rows) < self.kept.lanes:
            self.rows.append(self.line(f"getelementptr double, ptr {self.rows[-1]}, i64 %stride"))
        for lane, row in enumerate(self.rows):
            one = self.line(f"extractelement {self.width.number} {value}, i32 {lane}") if self.width.lanes else value
            at = self.line(f"getelementptr double, ptr {row}, i64 {place}")
            self.lines.append(f"  store double {one}, ptr {at}, align 8")


def assembly(scalars: Scalars, sizes: Sizes, outputs: Sequence[Node], lanes: int) -> tuple[list[str], int]:
    """Texts of ``program(constants, given, results, scratch, carry, times, stride of results)``, and its scratch size.

    Outputs are the new values of what is carried and iterated, whether to do the step again, and the results proper.
    """
    handed_on = sizes[1] + sizes[2]
    by_node: dict[Node, list[int]] = {}
    for place, node in enumerate(outputs):
        # Results that are known to be zero are left as the caller has set them.
        if place <= handed_on or node != scalars.zero:
            by_node.setdefault(node, []).append(place)
    order = in_order(scalars, by_node)
    level = _levels(scalars, order, sizes)
    computed = [node for node in order if scalars.value(node) is None]
    groups = [cut([node for node in computed if level[node] == often]) for often in (CONSTANT, STEP, ROUND)]
    groups[STEP] = groups[STEP] or [[]]
    late = [node for node in by_node if level[node] == CONSTANT]
    kept = Kept(lanes, {node: often > CONSTANT for node, often in level.items()})
    count = sum(map(len, groups))
    scratch = kept.share(scalars, [nodes for group in groups for nodes in group], late)
    written = modules(count)
    parts: list[list[Part]] = [[], [], []]
    for done, (often, nodes) in enumerate((often, nodes) for often, group in enumerate(groups) for nodes in group):
        module = written[done * len(written) // count]
        part = _StepPart(module, f"part{done}", scalars, kept, often > CONSTANT, sizes)
        for node in nodes:
            part.write(node)
            if part.inside and node in by_node:
                part.give_out(node, by_node[node])
        if nodes is groups[STEP][-1]:
            for node in late:
                part.give_out(node, by_node[node])
        part.give()
        parts[often].append(part)
    _write_loop(written[-1], parts, sizes, lanes)
    return [module.text() for module in written], scratch


def _levels(scalars: Scalars, order: Sequence[Node], sizes: Sizes) -> dict[Node, int]:
    constant, carried, iterated, _ = sizes
    first = constant + carried
    level: dict[Node, int] = {}
    for node in order:
        name, *operands = scalars.operations[node]
        if name == "input":
            place = int(operands[0])
            level[node] = CONSTANT if place < constant else ROUND if first <= place < first + iterated else STEP
        else:
            level[node] = max((level[x] for x in operands_of(scalars, node)), default=CONSTANT)
    return level


def _write_loop(module: Module, parts: Sequence[Sequence[Part]], sizes: Sizes, lanes: int) -> None:
    """The program itself: some parts once, some for each time, and some until all trajectories have settled."""
    carried, iterated, given = sizes[1:]
    kept = carried + iterated
    f = Function(module, PROGRAM)
    across = f.product(f.groups, f.stride)
    for part in parts[CONSTANT]:
        f.call(part, f.constants, f.varying, f.results, f.scratch, f.carry, across)
    with f.loop(0, f.groups) as time:
        start = f.at(f.varying, f.product(time.index, given * lanes))
        to = f.at(f.results, f.product(time.index, f.stride))
        for part in parts[STEP]:
            f.call(part, f.constants, start, to, f.scratch, f.carry, across)
        with f.rounds() as rounds:
            for part in parts[ROUND]:
                f.call(part, f.constants, start, to, f.scratch, f.carry, across)
            unsettled = f.apply("ne", f.load(f.at(f.carry, 2 * kept * lanes), lanes), number(0.0, lanes))
            rounds.again = f.any(unsettled)
            with f.when(rounds.again):
                _hand_on(f, kept, range(carried, kept), unsettled, lanes)
        following = f.at(f.carry, kept * lanes)

        def copied(place: Value, width: int) -> None:
            f.store(f.load(f.at(following, place), width), f.at(f.carry, place))

        f.tiles(0, kept * lanes, (lanes,), copied)
    f.give()


def _hand_on(f: Function, kept: int, places: range, unsettled: Value, lanes: int) -> None:
    """New iterated values, for those trajectories that have not settled."""
    for place in places:
        at = f.at(f.carry, place * lanes)
        new = f.load(f.at(f.carry, (kept + place) * lanes), lanes)
        f.store(f.apply("select_n", unsettled, f.load(at, lanes), new), at)
