"""LLVM's code generator: assembly to machine code for the processor at hand, here or in a process of its own.

LLVM's interface to Python lets one caller in at a time, and a large program keeps it for seconds. A process of its own
leaves this one free to trace, and to compile and load smaller programs meanwhile. This file is also what that process
runs, by its path, with nothing but LLVM to import: assembly comes in, an object file goes out.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import llvmlite.binding as llvm

# Length of an assembly from which on a process of its own is worth its start (a tenth of a second).
LARGE = 400_000
# LLVM's level of optimisation. More makes no faster code of straight lines.
LEVEL = 1
# Environment variable: if set, programs are made at level 0, in less than half the time, and run several times slower.
# That pays where each runs a few times, as in tests.
HASTY = "SHADOWFIT_HASTY"
# Environment variable: the processor that code is made for, by LLVM's name for it (``x86-64-v3``, ``nehalem``); by
# default the one at hand with all it can do.
PROCESSOR = "SHADOWFIT_PROCESSOR"
# Feature of processors that lets LLVM choose the lanes in which a vector is changed. It then takes ``x · (c ? 1 : y)``
# apart, after which the product is no longer fused with a sum, as it is in single numbers: other last digits.
MASKS = "avx512vl"
# How the other process is asked to do without.
ALIKE = "--alike"


def target(level: int = LEVEL, alike: bool = False) -> llvm.TargetMachine:
    """The processor that code is made for; an engine takes over the one it is given, so each gets its own.

    ``alike``: numbers in vectors are rounded as they are alone, for a few more instructions.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = _processor()
    if alike and MASKS in llvm.get_host_cpu_features():
        features[MASKS] = False
    return llvm.Target.from_default_triple().create_target_machine(cpu=name, features=features.flatten(), opt=level)


def _processor() -> tuple[str, llvm.FeatureMap]:
    """Name and features; without any, LLVM takes those that go with the name."""
    name = os.environ.get(PROCESSOR)
    return (name, llvm.FeatureMap()) if name else (llvm.get_host_cpu_name(), llvm.get_host_cpu_features())


@functools.cache
def processor() -> str:
    """What the code is made for: code for one processor may not run on another."""
    name, features = _processor()
    version = ".".join(str(x) for x in llvm.llvm_version_info)
    return f"{name} {features.flatten()} {version}"


def manner() -> str:
    """How programs are made, and for what."""
    return f"{processor()} {os.environ.get(HASTY, '')}"


def compile_program(text: str, alike: bool = False) -> bytes:
    """Machine code of a program of straight lines, as an object file; ``alike`` as for `target`."""
    if os.environ.get(HASTY):
        return _compiled_here(text, 0, alike)
    return (_compiled_aside(text, alike) if len(text) >= LARGE else None) or _compiled_here(text, LEVEL, alike)


def compile_loops(text: str) -> bytes:
    """Machine code of loops by hand, as an object file."""
    return _compiled_here(text)


def _compiled_here(text: str, level: int = LEVEL, alike: bool = False) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return target(level, alike).emit_object(module)


def _compiled_aside(text: str, alike: bool) -> bytes | None:
    """The same by another process; None if that cannot be had."""
    if not os.path.basename(sys.executable or "").startswith("python"):
        return None  # Python inside of another program, which would be started instead
    command = [sys.executable, "-P", __file__, *([ALIKE] if alike else [])]
    try:
        run = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    except OSError:
        return None
    return run.stdout if run.returncode == 0 and run.stdout else None


if __name__ == "__main__":
    sys.stdout.buffer.write(_compiled_here(sys.stdin.buffer.read().decode(), alike=ALIKE in sys.argv))
