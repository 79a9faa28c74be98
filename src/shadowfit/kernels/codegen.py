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


def target() -> llvm.TargetMachine:
    """The processor at hand; an engine takes over the one it is given, so each gets its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )


@functools.cache
def processor() -> str:
    """What the code is made for: code for one processor may not run on another."""
    version = ".".join(str(x) for x in llvm.llvm_version_info)
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {version}"


def compile_to_object(text: str) -> bytes:
    """Machine code of an assembly, as an object file."""
    return (_compiled_aside(text) if len(text) >= LARGE else None) or _compiled_here(text)


def _compiled_here(text: str) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return target().emit_object(module)


def _compiled_aside(text: str) -> bytes | None:
    """The same by another process; None if that cannot be had."""
    if not os.path.basename(sys.executable or "").startswith("python"):
        return None  # Python inside of another program, which would be started instead
    try:
        run = subprocess.run([sys.executable, "-P", __file__], input=text.encode(), capture_output=True, check=False)
    except OSError:
        return None
    return run.stdout if run.returncode == 0 and run.stdout else None


if __name__ == "__main__":
    sys.stdout.buffer.write(_compiled_here(sys.stdin.buffer.read().decode()))
