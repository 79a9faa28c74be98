"""The text of a program that steps through time, for LLVM (:mod:`sequence`, :mod:`machine`).

All that changes lies trajectory by trajectory: (time, place, lane) for what is given and what is found, (place, lane)
for what is carried. A group of trajectories repeats a step until the last one of them has settled; those that have
already done so repeat their last round and find the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from shadowfit.kernels.machine import LARGE as MANY_PARTS
from shadowfit.kernels.machine import MODULES, NAME, _operands, _order, _parts, _write, _Writer
from shadowfit.kernels.scalars import Node, Scalars

Sizes = tuple[int, int, int, int]
"""Constant numbers, and those that are carried, iterated and given."""

CONSTANT, STEP, ROUND = range(3)
"""How often an operation is done."""


class _Places:
    """Where values are kept between the parts of a program."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.slots: dict[Node, int] = {}


class _StepWriter(_Writer):
    """Lines of one part."""

    def __init__(self, scalars: Scalars, places: _Places, declared: dict[str, str], sizes: Sizes, once: bool) -> None:
        super().__init__(scalars, places, declared, vectors=places.lanes > 1 and not once)  # type: ignore[arg-type]
        self.sizes = sizes

    def write(self, node: Node, varies: dict[Node, bool]) -> None:
        name, *operands = self.scalars.operations[node]
        if name == "input":
            self.names[node] = self._read(int(operands[0]))
        else:
            _write(self, node, varies)
        if node in self.layout.slots:
            self.keep(node)

    def _read(self, place: int) -> str:
        constant, carried, iterated, _ = self.sizes
        if place < constant:
            at = self.line(f"getelementptr double, ptr %constants, i64 {place}")
            return self.splat(self.line(f"load double, ptr {at}"))
        place -= constant
        source = "carry"
        if place >= carried + iterated:
            place, source = place - carried - iterated, "start"
        at = self.line(f"getelementptr double, ptr %{source}, i64 {place * self.layout.lanes}")
        return self.line(f"load {self.kind}, ptr {at}, align 8")

    def store(self, node: Node, varies: bool, places: Sequence[int]) -> None:
        value = self.number(node, varies)
        for place in places:
            at = self.line(f"getelementptr double, ptr %to, i64 {place * self.layout.lanes}")
            self.lines.append(f"  store {self.kind} {value}, ptr {at}, align 8")


def assembly(scalars: Scalars, sizes: Sizes, outputs: Sequence[Node], lanes: int) -> tuple[list[str], int]:
    """Texts of ``program(constants, given, results, scratch, carry, times, stride of results)``, and its scratch size.

    Outputs are the new values of what is carried and iterated, whether to do the step again, and the results proper.
    """
    kept = sizes[1] + sizes[2]
    by_node: dict[Node, list[int]] = {}
    for place, node in enumerate(outputs):
        # Results that are known to be zero are left as the caller has set them.
        if place <= kept or node != scalars.zero:
            by_node.setdefault(node, []).append(place)
    order = _order(scalars, by_node)
    level = _levels(scalars, order, sizes)
    varies = {node: often > CONSTANT for node, often in level.items()}
    computed = [node for node in order if scalars.value(node) is None]
    parts = {often: _parts([node for node in computed if level[node] == often]) for often in (CONSTANT, STEP, ROUND)}
    parts[STEP] = parts[STEP] or [[]]
    late = [node for node in by_node if level[node] == CONSTANT]
    places = _Places(lanes)
    scratch = _share(scalars, places, [part for often in parts.values() for part in often], varies, late)
    declared: dict[str, str] = {}
    functions = []
    for often, group in parts.items():
        for part in group:
            writer = _StepWriter(scalars, places, declared, sizes, often == CONSTANT)
            for node in part:
                writer.write(node, varies)
                if often > CONSTANT and node in by_node:
                    writer.store(node, True, by_node[node])
            if often == STEP and part is group[-1]:
                for node in late:
                    writer.store(node, False, by_node[node])
            functions.append(writer.lines)
    counts = [len(parts[often]) for often in (CONSTANT, STEP, ROUND)]
    return _modules(declared, functions, counts, sizes, lanes), scratch


def _levels(scalars: Scalars, order: Sequence[Node], sizes: Sizes) -> dict[Node, int]:
    constant, carried, iterated, _ = sizes
    first = constant + carried
    found: dict[Node, int] = {}
    for node in order:
        name, *operands = scalars.operations[node]
        if name == "input":
            place = int(operands[0])
            found[node] = CONSTANT if place < constant else ROUND if first <= place < first + iterated else STEP
        else:
            found[node] = max((found[x] for x in _operands(scalars, node)), default=CONSTANT)
    return found


