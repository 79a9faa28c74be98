"""Starting JAX for a program: double precision, compiled programs kept from run to run, time spent compiling."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

from shadowfit.errors import ShadowfitError

# What JAX calls the parts of its compilation; tracing is left out, as its times include one another.
_COMPILATION = ("jaxpr_to_mlir_module_duration", "backend_compile_duration")

# What `mallopt` of the GNU C library calls its settings.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
# Memory is asked for in pieces of this size at least [bytes].
_PIECE = 1 << 26

# Signals that ask a program to end.
_REQUESTS = (signal.SIGINT, signal.SIGTERM)


class _CompileClock:
    """Adds up the time that JAX spends compiling, from when it is started."""

    def __init__(self) -> None:
        self.seconds: float | None = None

    def start(self) -> None:
        if self.seconds is None:
            import jax

            self.seconds = 0.0
            jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith(_COMPILATION) and self.seconds is not None:
            self.seconds += duration_secs


_clock = _CompileClock()


def compile_seconds() -> float:
    """Time spent compiling since the start of JAX [s], by XLA and for kernels."""
    from shadowfit.kernels import making_seconds

    return (_clock.seconds or 0.0) + making_seconds()


def double_precision() -> None:
    """Switch on double precision, which everything here is computed in; raises where the program forbids it."""
    import jax

    if not jax.config.read("jax_enable_x64"):
        jax.config.update("jax_enable_x64", True)
    if not jax.config.read("jax_enable_x64"):
        raise ShadowfitError("double precision is off; do not call shadowfit inside jax.enable_x64(False)")


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block ends: libraries that are interrupted while they load raise or crash."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _REQUESTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


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
    """Switch on double precision and the compilation cache, in the user's cache directory unless JAX has one."""
    keep_memory()
    # Our matrices are small: several threads on one product cost more than they save, much more on a busy machine.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    with undisturbed():
        import jax
    import numpy as np
    import platformdirs

    # Wild values overflow; the status of a fit says so, in other words than NumPy's.
    np.seterr(all="ignore")
    double_precision()
    _clock.start()
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    folder = Path(platformdirs.user_cache_dir("shadowfit")) / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to only costs the time to compile
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # An entry that another run is writing, or left half-written, is compiled again: no reason to bother anybody.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry", UserWarning)
