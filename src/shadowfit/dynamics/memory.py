"""How much memory may be used, asked before it is: a program that takes all of it stops the machine, not itself."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from shadowfit.errors import ShadowfitError

# Of the memory that is free, for one problem.
SHARE = 0.5
# Where Linux tells the limit and the use of a container [bytes].
CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")


class NotEnoughMemoryError(ShadowfitError):
    """A problem that is too large for the memory of the machine, or for the limit that was given."""


def free_memory() -> float:
    """Memory that can be used without pushing others out [bytes]."""
    known = [float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text("utf-8")
        known.append(1024.0 * float(text.split("MemAvailable:")[1].split()[0]))
    with contextlib.suppress(OSError, ValueError):  # outside a container there is no such file, or "max" in it
        limit, used = (float(Path(path).read_text("utf-8")) for path in CONTAINER)
        known.append(max(limit - used, 0.0))
    return min(known, default=float("inf"))


def require(needed: float, what: str, limit: float | None = None, advice: str = "") -> None:
    """Raise if something needs more memory [bytes] than the limit, half of what is free unless it is given.

    Raises:
        NotEnoughMemoryError: with what needs it, how much, and the limit.
    """
    allowed = SHARE * free_memory() if limit is None else limit
    if needed > allowed:
        source = "half of what is free" if limit is None else "as given"
        raise NotEnoughMemoryError(
            f"{what} would need about {spoken(needed)} of memory; the limit is {spoken(allowed)} ({source}){advice}"
        )


def spoken(size: float) -> str:
    """A number of bytes in words."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"
