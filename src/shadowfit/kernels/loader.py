"""Machine code in memory, callable."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from shadowfit.kernels import codegen
from shadowfit.kernels.assembly import Signature

_KINDS: dict[str, Any] = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "double": ctypes.c_double, "void": None}


class Loaded:
    """Functions of some object files."""

    def __init__(self, objects: Sequence[bytes], functions: Sequence[Signature]) -> None:
        """``objects`` are what :mod:`codegen` makes; ``functions`` are those that can be called from here."""
        # The code lives as long as the engine.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), codegen.target())
        for code in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._functions = {}
        for signature in functions:
            kind = ctypes.CFUNCTYPE(_KINDS[signature.result], *(_KINDS[name] for name in signature.kinds))
            self._functions[signature.name] = kind(self._engine.get_function_address(signature.name))

    def __call__(self, name: str, *arguments: int | np.ndarray | None) -> Any:
        """Call a function with integers, and arrays that are contiguous and double."""
        return self._functions[name](*(x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments))
