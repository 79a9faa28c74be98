"""Readers of other people's libraries, each call in a process of its own with limits on memory and time.

What damaged or hostile files do to a library in C (a crash, an endless loop, all memory) ends that process; here it is
a :class:`LostError`. The functions run apart are those of modules; arguments and answers can be pickled.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from shadowfit.errors import ShadowfitError
from shadowfit.memory import VARIABLE, for_file, spoken

# Time of a processor for a file [s]: so much, and so much for each megabyte.
SECONDS, SECONDS_PER_MEGABYTE = 60.0, 2.0
# Times as long by the clock: other programs may need the processors, too.
BUSY = 10.0
# Time between two reports of progress [s].
PACE = 0.1

# Threads would only take memory; the folders in which modules are found are those of this process.
_ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
_START = "import sys; sys.path[:] = sys.argv[1:]; from shadowfit.apart import serve; serve()"


class LostError(ShadowfitError):
    """The process ended without an answer; the message is the rest of a sentence about what was read."""


def apart(
    function: Callable[..., Any], *arguments: Any, size: float, progress: Callable[..., None] | None = None
) -> Any:
    """What a function answers, or raises, in a process of its own.

    Args:
        function: of a module; given a keyword ``progress`` if that is wanted.
        arguments: all that it needs.
        size: of the file that it reads [bytes], which tells what memory and time are allowed.
        progress: called with what the function reports.

    Raises:
        LostError: it crashed, or took more memory or time than allowed.
    """
    if not os.path.basename(sys.executable or "").startswith("python"):  # Python inside of another program
        return function(*arguments, **({} if progress is None else {"progress": progress}))
    memory, seconds = for_file(size), SECONDS + SECONDS_PER_MEGABYTE * 1e-6 * size
    request = pickle.dumps((function, arguments, memory, seconds, progress is not None))
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _START, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_ALONE},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    clock = threading.Timer(BUSY * seconds, process.kill)
    clock.start()
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request)
            process.stdin.close()
        return _answer(process.stdout, progress)
    except (EOFError, pickle.UnpicklingError) as error:
        raise LostError(_death(process.wait(), memory, seconds)) from error
    finally:
        clock.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _answer(stream: BinaryIO | Any, progress: Callable[..., None] | None) -> Any:
    while True:
        kind, content = pickle.load(stream)  # from a process of our own, which runs our own code
        if kind == "answer":
            return content
        if kind == "error":
            raise _revived(*content)
        if progress is not None:
            progress(*content)


def _revived(kind: type[Exception], text: str, fields: dict[str, Any]) -> Exception:
    """An error of the other process; its class may be made from other arguments than its text."""
    error = kind.__new__(kind, text)
    error.args = (text,)
    error.__dict__.update(fields)
    return error


def _death(status: int, memory: float, seconds: float) -> str:
    if status == -signal.SIGXCPU or status == -signal.SIGKILL:
        return f"was not read within {seconds:.0f} s; make it smaller"
    name = f" ({signal.Signals(-status).name})" if status < 0 else ""
    return (
        f"made its reader give up{name}: it is damaged, or needs more than {spoken(memory)} of memory "
        f"(--memory GB or {VARIABLE} allows more)"
    )


# ---- the other process


def serve() -> None:
    """Take one request from standard input and answer it on standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not come in between
    function, arguments, memory, seconds, reports = pickle.load(sys.stdin.buffer)
    _limit(memory, seconds)
    progress = _Reports(answers)
    named = {"progress": progress} if reports else {}
    try:
        reply = ("answer", function(*arguments, **named))
    except (ShadowfitError, OSError) as error:
        kind = type(error) if isinstance(error, ShadowfitError) else OSError
        words = str(error) if isinstance(error, ShadowfitError) else error.strerror or str(error)
        reply = ("error", (kind, words, vars(error)))
    except MemoryError:
        os._exit(1)
    progress.send()
    pickle.dump(reply, answers, protocol=5)
    answers.flush()
    os._exit(0)  # libraries that were damaged crash when they tidy up


def _limit(memory: float, seconds: float) -> None:
    """Limits that the system watches over."""
    try:
        import resource  # noqa: PLC0415  (not on every system)
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, most in ((resource.RLIMIT_DATA, int(memory)), (resource.RLIMIT_CPU, int(seconds) + 1)):
        hard = resource.getrlimit(kind)[1]
        if hard == resource.RLIM_INFINITY or most < hard:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(kind, (most, hard))


class _Reports:
    """Progress on its way to the process that asked, not more often than anybody can see, and the last of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.sent = stream, -PACE
        self.waiting: tuple[Any, ...] | None = None

    def __call__(self, *content: Any) -> None:
        self.waiting = content
        if time.monotonic() - self.sent >= PACE:
            self.send()

    def send(self) -> None:
        """Send what was reported last, unless that was done."""
        if self.waiting is not None:
            pickle.dump(("progress", self.waiting), self.stream)
            self.stream.flush()
        self.waiting, self.sent = None, time.monotonic()
