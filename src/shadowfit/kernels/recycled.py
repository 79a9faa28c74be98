"""Large arrays in memory that is used again and again.

Each iteration of a fit needs tens of megabytes, for a short time, and so does each batch of simulations. New memory
comes from the system page by page, which takes longer than the computation that fills it.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any

import numpy as np

MOST = 256_000_000
"""Memory that is kept for later [bytes]; beyond, it is given back."""


class _Pool:
    """Buffers that nobody uses, by length."""

    def __init__(self) -> None:
        self._free: dict[int, list[np.ndarray]] = {}
        self._bytes = 0
        # An array may be the last thing that dies inside of these methods, which brings its buffer here.
        self._lock = threading.RLock()

    def take(self, length: int) -> np.ndarray:
        with self._lock:
            if kept := self._free.get(length):
                self._bytes -= kept[-1].nbytes
                return kept.pop()
        return np.empty(length)

    def bring(self, buffer: np.ndarray) -> None:
        with self._lock:
            if self._bytes + buffer.nbytes > MOST:
                # Whatever is there is of an earlier fit, or too large.
                self._free.clear()
                self._bytes = 0
            if buffer.nbytes <= MOST:
                self._free.setdefault(len(buffer), []).append(buffer)
                self._bytes += buffer.nbytes


class _Lease:
    """Owner of a buffer as long as any array looks at it."""

    def __init__(self, length: int) -> None:
        self._buffer = _pool.take(length)
        # Not in `__del__`: at the end of the interpreter the pool may be gone before the last array is.
        weakref.finalize(self, _pool.bring, self._buffer).atexit = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._buffer.__array_interface__


_pool = _Pool()


def recycled(*shape: int) -> np.ndarray:
    """An array of doubles that may hold anything; its memory is used again once no view of it is left."""
    return np.asarray(_Lease(math.prod(shape))).reshape(shape)
