"""How long something has really taken: the time since it began, less what it waited for a processor.

On a busy machine the clock on the wall says little: a process that is ready to run and does not get a processor does
not hang. One that waits for anything else does, and one that computes for ever, too. Linux counts the waiting for a
processor of each thread (`/proc/PID/task/TID/schedstat`, second number, ns); elsewhere nothing is known of it.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

PROCESSES = Path("/proc")


class Stopwatch:
    """Measures a process with all its children from the moment it is made."""

    def __init__(self, process: int | None = None) -> None:
        self._process = os.getpid() if process is None else process
        self._began = time.monotonic()
        self._before = _waiting(_family(self._process))

    def passed(self) -> float:
        """Seconds since the beginning, without the longest waiting of a thread for a processor."""
        now = _waiting(_family(self._process))
        waited = max((value - self._before.get(thread, 0.0) for thread, value in now.items()), default=0.0)
        return time.monotonic() - self._began - waited


def _waiting(processes: list[int]) -> dict[str, float]:
    """Waiting [s] of each thread."""
    found = {}
    for member in processes:
        for file in (PROCESSES / str(member) / "task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended
                found[file.parent.name] = 1e-9 * int(file.read_text().split()[1])
    return found


def _family(process: int) -> list[int]:
    """A process and its descendants."""
    parents = {}
    for file in PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # "PID (NAME) STATE PARENT ...", where a name may contain anything
            parents[int(file.parent.name)] = int(file.read_text("utf-8", "replace").rsplit(")", 1)[1].split()[1])
    family = [process]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family
