"""Tasks for tests of the runner, in a file of their own: workers import them."""

import os
import time
from pathlib import Path

from shadowfit.errors import ShadowfitError


def double(arguments, folder):
    """Twice a number; each run leaves a line in a file."""
    with (Path(folder) / "runs.txt").open("a") as runs:
        runs.write(f"{arguments['x']}\n")
    return {"twice": 2 * arguments["x"], "process": os.getpid()}


def refuse(arguments, folder):
    """An error that a user caused."""
    raise ShadowfitError(f"{arguments['x']} is too large")


def crash(arguments, folder):
    """A mistake in the program."""
    return {}[arguments["x"]]


def die(arguments, folder):
    """A process that is killed."""
    os._exit(3)


def sleep(arguments, folder):
    """A long case that says which process it runs in."""
    unfinished = Path(folder) / f".worker-{arguments['x']}"
    unfinished.write_text(str(os.getpid()))
    unfinished.rename(Path(folder) / f"worker-{arguments['x']}")
    time.sleep(600.0)
    return {}
