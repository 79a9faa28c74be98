"""A traced JAX function as scalar operations.

Arrays become arrays of nodes (:mod:`scalars`); operations that only move entries about become indexing, products of
matrices become sums of products, loops of known length are written out: :mod:`table` says what becomes of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels import table  # noqa: F401  (fills the table)
from shadowfit.kernels.arrays import Value, entries_of
from shadowfit.kernels.scalars import Scalars
from shadowfit.kernels.unrolling import Unrolling
from shadowfit.lazy_jax import core, jax


def unroll(scalars: Scalars, closed: core.ClosedJaxpr, inputs: Sequence[Value]) -> list[np.ndarray]:
    """Entries (nodes) of the outputs of a traced function."""
    return [entries_of(scalars, value) for value in Unrolling(scalars).run_closed(closed, inputs)]


def trace(function: Callable, *arguments: Any) -> core.ClosedJaxpr:
    """The operations of a function for arguments of given shapes."""
    return jax.make_jaxpr(function)(*arguments)


def operations(traced: core.ClosedJaxpr) -> tuple[str, list[np.ndarray]]:
    """All that the code of a traced function follows from: its text, and the arrays it has, which the text leaves out.

    Functions inside have none of their own: JAX hands them those of the whole.
    """
    return str(traced), [np.asarray(array) for array in traced.consts]
