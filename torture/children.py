"""Commands in processes of their own, forked from one that has imported everything and computed nothing yet."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from torture.patience import Stopwatch

LONGEST = 180.0  # s


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Exit status, negative for a signal; 70 after an exception that nobody handled."""
    output: str
    errors: str
    hung: bool = False

    @property
    def crashed(self) -> bool:
        """A traceback, or a signal that we did not send."""
        return "Traceback (most recent call last)" in self.errors or self.code in (70, -signal.SIGSEGV, -signal.SIGBUS)


class Child:
    """A command of the command line, running.

    ``afresh``: in a new interpreter, for commands that start processes themselves: those begin as this one did.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        afresh: bool = False,
    ) -> None:
        self._files = [folder / f".{name}.{time.monotonic_ns()}" for name in ("output", "errors")]
        self.began = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            (_begin if afresh else _become)(arguments, folder, environment or {}, self._files)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, if it still runs."""
        os.kill(self.pid, number)

    def await_output(self, text: str, longest: float = LONGEST) -> None:
        """Wait until it has written a text."""
        end, output = time.monotonic() + longest, self._files[0]
        while time.monotonic() < end and not (output.exists() and text in output.read_text("utf-8", "replace")):
            time.sleep(0.05)

    def wait(self, longest: float = LONGEST) -> Ended:
        """Wait for the end; one that does not come is brought about."""
        watch, end = Stopwatch(self.pid), time.monotonic() + longest
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return self._ended(os.waitstatus_to_exitcode(status), False)
            if time.monotonic() > end:
                end = time.monotonic() + longest - watch.passed()
                if time.monotonic() > end:
                    self.kill()
                    os.waitpid(self.pid, 0)
                    return self._ended(-signal.SIGKILL, True)
            time.sleep(0.005)

    def _ended(self, code: int, hung: bool) -> Ended:
        texts = [path.read_text("utf-8", "replace") if path.exists() else "" for path in self._files]
        for path in self._files:
            path.unlink(missing_ok=True)
        return Ended(code, *texts, hung)


def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, *, afresh: bool = False
) -> Ended:
    """A command from begin to end."""
    return Child(arguments, folder, environment, afresh=afresh).wait()


def _move_in(folder: Path, environment: Mapping[str, str], files: Sequence[Path]) -> None:
    os.chdir(folder)
    for number, path in zip((1, 2), files, strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(environment)


def _begin(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], files: Sequence[Path]) -> None:
    _move_in(folder, environment, files)
    os.execv(sys.executable, [sys.executable, "-m", "shadowfit", *arguments])


def _become(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], files: Sequence[Path]) -> None:
    code = 70
    try:
        _move_in(folder, environment, files)
        sys.argv = ["shadowfit", *arguments]
        from shadowfit.cli import main  # noqa: PLC0415  (in the child)

        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def import_everything() -> None:
    """All modules that commands need, so that children begin at once. No array is made: threads would not survive."""
    import jax  # noqa: F401, PLC0415

    import shadowfit.estimation  # noqa: PLC0415
    import shadowfit.evaluation  # noqa: F401, PLC0415
    from shadowfit.cli.app import application  # noqa: PLC0415

    application()
