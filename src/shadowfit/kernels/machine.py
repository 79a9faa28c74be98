"""Scalar programs as machine code: one loop over time, several time steps at a time in vector registers.

The code is written as text for LLVM. Operations that do not depend on the varying inputs are done once, before the
loop. Nothing is left for an optimiser to find, so that only the code generator runs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence

import llvmlite.binding as llvm
import numpy as np

from shadowfit.kernels.scalars import COMPARISONS, Node, Scalars

# Time steps in a vector register; with four, all common processors are served.
LANES = 4
NAME = "program"
_VECTOR = f"<{LANES} x double>"
_TRUTHS = f"<{LANES} x i1>"
_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSICS = {"sqrt": "llvm.sqrt", "abs": "llvm.fabs", "rint": "llvm.rint", "floor": "llvm.floor"}


def _number(value: float) -> str:
    return f"0x{np.float64(value).view(np.uint64):016X}"


class _Writer:
    """Lines of one function."""

    def __init__(self, scalars: Scalars, constant_inputs: int) -> None:
        self.scalars = scalars
        self.constant_inputs = constant_inputs
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.names: dict[Node, str] = {}
        self.slots: dict[Node, int] = {}
        self.temporary = 0

    def fresh(self) -> str:
        self.temporary += 1
        return f"%t{self.temporary}"

    def line(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, name: str, signature: str) -> None:
        self.declared[name] = f"declare {signature}"


def assembly(scalars: Scalars, constant_inputs: int, varying_inputs: int, outputs: Sequence[tuple[int, Node]]) -> str:
    """LLVM assembly of ``program(constants, varying, results, scratch, groups, stride of results)``.

    ``varying`` is (time, varying inputs), ``results`` is (time, stride), of which the listed places are written;
    times are counted in groups of `LANES`. Inputs are numbered constants first.
    """
    writer = _Writer(scalars, constant_inputs)
    order = _order(scalars, [node for _, node in outputs])
    varies = _varying(scalars, order, constant_inputs)
    needed = _needed_in_loop(scalars, order, varies, [node for _, node in outputs])

    for node in order:
        if not varies[node] and scalars.value(node) is None:
            writer.names[node] = _scalar(writer, node)
            if node in needed:
                writer.slots[node] = len(writer.slots)
                place = writer.line(f"getelementptr double, ptr %scratch, i64 {writer.slots[node]}")
                writer.lines.append(f"  store double {_as_number(writer, node, writer.names[node])}, ptr {place}")
    before = writer.lines
    writer.lines, writer.names = [], {}
    by_node: dict[Node, list[int]] = {}
    for place, node in outputs:
        by_node.setdefault(node, []).append(place)
    for node in order:
        if varies[node]:
            writer.names[node] = _vector(writer, node, varying_inputs)
        if node in by_node:
            _store(writer, node, by_node[node])
    body = writer.lines
    head = f"define void @{NAME}(ptr noalias %constants, ptr noalias %varying, ptr noalias %results, "
    head += "ptr %scratch, i64 %groups, i64 %stride) {\nentry:"
    loop = [
        "  br label %test",
        "test:",
        "  %group = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %group, %groups",
        "  br i1 %more, label %body, label %end",
        "body:",
        f"  %time = mul i64 %group, {LANES}",
        f"  %read = mul i64 %time, {varying_inputs}",
        "  %from = getelementptr double, ptr %varying, i64 %read",
        "  %written = mul i64 %time, %stride",
        "  %to0 = getelementptr double, ptr %results, i64 %written",
        *[f"  %to{i} = getelementptr double, ptr %to{i - 1}, i64 %stride" for i in range(1, LANES)],
        *body,
        "  %next = add i64 %group, 1",
        "  br label %test",
        "end:",
        "  ret void",
        "}",
    ]
    return "\n".join([*writer.declared.values(), head, *before, *loop]) + "\n"


def scratch_size(scalars: Scalars) -> int:
    """Numbers of working space that a program may need."""
    return len(scalars.operations)


def _operands(scalars: Scalars, node: Node) -> tuple[int, ...]:
    name, *operands = scalars.operations[node]
    return () if name in ("const", "input", "nan") else tuple(int(x) for x in operands)


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


def _needed_in_loop(
    scalars: Scalars, order: Iterable[Node], varies: dict[Node, bool], outputs: Iterable[Node]
) -> set[Node]:
    used = {x for node in order if varies[node] for x in _operands(scalars, node) if not varies[x]}
    return used | {node for node in outputs if not varies[node]}


def _as_number(writer: _Writer, node: Node, name: str) -> str:
    """Truth values are kept as numbers between the two parts of the program."""
    if not writer.scalars.is_truth(node):
        return name
    return writer.line(f"uitofp i1 {name} to double")


def _scalar(writer: _Writer, node: Node) -> str:
    """One operation before the loop."""
    scalars = writer.scalars
    name, *operands = scalars.operations[node]
    if name == "input":
        place = writer.line(f"getelementptr double, ptr %constants, i64 {int(operands[0])}")
        return writer.line(f"load double, ptr {place}")

    def read(x: int | float) -> str:
        known = scalars.value(int(x))
        return writer.names[int(x)] if known is None else _number(known)

    def truth(x: int | float) -> str:
        return {0.0: "false", 1.0: "true"}.get(scalars.value(int(x)), writer.names.get(int(x), ""))  # type: ignore[arg-type]

    return _operation(writer, name, "double", "i1", [read(x) for x in operands], [truth(x) for x in operands])


def _vector(writer: _Writer, node: Node, varying_inputs: int) -> str:
    """One operation in the loop."""
    scalars = writer.scalars
    name, *operands = scalars.operations[node]
    if name == "input":
        place = int(operands[0]) - writer.constant_inputs
        vector = "poison"
        for lane in range(LANES):
            at = writer.line(f"getelementptr double, ptr %from, i64 {lane * varying_inputs + place}")
            value = writer.line(f"load double, ptr {at}")
            vector = writer.line(f"insertelement {_VECTOR} {vector}, double {value}, i32 {lane}")
        return vector

    def read(x: int | float) -> str:
        return _in_loop(writer, int(x))

    def truth(x: int | float) -> str:
        node = int(x)
        known = scalars.value(node)
        if known is not None:
            return "splat (i1 true)" if known else "zeroinitializer"
        if node in writer.names:
            return writer.names[node]
        return writer.line(f"fcmp une {_VECTOR} {_in_loop(writer, node)}, zeroinitializer")

    wants_truth = name in ("and", "or", "xor", "not", "select")
    numbers = [read(x) for x in (operands[1:] if name == "select" else operands if not wants_truth else [])]
    truths = [truth(x) for x in (operands[:1] if name == "select" else operands if wants_truth else [])]
    if name == "select":
        numbers.insert(0, "")
    return _operation(writer, name, _VECTOR, _TRUTHS, numbers, truths)


def _in_loop(writer: _Writer, node: Node) -> str:
    known = writer.scalars.value(node)
    if known is not None:
        return f"splat (double {_number(known)})"
    if node in writer.names:
        return writer.names[node]
    place = writer.line(f"getelementptr double, ptr %scratch, i64 {writer.slots[node]}")
    value = writer.line(f"load double, ptr {place}")
    first = writer.line(f"insertelement {_VECTOR} poison, double {value}, i32 0")
    return writer.line(f"shufflevector {_VECTOR} {first}, {_VECTOR} poison, <{LANES} x i32> zeroinitializer")


def _operation(
    writer: _Writer, name: str, kind: str, truth_kind: str, numbers: Sequence[str], truths: Sequence[str]
) -> str:
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
        true = "true" if kind == "double" else "splat (i1 true)"
        return writer.line(f"xor {truth_kind} {truths[0]}, {true}")
    if name == "select":
        return writer.line(f"select {truth_kind} {truths[0]}, {kind} {numbers[1]}, {kind} {numbers[2]}")
    if name == "nan":
        return writer.line(f"fadd {kind} {_number(np.nan)}, {_number(np.nan)}")
    if name in _INTRINSICS:
        suffix = "f64" if kind == "double" else f"v{LANES}f64"
        function = f"@{_INTRINSICS[name]}.{suffix}"
        writer.declare(function, f"{kind} {function}({kind})")
        return writer.line(f"call {kind} {function}({kind} {numbers[0]})")
    return _library_call(writer, name, kind, numbers)


def _library_call(writer: _Writer, name: str, kind: str, numbers: Sequence[str]) -> str:
    """A function of the C library, lane by lane."""
    writer.declare(f"@{name}", f"double @{name}({', '.join(['double'] * len(numbers))})")
    if kind == "double":
        return writer.line(f"call double @{name}({', '.join(f'double {x}' for x in numbers)})")
    vector = "poison"
    for lane in range(LANES):
        parts = [writer.line(f"extractelement {kind} {x}, i32 {lane}") for x in numbers]
        value = writer.line(f"call double @{name}({', '.join(f'double {x}' for x in parts)})")
        vector = writer.line(f"insertelement {kind} {vector}, double {value}, i32 {lane}")
    return vector


def _store(writer: _Writer, node: Node, places: Sequence[int]) -> None:
    vector = _in_loop(writer, node)
    for lane in range(LANES):
        value = writer.line(f"extractelement {_VECTOR} {vector}, i32 {lane}")
        for place in places:
            at = writer.line(f"getelementptr double, ptr %to{lane}, i64 {place}")
            writer.lines.append(f"  store double {value}, ptr {at}")


@functools.cache
def _target() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )


def processor() -> str:
    """What the code is made for: code for one processor may not run on another."""
    return f"{llvm.get_host_cpu_name()} {LANES} {'.'.join(str(x) for x in llvm.llvm_version_info)}"


def compile_to_object(text: str) -> bytes:
    """Machine code of an assembly, as an object file."""
    target = _target()
    module = llvm.parse_assembly(text)
    module.verify()
    return target.emit_object(module)


class Loaded:
    """Machine code in memory, callable."""

    def __init__(self, code: bytes) -> None:
        """``code`` is what `compile_to_object` made."""
        target = _target()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(NAME)
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, pointer, integer, integer)
        self._function = kind(address)

    def __call__(self, constants: np.ndarray, varying: np.ndarray, results: np.ndarray, scratch: np.ndarray) -> None:
        """Run over all times; their number must be a multiple of `LANES`, arrays contiguous and double."""
        self._function(
            constants.ctypes.data,
            varying.ctypes.data,
            results.ctypes.data,
            scratch.ctypes.data,
            len(varying) // LANES,
            results.shape[1],
        )
