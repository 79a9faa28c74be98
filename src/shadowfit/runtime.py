"""Starting JAX for a program: double precision, compiled programs kept from run to run, time spent compiling."""

from __future__ import annotations

import ctypes
import os

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.lazy_jax import is_loaded, jax, once_loaded
from shadowfit.programs import keep_programs

# What JAX calls the parts of its compilation; tracing is left out, as its times include one another.
_COMPILATION = ("jaxpr_to_mlir_module_duration", "backend_compile_duration")

# What `mallopt` of the GNU C library calls its settings.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
# Memory is asked for in pieces of this size at least [bytes].
_PIECE = 1 << 26


class _CompileClock:
    """Adds up the time that JAX spends compiling, from when it is started."""

    def __init__(self) -> None:
        self.seconds: float | None = None

    def start(self) -> None:
        if self.seconds is None:
            self.seconds = 0.0
            once_loaded(lambda: jax.monitoring.register_event_duration_secs_listener(self._add))

    def _add(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith(_COMPILATION) and self.seconds is not None:
            self.seconds += duration_secs


_clock = _CompileClock()


def compile_seconds() -> float:
    """Time spent compiling since the start of JAX [s], by XLA and for kernels."""
    from shadowfit.kernels import making_seconds

    return (_clock.seconds or 0.0) + making_seconds()


_wanted: list[bool] = []
"""Whether double precision waits for JAX."""


def double_precision() -> None:
    """Switch on double precision, which everything here is computed in; raises where the program forbids it.

    As long as JAX is not loaded there is nothing to switch: it is done when JAX comes.
    """
    if is_loaded():
        _switch()
    elif not _wanted:
        _wanted.append(True)
        once_loaded(_switch)


def _switch() -> None:
    if not jax.config.read("jax_enable_x64"):
        jax.config.update("jax_enable_x64", True)
    if not jax.config.read("jax_enable_x64"):
        raise ShadowfitError("double precision is off; do not call shadowfit inside jax.enable_x64(False)")


def keep_memory() -> None:
    """Keep freed memory for the arrays that come next.

    Each linearisation makes and drops arrays of many megabytes. Left to itself the C library gives them back to the
    system every time, which clears each page before it gives it out again: a third of the time of an arm's fit.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return  # another C library
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, -1)
    mallopt(_TOP_PAD, _PIECE)


def start_jax() -> None:
    """Settings of JAX for a program, which it takes when it is loaded: double precision and the compilation cache."""
    keep_memory()
    # Our matrices are small: several threads on one product cost more than they save, much more on a busy machine.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    # Wild values overflow; the status of a fit says so, in other words than NumPy's.
    np.seterr(all="ignore")
    double_precision()
    _clock.start()
    once_loaded(keep_programs)
