"""Run tests as other processors would: which kernels OpenBLAS takes, which instructions LLVM and XLA may use.

    python -m tools.processors tests/estimation tests/evaluation

Sums in another order and products that are not fused round differently. What a test says of a fit must not hang on
that, so it has to pass as on an old processor, on a common one, and on a new one: as far as the one at hand can do
what they do. Tests of files and processes are left out. Arguments are those of pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from shadowfit.kernels.codegen import PROCESSOR

ARCHITECTURES = (
    "import numpy, scipy.linalg, threadpoolctl; "
    "print(*{one['architecture'] for one in threadpoolctl.threadpool_info() if one['internal_api'] == 'openblas'})"
)


class Processor(NamedTuple):
    """A kind of processor, in the words of those who make code for it."""

    instructions: str
    """The last of its instruction sets, as LLVM calls the feature."""
    openblas: str
    llvm: str
    xla: str

    def settings(self) -> dict[str, str]:
        """Environment variables under which programs do as on this processor."""
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={self.xla}".strip()
        return {"OPENBLAS_CORETYPE": self.openblas, PROCESSOR: self.llvm, "XLA_FLAGS": flags}


PROCESSORS = (
    Processor("sse4.2", "Nehalem", "x86-64", "SSE4_2"),
    Processor("avx2", "Haswell", "x86-64-v3", "AVX2"),
    Processor("avx512f", "SkylakeX", "x86-64-v4", "AVX512"),
)

# What is written into files, and how work ends, is the same however sums are rounded.
EXACT = (
    *("estimation/test_interruption.py", "evaluation/test_exchange.py", "evaluation/test_exporting.py"),
    *("evaluation/test_notebook.py", "evaluation/test_report.py", "evaluation/test_store.py"),
)


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, in a process of its own."""
    return subprocess.run([sys.executable, *command], text=True, check=False, **options)


def main(arguments: list[str]) -> int:
    """Run pytest once for each processor; the exit code says whether all passed."""
    able, failed = llvm.get_host_cpu_features(), []
    command = ["-m", "pytest", *(f"--ignore=tests/{name}" for name in EXACT), *arguments]
    for one in PROCESSORS:
        if not able.get(one.instructions):
            print(f"== {one.openblas}: left out, this processor has no {one.instructions}", flush=True)
            continue
        print(f"== {one.openblas}", flush=True)
        environment = os.environ | one.settings()
        taken = run(["-c", ARCHITECTURES], env=environment, stdout=subprocess.PIPE).stdout.split()
        if taken != [one.openblas]:
            print(f"OpenBLAS takes its kernels for {' and '.join(taken) or 'nothing'} instead", flush=True)
        if taken != [one.openblas] or run(command, env=environment).returncode:
            failed.append(one.openblas)
    if failed:
        print(f"failed as on: {', '.join(failed)}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
