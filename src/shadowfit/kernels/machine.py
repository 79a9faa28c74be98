"""Scalar programs as machine code: one loop over time, several time steps at a time in vector registers.

The code is written as text for LLVM. Operations that do not depend on the varying inputs are done once, before the
loop. Nothing is left for an optimiser to find, so that only the code generator runs. A program that *carries* its
first outputs over to the next time, where they are its first inputs, takes one time after the other.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterable, Sequence

import llvmlite.binding as llvm
import numpy as np

from shadowfit.kernels import codegen
from shadowfit.kernels.scalars import COMPARISONS, Node, Scalars

# Time steps in a vector register; with four, all common processors are served.
LANES = 4
# Operations in one part of a program.
PART = 600
# Modules of a program with so many parts or more.
MODULES, LARGE = 2, 16
NAME = "program"
_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_LIBRARY = {"rem": "fmod"}
_INTRINSICS = {"sqrt": "llvm.sqrt", "abs": "llvm.fabs", "rint": "llvm.rint", "floor": "llvm.floor"}


def _number(value: float) -> str:
    return f"0x{np.float64(value).view(np.uint64):016X}"


@dataclasses.dataclass
class _Layout:
    """Where the inputs of a program are, and where values are kept between its parts."""

    constant_inputs: int
    varying_inputs: int
    carried: int
    slots: dict[Node, int]
    """Places in the scratch memory, in numbers, of values that another part needs."""

    @property
    def lanes(self) -> int:
        """Times that are done at once."""
        return 1 if self.carried else LANES


class _Writer:
    """Lines of one part of a program: single numbers before the loop, or vectors inside."""

    def __init__(self, scalars: Scalars, layout: _Layout, declared: dict[str, str], vectors: bool) -> None:
        self.scalars = scalars
        self.layout = layout
        self.declared = declared
        self.vectors = vectors
        self.kind = f"<{layout.lanes} x double>" if vectors else "double"
        self.truth_kind = f"<{layout.lanes} x i1>" if vectors else "i1"
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.truths: dict[Node, str] = {}
        self.temporary = 0

    def line(self, text: str) -> str:
        self.temporary += 1
        self.lines.append(f"  %t{self.temporary} = {text}")
        return f"%t{self.temporary}"

    def declare(self, name: str, signature: str) -> None:
        self.declared[name] = f"declare {signature}"

    def splat(self, value: str) -> str:
        """A number in all lanes."""
        if not self.vectors:
            return value
        first = self.line(f"insertelement {self.kind} poison, double {value}, i32 0")
        lanes = self.layout.lanes
        return self.line(f"shufflevector {self.kind} {first}, {self.kind} poison, <{lanes} x i32> zeroinitializer")

    def number(self, node: Node, varies: bool) -> str:
        """The value of a node, read from the scratch memory if another part has computed it."""
        known = self.scalars.value(node)
        if known is not None:
            return f"splat (double {_number(known)})" if self.vectors else _number(known)
        if node in self.truths and node not in self.names:
            self.names[node] = self.line(f"uitofp {self.truth_kind} {self.truths[node]} to {self.kind}")
        if node not in self.names:
            place = self.line(f"getelementptr double, ptr %scratch, i64 {self.layout.slots[node]}")
            if varies:
                self.names[node] = self.line(f"load {self.kind}, ptr {place}, align 8")
            else:
                # Not remembered: a single number is cheaper to read again than to keep in a register.
                return self.splat(self.line(f"load double, ptr {place}"))
        return self.names[node]

    def truth(self, node: Node, varies: bool) -> str:
        """A truth value; between parts they are kept as numbers."""
        known = self.scalars.value(node)
        if known is not None:
            true = "splat (i1 true)" if self.vectors else "true"
            return true if known else ("zeroinitializer" if self.vectors else "false")
        if node not in self.truths:
            zero = "zeroinitializer" if self.vectors else _number(0.0)
            self.truths[node] = self.line(f"fcmp une {self.kind} {self.number(node, varies)}, {zero}")
        return self.truths[node]

    def keep(self, node: Node) -> None:
        """Write a value to the scratch memory."""
        name = self.number(node, self.vectors)
        place = self.line(f"getelementptr double, ptr %scratch, i64 {self.layout.slots[node]}")
        self.lines.append(f"  store {self.kind} {name}, ptr {place}, align 8")


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
    before = _parts([node for node in order if not varies[node] and scalars.value(node) is None])
    inside = _parts([node for node in order if varies[node]])
    by_node: dict[Node, list[int]] = {}
    for place, node in outputs:
        by_node.setdefault(node, []).append(place)
    # Outputs that do not vary, or are carried inputs, are written by the last part.
    late = [node for node in by_node if not varies[node]]
    if late and not inside:
        inside = [[]]
    layout = _Layout(constant_inputs, varying_inputs, carried, {})
    _place_shared(scalars, layout, before, inside, varies, late)

    declared: dict[str, str] = {}
    functions = []
    for part in before:
        writer = _Writer(scalars, layout, declared, vectors=False)
        for node in part:
            _write(writer, node, varies)
            if node in layout.slots:
                writer.keep(node)
        functions.append(writer.lines)
    for number, part in enumerate(inside):
        writer = _Writer(scalars, layout, declared, vectors=True)
        for node in part:
            _write(writer, node, varies)
            if node in layout.slots:
                writer.keep(node)
            if node in by_node:
                _store(writer, writer.number(node, True), by_node[node])
        if number == len(inside) - 1:
            for node in late:
                _store(writer, writer.number(node, False), by_node[node])
        functions.append(writer.lines)
    return _modules(layout, declared, functions, len(before))


# What all parts of a program are given.
_POINTERS = "ptr {constants}, ptr {start}, ptr {to}, ptr {scratch}, ptr {carry}, i64 {stride}"


def _modules(layout: _Layout, declared: dict[str, str], functions: list[list[str]], before: int) -> list[str]:
    """The texts of all parts and of the loop that calls them, which comes with the last ones."""
    count = MODULES if len(functions) >= LARGE else 1
    ends = [round(len(functions) * (i + 1) / count) for i in range(count)]
    names = ("constants", "start", "to", "scratch", "carry", "stride")
    given = _POINTERS.format(**{name: f"%{name}" for name in names})
    texts = []
    for begin, end in zip([0, *ends], ends, strict=False):
        lines = list(declared.values())
        for number in range(begin, end):
            lines += _function(layout, number, given, functions[number])
        if end == len(functions):
            lines += [f"declare void @part{number}({given})" for number in range(begin)]
            lines += _loop(layout, len(functions), before)
        texts.append("\n".join(lines) + "\n")
    return texts


def _function(layout: _Layout, number: int, given: str, body: list[str]) -> list[str]:
    steps = [f"  %to{i} = getelementptr double, ptr %to{i - 1}, i64 %stride" for i in range(1, layout.lanes)]
    begin = [f"define void @part{number}({given}) noinline {{", "  %to0 = getelementptr i8, ptr %to, i64 0"]
    return [*begin, *steps, *body, "  ret void", "}"]


def _loop(layout: _Layout, parts: int, before: int) -> list[str]:
    """The program itself: some parts once, the others for each group of times."""
    first = _POINTERS.format(
        constants="%constants", start="%varying", to="%results", scratch="%scratch", carry="%carry", stride="%stride"
    )
    each = _POINTERS.format(
        constants="%constants", start="%from", to="%at", scratch="%scratch", carry="%carry", stride="%stride"
    )
    return [
        f"define void @{NAME}(ptr %constants, ptr %varying, ptr %results, ptr %scratch, ptr %carry, i64 %groups, "
        "i64 %stride) {",
        "entry:",
        *[f"  call void @part{i}({first})" for i in range(before)],
        "  br label %test",
        "test:",
        "  %group = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %group, %groups",
        "  br i1 %more, label %body, label %end",
        "body:",
        f"  %time = mul i64 %group, {layout.lanes}",
        f"  %read = mul i64 %time, {layout.varying_inputs}",
        "  %from = getelementptr double, ptr %varying, i64 %read",
        "  %written = mul i64 %time, %stride",
        "  %at = getelementptr double, ptr %results, i64 %written",
        *[f"  call void @part{i}({each})" for i in range(before, parts)],
        *_carry_over(layout),
        "  %next = add i64 %group, 1",
        "  br label %test",
        "end:",
        "  ret void",
        "}",
    ]


def _carry_over(layout: _Layout) -> list[str]:
    """Copy the first outputs, once all of them are there, to where the next time reads them."""
    if not layout.carried:
        return []
    lines = []
    for i in range(layout.carried):
        lines += [
            f"  %out{i} = getelementptr double, ptr %at, i64 {i}",
            f"  %value{i} = load double, ptr %out{i}",
            f"  %in{i} = getelementptr double, ptr %carry, i64 {i}",
            f"  store double %value{i}, ptr %in{i}",
        ]
    return lines


def _parts(nodes: list[Node]) -> list[list[Node]]:
    """Pieces of a size that the code generator is quick with: its time grows faster than their length."""
    return [nodes[i : i + PART] for i in range(0, len(nodes), PART)]


def _place_shared(
    scalars: Scalars,
    layout: _Layout,
    before: list[list[Node]],
    inside: list[list[Node]],
    varies: dict[Node, bool],
    late: list[Node],
) -> None:
    """Give a place in the scratch memory to every value that is needed outside the part that computes it."""
    home = {node: part for part, nodes in enumerate([*before, *inside]) for node in nodes}
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
        size += layout.lanes if varies[node] else 1


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


def _write(writer: _Writer, node: Node, varies: dict[Node, bool]) -> None:
    """One operation."""
    name, *operands = writer.scalars.operations[node]
    if name == "input":
        writer.names[node] = _input(writer, int(operands[0]))
        return
    truths = {"and": 2, "or": 2, "xor": 2, "not": 1, "select": 1}.get(name, 0)
    read = [int(x) for x in operands]
    found = _operation(
        writer,
        name,
        [writer.truth(x, varies[x]) for x in read[:truths]],
        [writer.number(x, varies[x]) for x in read[truths:]],
    )
    (writer.truths if writer.scalars.is_truth(node) else writer.names)[node] = found


def _input(writer: _Writer, place: int) -> str:
    layout = writer.layout
    if place < layout.constant_inputs:
        at = writer.line(f"getelementptr double, ptr %constants, i64 {place}")
        return writer.splat(writer.line(f"load double, ptr {at}"))
    place -= layout.constant_inputs
    if place < layout.carried:
        at = writer.line(f"getelementptr double, ptr %carry, i64 {place}")
        return writer.splat(writer.line(f"load double, ptr {at}"))
    place -= layout.carried
    vector = "poison"
    for lane in range(layout.lanes):
        at = writer.line(f"getelementptr double, ptr %start, i64 {lane * layout.varying_inputs + place}")
        value = writer.line(f"load double, ptr {at}")
        vector = writer.line(f"insertelement {writer.kind} {vector}, double {value}, i32 {lane}")
    return vector


def _operation(writer: _Writer, name: str, truths: Sequence[str], numbers: Sequence[str]) -> str:
    kind, truth_kind = writer.kind, writer.truth_kind
    if name in _ARITHMETIC:
        return writer.line(f"{_ARITHMETIC[name]} contract {kind} {numbers[0]}, {numbers[1]}")
    if name == "neg":
        return writer.line(f"fneg {kind} {numbers[0]}")
    if name in COMPARISONS:
        test = "une" if name == "ne" else f"o{name}"
        return writer.line(f"fcmp {test} {kind} {numbers[0]}, {numbers[1]}")
    if name in ("and", "or", "xor"):
        return writer.line(f"{name} {truth_kind} {truths[0]}, {truths[1]}")
    if name == "not":
        return writer.line(f"xor {truth_kind} {truths[0]}, {'splat (i1 true)' if writer.vectors else 'true'}")
    if name == "select":
        return writer.line(f"select {truth_kind} {truths[0]}, {kind} {numbers[0]}, {kind} {numbers[1]}")
    if name in _INTRINSICS:
        function = f"@{_INTRINSICS[name]}.{f'v{writer.layout.lanes}f64' if writer.vectors else 'f64'}"
        writer.declare(function, f"{kind} {function}({kind})")
        return writer.line(f"call {kind} {function}({kind} {numbers[0]})")
    return _library_call(writer, name, numbers)


def _library_call(writer: _Writer, name: str, numbers: Sequence[str]) -> str:
    """A function of the C library, lane by lane."""
    function = f"@{_LIBRARY.get(name, name)}"
    writer.declare(function, f"double {function}({', '.join(['double'] * len(numbers))})")
    if not writer.vectors:
        return writer.line(f"call double {function}({', '.join(f'double {x}' for x in numbers)})")
    vector = "poison"
    for lane in range(writer.layout.lanes):
        parts = [writer.line(f"extractelement {writer.kind} {x}, i32 {lane}") for x in numbers]
        value = writer.line(f"call double {function}({', '.join(f'double {x}' for x in parts)})")
        vector = writer.line(f"insertelement {writer.kind} {vector}, double {value}, i32 {lane}")
    return vector


def _store(writer: _Writer, vector: str, places: Sequence[int]) -> None:
    for lane in range(writer.layout.lanes):
        value = writer.line(f"extractelement {writer.kind} {vector}, i32 {lane}")
        for place in places:
            at = writer.line(f"getelementptr double, ptr %to{lane}, i64 {place}")
            writer.lines.append(f"  store double {value}, ptr {at}")


class Loaded:
    """Machine code in memory, callable."""

    def __init__(self, objects: Sequence[bytes]) -> None:
        """``objects`` are object files (:mod:`codegen`)."""
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), codegen.target())
        for code in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(NAME)
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, pointer, pointer, integer, integer)
        self._function = kind(address)

    def __call__(
        self,
        constants: np.ndarray,
        varying: np.ndarray,
        results: np.ndarray,
        scratch: np.ndarray,
        carry: np.ndarray | None = None,
    ) -> None:
        """Run over all times: a multiple of `LANES` unless something is carried; arrays contiguous and double."""
        self._function(
            constants.ctypes.data,
            varying.ctypes.data,
            results.ctypes.data,
            scratch.ctypes.data,
            0 if carry is None else carry.ctypes.data,
            len(varying) if carry is not None else len(varying) // LANES,
            results.shape[1],
        )
