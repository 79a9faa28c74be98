"""Arrays while a function is unrolled: of numbers that are known now, or of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.errors import UnsupportedError
from shadowfit.kernels.scalars import Scalars


class NodeArray:
    """An array whose entries are nodes."""

    def __init__(self, entries: np.ndarray) -> None:
        """``entries`` are integers."""
        self.entries = entries

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.entries.shape


Value = np.ndarray | NodeArray
"""What is known now is an ordinary array."""
Rule = Callable[[Any, Any, Sequence[Value]], Any]
"""``(unrolling, equation, arguments) → output``, or a list of outputs."""


def entries_of(scalars: Scalars, value: Value) -> np.ndarray:
    """NodeArray of any array."""
    if isinstance(value, NodeArray):
        return value.entries
    array = np.asarray(value)
    flat = [scalars.const(x) for x in array.ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(array.shape)


def known_or_nodes(scalars: Scalars, value: Value, dtype: np.dtype) -> Value:
    """An ordinary array of integers or truth values where every entry is known: indices and conditions stay known."""
    if not isinstance(value, NodeArray) or np.issubdtype(dtype, np.floating):
        return value
    values = [scalars.value(node) for node in value.entries.ravel().tolist()]
    if not any(x is None for x in values):
        return np.array(values).astype(dtype).reshape(value.shape)
    if dtype != np.bool_:
        raise UnsupportedError("an integer depends on data")
    return value


def static(value: Value, name: str) -> np.ndarray:
    """An array that must be known."""
    if isinstance(value, NodeArray):
        raise UnsupportedError(f"{name} depends on data")
    return np.asarray(value)