def _share(
    scalars: Scalars, places: _Places, parts: list[list[Node]], varies: dict[Node, bool], late: list[Node]
) -> int:
    """Give a place to every value that is needed outside the part that computes it; returns the size of them all."""
    home = {node: number for number, part in enumerate(parts) for node in part}
    used = {x for node, part in home.items() for x in _operands(scalars, node) if home.get(x, part) != part}
    used |= {node for node in late if scalars.value(node) is None}
    size = 0
    for node in sorted(used):
        places.slots[node] = size
        size += places.lanes if varies[node] else 1
    return size


_GIVEN = "ptr {constants}, ptr {start}, ptr {to}, ptr {scratch}, ptr {carry}"
_NAMES = ("constants", "start", "to", "scratch", "carry")


def _modules(
    declared: dict[str, str], functions: list[list[str]], counts: list[int], sizes: Sizes, lanes: int
) -> list[str]:
    """The texts of all parts and of the loop that calls them, which comes with the last ones."""
    count = MODULES if len(functions) >= MANY_PARTS else 1
    ends = [round(len(functions) * (i + 1) / count) for i in range(count)]
    given = _GIVEN.format(**{name: f"%{name}" for name in _NAMES})
    texts = []
    for begin, end in zip([0, *ends], ends, strict=False):
        lines = list(declared.values())
        for number in range(begin, end):
            lines += [f"define void @part{number}({given}) noinline {{", *functions[number], "  ret void", "}"]
        if end == len(functions):
            lines += [f"declare void @part{number}({given})" for number in range(begin)]
            lines += _loop(counts, sizes, lanes)
        texts.append("\n".join(lines) + "\n")
    return texts


def _loop(counts: list[int], sizes: Sizes, lanes: int) -> list[str]:
    """The program itself."""
    carried, iterated, given = sizes[1:]
    first = _GIVEN.format(constants="%constants", start="%varying", to="%results", scratch="%scratch", carry="%carry")
    each = _GIVEN.format(constants="%constants", start="%from", to="%at", scratch="%scratch", carry="%carry")
    steps, rounds = counts[0], counts[0] + counts[1]
    kind = f"<{lanes} x double>"
    return [
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"define void @{NAME}(ptr %constants, ptr %varying, ptr %results, ptr %scratch, ptr %carry, i64 %times, "
        "i64 %stride) {",
        "entry:",
        *[f"  call void @part{i}({first})" for i in range(steps)],
        "  br label %test",
        "test:",
        "  %time = phi i64 [ 0, %entry ], [ %next, %settled ]",
        "  %more = icmp slt i64 %time, %times",
        "  br i1 %more, label %step, label %end",
        "step:",
        f"  %read = mul i64 %time, {given * lanes}",
        "  %from = getelementptr double, ptr %varying, i64 %read",
        f"  %row = mul i64 %stride, {lanes}",
        "  %written = mul i64 %time, %row",
        "  %at = getelementptr double, ptr %results, i64 %written",
        f"  %flag = getelementptr double, ptr %at, i64 {(carried + iterated) * lanes}",
        *[f"  call void @part{i}({each})" for i in range(steps, rounds)],
        "  br label %round",
        "round:",
        *[f"  call void @part{i}({each})" for i in range(rounds, rounds + counts[2])],
        f"  %again = load {kind}, ptr %flag, align 8",
        f"  %unsettled = fcmp une {kind} %again, zeroinitializer",
        f"  %mask = bitcast <{lanes} x i1> %unsettled to i{lanes}",
        f"  %any = icmp ne i{lanes} %mask, 0",
        "  br i1 %any, label %repeat, label %settled",
        "repeat:",
        *_hand_on(carried, iterated, lanes),
        "  br label %round",
        "settled:",
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %carry, ptr %at, i64 {8 * lanes * (carried + iterated)}, i1 false)",
        "  %next = add i64 %time, 1",
        "  br label %test",
        "end:",
        "  ret void",
        "}",
    ]


def _hand_on(carried: int, iterated: int, lanes: int) -> list[str]:
    """New iterated values, for those trajectories that have not settled."""
    kind = f"<{lanes} x double>"
    lines = []
    for i in range(iterated):
        place = (carried + i) * lanes
        lines += [
            f"  %new.at{i} = getelementptr double, ptr %at, i64 {place}",
            f"  %old.at{i} = getelementptr double, ptr %carry, i64 {place}",
            f"  %new{i} = load {kind}, ptr %new.at{i}, align 8",
            f"  %old{i} = load {kind}, ptr %old.at{i}, align 8",
            f"  %use{i} = select <{lanes} x i1> %unsettled, {kind} %new{i}, {kind} %old{i}",
            f"  store {kind} %use{i}, ptr %old.at{i}, align 8",
        ]
    return lines
