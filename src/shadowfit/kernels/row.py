"""What kernels know about one primitive of JAX, and the table that all of it is in.

The table is filled by :mod:`table`, and by :func:`operation.operation` for functions outside of JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shadowfit.records import record


@record(frozen=True)
class Row:
    """A primitive: how arrays of it are unrolled, and what its scalar operation is, if it leaves one of its name."""

    unroll: Callable[..., Any]
    """``(unrolling, equation, arguments) → output``, or a list of outputs (:mod:`unroll`)."""
    fold: Callable[..., Any] | None = None
    """The operation on numbers or arrays of NumPy, for operands that are known."""
    slope: Callable[..., Any] | None = None
    """Derivatives of the operation (:mod:`forward`); None: it has none, and asking for them raises."""
    code: Callable[..., str] | None = None
    """LLVM code of the operation (:mod:`code`)."""
    truths: int = 0
    """How many of its operands, from the first on, are truth values."""
    gives_truth: bool = False
    """Whether the result is a truth value."""


TABLE: dict[str, Row] = {}
"""Rows by the name of the primitive."""


def register(name: str, row: Row) -> None:
    """Add a row; a name has one."""
    if name in TABLE:
        raise ValueError(f"the operation {name!r} has a row already")
    TABLE[name] = row
