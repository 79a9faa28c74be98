"""How many threads compute side by side, and the threads."""

from __future__ import annotations

import concurrent.futures
import functools
import os

from shadowfit.errors import ShadowfitError

# Environment variable: how many threads compute; by default one for each processor.
VARIABLE, MOST = "SHADOWFIT_THREADS", 1024


class ThreadsError(ShadowfitError):
    """A number of threads that is none."""


def threads() -> int:
    """What the environment says, or one for each processor."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return _processors()
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        raise ThreadsError(f"the environment variable {VARIABLE} is {text!r}; it must be a number from 1 to {MOST}")
    return int(text)


@functools.cache
def _processors() -> int:
    """Asked of the system once: it opens a file each time, which takes as long as a small piece of work."""
    return os.cpu_count() or 1


@functools.cache
def pool(purpose: str, count: int) -> concurrent.futures.ThreadPoolExecutor:
    """So many threads, which wait for the next piece of work; others for each purpose: one may wait for another's."""
    return concurrent.futures.ThreadPoolExecutor(count, purpose)
