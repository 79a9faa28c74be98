"""How many threads compute side by side."""

from __future__ import annotations

import os

from shadowfit.errors import ShadowfitError

# Environment variable: how many threads compute; by default one for each processor.
VARIABLE, MOST = "SHADOWFIT_THREADS", 1024


class ThreadsError(ShadowfitError):
    """A number of threads that is none."""


def threads() -> int:
    """What the environment says, or one for each processor."""
    said = os.environ.get(VARIABLE, "").strip()
    if not said:
        return os.cpu_count() or 1
    if not (said.isascii() and said.isdigit() and 0 < int(said) <= MOST):
        raise ThreadsError(f"the environment variable {VARIABLE} is {said!r}; it must be a number from 1 to {MOST}")
    return int(said)
