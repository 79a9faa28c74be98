"""How much memory may be used, asked before it is: a program that takes all of it stops the machine, not itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from shadowfit.errors import ShadowfitError

VARIABLE = "SHADOWFIT_MEMORY"
"""Environment variable: most memory for a file or a problem [GB]; ``--memory`` of a command sets it."""
# Of the memory that is free, for one problem.
SHARE = 0.5
# What a file may become unless more is allowed: so much [bytes], and so many times its own size. Text of numbers takes
# some ten times its size while it is read; what becomes much larger than it is was made to.
FILE, GROWTH = 1e9, 16.0
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


def given() -> float | None:
    """The limit that the user gave [bytes]; None: none.

    Raises:
        NotEnoughMemoryError: it is no positive number.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    with contextlib.suppress(ValueError):
        if float(text) > 0.0:
            return 1e9 * float(text)
    raise NotEnoughMemoryError(f"the limit of memory ({VARIABLE}) is {text!r}; it is a number of GB above zero")


@contextlib.contextmanager
def limit(gigabytes: float | None) -> Iterator[None]:
    """The limit, while the block runs, for this process and those that it starts; None leaves it as it is."""
    before = os.environ.get(VARIABLE)
    if gigabytes is not None:
        os.environ[VARIABLE] = f"{gigabytes:g}"
    try:
        given()
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.environ.update({} if before is None else {VARIABLE: before})


def for_file(size: float) -> float:
    """Most memory that a file of some size may take while it is read [bytes]."""
    most = given()
    return min(SHARE * free_memory(), FILE + GROWTH * size) if most is None else most


def require(needed: float, what: str, most: float | None = None, advice: str = "") -> None:
    """Raise if something needs more memory [bytes] than the limit, half of what is free unless one is given.

    Raises:
        NotEnoughMemoryError: with what needs it, how much, and the limit.
    """
    most = given() if most is None else most
    allowed = SHARE * free_memory() if most is None else most
    if needed > allowed:
        source = "half of what is free" if most is None else "as given"
        raise NotEnoughMemoryError(
            f"{what} would need about {spoken(needed)} of memory; the limit is {spoken(allowed)} ({source}){advice}"
        )


def require_for_file(needed: float, what: str, size: float) -> None:
    """Raise if a file of some size would take more memory [bytes] than it may.

    Raises:
        NotEnoughMemoryError: with what needs it, how much, and the limit.
    """
    allowed = for_file(size)
    if needed > allowed:
        raise NotEnoughMemoryError(
            f"{what} would take about {spoken(needed)} of memory; the limit for a file of {spoken(size)} is "
            f"{spoken(allowed)}. --memory GB (or {VARIABLE}) raises it"
        )


def spoken(size: float) -> str:
    """A number of bytes in words."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"
